// A stage whose rows arrive while one watches, with the controls of the run that makes them.
//
// It follows the newest row until the visitor scrubs back; at the right end it follows again. Whoever owns a run that goes
// on has its controls; for everybody else, and for what is recorded, the same buttons play it back in the browser.

import { tell } from "../heard/tell.js";
import { fillBar, fillForks, holdBar } from "./livebar.js";
import { CALM, CALM_MS } from "../play.js";
import { AT_REST, Feed, LiveSweep } from "../rows/feed.js";
import { Stage } from "../stage.js";

const MARGIN = 1.05;
const NEWS_MS = 700;
const WATCHED_S = 8; // how long a hall looks on

export class LiveStage extends Stage {
  constructor(root) {
    super(root);
    this.held = null; // the step that is looked at, if not the newest
    this.played = null; // {row, at}: where and when a playback began
    this.status = { state: "", text: "", notice: "" };
  }

  sweepOf(table, view) {
    if (this.source === view.live.source && this.sweep) return this.sweep;
    this.source = view.live.source;
    this.feed?.close();
    this.held = this.played = null;
    this.feed = new Feed(view.live.url, (message) => this.take(message), (gone) => this.lostLine(gone));
    return new LiveSweep(view.live);
  }

  show(table, view) {
    this.axes = new Map();
    this.widened = 0; // rows that the axes take in
    super.show(table, view);
    this.watches ||= Boolean(view.live.watch);
    this.watch();
    this.widen();
    this.ask(true);
  }

  rebuild(structure) {
    super.rebuild(structure);
    holdBar(this);
    this.parts.scrubber.range.max = this.view.live.steps - 1;
  }

  arrive() {
    this.committed = this.sweep.rows;
    this.awaited = null;
  }

  // ---- what arrives

  take({ rows, status }) {
    if (this.generation !== undefined && this.generation !== status.generation) {
      this.sweep = new LiveSweep(this.view.live);
      this.widened = 0;
    }
    this.generation = status.generation;
    this.status = status;
    const came = rows !== null && this.sweep.append(rows);
    if (came || this.followed !== this.sweep) {
      this.follow();
      this.flow();
    }
    fillBar(this);
    this.watch();
    this.found();
    this.tell();
  }

  // Said when it starts, when its sentence changes, when it has a word to say, and when it rests; never for a step.
  found() {
    if (!this.status.state) return;
    const { state, text, notice } = this.status;
    const now = { state, notice, finding: this.finding(this.sweep.arrived - 1) ?? "" };
    const before = this.heard ?? now;
    this.heard = now;
    const news = [state !== before.state && text, notice !== before.notice && notice, now.finding !== before.finding && now.finding];
    const words = news.filter(Boolean).join(". ");
    if (words && this.held === null && !this.played) tell({ words });
  }

  // Shows what arrived, frame by frame.
  flow() {
    if (this.flowing) return;
    const calm = CALM.matches;
    const wait = calm ? Math.max(0, (this.flowed ?? 0) + CALM_MS - performance.now()) : 0;
    const show = (act) => (wait ? setTimeout(act, wait) : requestAnimationFrame(act));
    this.flowing = show(() => {
      this.flowing = 0;
      if (!this.root.isConnected) return;
      this.flowed = performance.now();
      if (this.sweep.reveal(calm)) this.flow();
      else if (AT_REST.has(this.status.state)) this.describe();
      this.widen();
      this.draw(true);
    });
  }

  // The answer was asked for, and the run is recorded: once it is played from its first step, its curves growing.
  watch() {
    if (!this.watches || !this.sweep.rows || this.sweep.rows < this.view.live.steps) return;
    this.watches = false;
    if (!CALM.matches) this.playBack({ pace: this.sweep.rows / WATCHED_S, grows: true });
  }

  get open() {
    return this.played?.grows ? [0, Math.max(0, this.row())] : super.open;
  }

  // So that the words under the exhibit follow: once for every page that was drawn while the run went on. Not at once: a
  // fork lets the run rest, and a message that overtook the page with the fork's dials would turn them back.
  tell() {
    if (!this.unsaid() || this.told === this.view) return;
    this.told = this.view;
    const { source } = this;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      if (this.source === source && this.unsaid()) this.send({ news: this.sweep.arrived });
    }, NEWS_MS);
  }

  unsaid() {
    const drawn = this.view.live.resting && this.sweep.arrived <= this.view.live.shown;
    return AT_REST.has(this.status.state) && !drawn;
  }

  // New rows came: words that follow the cursor look into the texts of this sweep.
  follow() {
    if (this.followed === this.sweep) return;
    this.followed = this.sweep;
    this.refill();
  }

  lostLine(gone) {
    this.gone = gone;
    this.ask(true);
    if (this.parts) fillBar(this);
  }

  // ---- what hands do

  preview(row) {
    this.previewed = this.sweep.within(row) + 1;
    this.ask();
  }

  // The page is told where the visitor came to rest, since its words and its forks are about that step.
  commit(row) {
    this.hold(row);
    this.send({ dial: this.sweep.within(row) + 1 });
    tell({ words: this.finding() });
    this.describe();
  }

  hold(row) {
    this.ask(Boolean(this.played?.grows)); // what is drawn at rest has not grown whole
    this.previewed = this.played = null;
    this.held = row >= this.sweep.rows - 1 ? null : row + 1;
    fillBar(this);
    this.ask();
  }

  // The hidden text is that of the page when it was drawn.
  atRest(row) {
    return this.view.live.resting && row === this.view.live.shown - 1;
  }

  get commands() {
    return this.view.live.own && this.held === null && this.status.state !== "finished";
  }

  get moving() {
    return this.played !== null || (this.held === null && ["going", "queued"].includes(this.status.state));
  }

  // Pictures off screen rest while a run goes on, as while a hand moves.
  get moves() {
    return super.moves || this.moving;
  }

  playOrPause() {
    if (this.played) this.commit(this.row());
    else if (this.commands) this.send({ command: this.moving ? "pause" : "play" });
    else if (this.moving) this.commit(this.sweep.rows - 2);
    else this.playBack();
    fillBar(this);
  }

  oneStep() {
    if (this.commands) this.send({ command: "step" });
    else this.commit(this.row() + 1);
  }

  // From the step that is looked at, or from the first one, at the run's pace.
  playBack({ pace = this.view.live.pace, grows = false } = {}) {
    const from = this.held === null ? 0 : this.row();
    this.played = { row: from, at: performance.now(), grows };
    const tick = () => {
      if (!this.played) return;
      const past = performance.now() - this.played.at;
      const row = this.played.row + Math.floor(((CALM.matches ? past - (past % CALM_MS) : past) / 1000) * pace);
      if (row >= this.sweep.rows - 1) {
        this.commit(row);
        this.ask(grows);
        return;
      }
      this.held = row + 1;
      this.ask(grows);
      requestAnimationFrame(tick);
    };
    tick();
  }

  // ---- what is shown

  row() {
    return this.sweep.rowOf(this.previewed ?? this.held ?? this.sweep.rows);
  }

  scene(i, row = this.row(), open = this.open) {
    const scene = super.scene(i, row, open);
    const axis = this.axes.get(i);
    return axis ? { ...scene, panel: { ...scene.panel, y: { ...scene.panel.y, domain: axis } } } : scene;
  }

  // Axes that grow take in every finite value there is: logarithmic ones by decades, others with a margin.
  widen() {
    this.view.panels.forEach((panel, i) => {
      if (panel.kind !== "curves" || !panel.y.grows) return;
      const { y, lines } = panel;
      let [low, high] = this.axes.get(i) ?? y.domain;
      for (const line of lines) {
        const values = this.sweep.numbers(line.column);
        for (let row = this.widened; row < this.sweep.rows; row++) {
          const value = values[row];
          if (!Number.isFinite(value)) continue;
          if (value > high) high = y.log ? 10 ** Math.ceil(Math.log10(value)) : value * MARGIN;
          if (y.log && value > 0 && value < low) low = Math.max(y.ticks[0][0], 10 ** Math.floor(Math.log10(value)));
        }
      }
      this.axes.set(i, [low, high]);
    });
    this.widened = this.sweep.rows;
  }

  draw(all) {
    super.draw(all);
    fillForks(this);
    if (!this.sweep.rows) this.parts.finding.shown.nodeValue = this.nothingYet();
  }

  // Why nothing is drawn: no place to watch from, a run that waits for a press, or one that is about to start.
  nothingYet() {
    if (this.feed?.full) return this.view.words.full;
    return (AT_REST.has(this.status.state) && this.status.notice) || this.view.words.waiting;
  }

  refresh() {
    super.refresh();
    if (this.sweep) fillBar(this);
  }

  close() {
    clearTimeout(this.telling);
    this.feed?.close();
    this.played = null;
    super.close();
  }
}
