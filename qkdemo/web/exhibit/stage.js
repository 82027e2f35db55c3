// The stage: a picture with data that come and hands that move it.

import { Plot } from "./drawn/plot.js";
import { build, fill, structureOf } from "./frame.js";
import { hold } from "./grids.js";
import { holdScrubber } from "./hands.js";
import { tell } from "./heard/tell.js";
import { runDial } from "./lesson.js";
import { forgetWidths, whenLookChanges } from "./pens/theme.js";
import { Picture } from "./picture.js";
import { playOrPause } from "./play.js";
import { Sweep } from "./rows/sweep.js";

const PATIENCE_MS = 2000; // how long older data may arrive after a pick without taking the cursor back

export class Stage extends Picture {
  constructor(root) {
    super(root);
    this.press = null; // the pointer that is down on a curve
    this.send = (/** @type {object} */ _message) => {};
    this.sizes = new ResizeObserver(() => this.refit());
    this.sizes.observe(root);
    this.escape = (event) => event.key === "Escape" && this.sweep && this.reset();
    document.addEventListener("keydown", this.escape); // a pointer that hovers has no focus
    this.unfolded = false; // whether the visitor wants to see the rest, too
    this.looked = ({ detail }) => this.sweep && this.look(detail);
    document.addEventListener("qkdemo:look", this.looked);
    this.listening = new AbortController();
    whenLookChanges(() => this.refresh(), this.listening.signal); // paper, too, has its own width and colours
    document.fonts?.ready.then(() => {
      forgetWidths();
      this.refresh();
    });
  }

  // Takes new data, a new view or a new theme.
  show(table, /** @type {Spec.Exhibit} */ view) {
    const before = this.view?.veil ? this.row() : null;
    this.view = view;
    this.root.classList.toggle("lecture", Boolean(view.lecture));
    this.sketched = null;
    this.sweep = this.sweepOf(table, view);
    this.table = table;
    const structure = structureOf(view);
    if (structure !== this.structure) this.rebuild(structure);
    this.refill();
    this.fillFold();
    this.chosen = null;
    this.details.forget();
    this.arrive(view.dial.at);
    this.refresh();
    this.found();
    if (before !== null && !view.veil) this.run(before);
  }

  // What the page's first exhibit found, for those who hear the page.
  found() {
    const finding = this.finding(this.sweep.rowOf(this.committed));
    if (this.first && finding) tell({ finding, more: this.more });
  }

  // Whether it is the page's first exhibit: what it finds is the page's title.
  get first() {
    return this.view.heading === 1;
  }

  // The answer came: the dial goes to it from where it stood.
  run(from) {
    const to = this.row();
    const playing = this.begin({});
    const show = (row) => {
      if (this.playing !== playing) return false; // a hand took over
      this.goTo(row);
      return true;
    };
    runDial(this.sweep, from, to, show, () => this.settle());
  }

  // Something moves the dial by itself, until another thing does, or a hand: `playing` is then another one.
  begin(playing) {
    this.playing = playing;
    this.ask();
    return playing;
  }

  goTo(row) {
    this.previewed = this.sweep.dial[row];
    this.ask();
  }

  // Words in a text point at a state, at the lines of a role, or at nothing any more.
  look({ turns, role }) {
    const name = this.view.dial.name ?? this.view.dial.column;
    if (turns && name in turns) this.preview(this.sweep.rowOf(Number(turns[name])));
    else if (!turns && !role) this.settle();
    if ((role ?? null) === this.lit) return;
    this.lit = role ?? null;
    this.ask(true);
  }

  sweepOf(table, view) {
    return table === this.table ? this.sweep : new Sweep(table, view.dial);
  }

  unfold(open) {
    this.unfolded = open;
    this.fillFold();
    this.refresh();
  }

  fillFold() {
    const { fold } = this.parts;
    this.root.classList.toggle("folded", Boolean(fold) && !this.unfolded);
    if (!fold) return;
    fold.textContent = this.unfolded ? this.view.fold.less : this.view.fold.more;
    fold.setAttribute("aria-expanded", this.unfolded);
  }

  refill() {
    this.steady = fill(this.parts, this.view, this.sweep);
  }

  // Settles what a pick was waiting for, now that the data's value is known.
  arrive(value) {
    const old = this.committed;
    this.committed = value;
    if (this.awaited === null) return;
    const intermediate = value === old || this.sent.has(value);
    const late = performance.now() - this.pickedAt > PATIENCE_MS;
    if (value === this.awaited || !intermediate || late) this.awaited = null;
  }

  rebuild(structure) {
    const focus = this.focused();
    this.structure = structure;
    this.parts = build(this.root, this.view);
    this.plots = this.parts.panels.map((panel, i) => panel.canvas && new Plot(panel.canvas, this.view.panels[i].kind));
    this.pace.forget();
    this.sizes.disconnect();
    [this.root, ...this.plots.filter(Boolean).map((plot) => plot.canvas)].forEach((node) => this.sizes.observe(node));
    this.sight.watch([this.parts.tiled, ...this.parts.panels.map(({ node }) => node)]);
    const { range, play } = this.parts.scrubber;
    holdScrubber(range, this);
    if (play) play.onclick = () => playOrPause(this);
    if (this.parts.fold) this.parts.fold.onclick = () => this.unfold(!this.unfolded);
    this.plots.forEach((plot, i) => hold(this, plot, i));
    this.reachable()[focus]?.focus();
  }

  // ---- what hands do

  preview(row) {
    this.playing = null;
    this.previewed = this.sweep.dial[row];
    this.ask();
  }

  settle() {
    this.playing = this.previewed = this.sketched = null;
    this.ask();
  }

  // A prediction under the pointer, and one that was made.
  sketch(value) {
    this.sketched = value;
    this.ask(true);
  }

  guess(value) {
    this.sketch(value);
    this.send({ guess: value });
  }

  commit(picked) {
    const row = this.opened(picked);
    const value = this.sweep.dial[row];
    this.playing = this.previewed = null;
    if (value !== (this.awaited ?? this.committed)) {
      this.sent = this.awaited === null ? new Set() : this.sent;
      this.sent.add(value);
      this.awaited = value;
      this.pickedAt = performance.now();
      tell(this.first ? { finding: this.finding() } : { words: this.finding() });
      this.describe();
      this.send({ dial: value });
    }
    this.ask();
  }

  reset() {
    this.press = this.playing = this.previewed = null;
    this.chosen = null;
    this.details.point(null, null);
    this.ask(true);
  }

  choose(grid, cell) {
    this.chosen = grid.choice(cell);
    tell({ words: grid.name(cell) });
    grid.point?.(cell);
    this.ask(true);
  }

  pickCell(grid, cell) {
    this.choose(grid, cell);
    const { from: _from, ...pick } = this.chosen;
    this.send(pick);
  }

  close() {
    this.sizes.disconnect();
    this.sight.close();
    this.pace.close();
    this.details.forget();
    this.listening.abort();
    document.removeEventListener("keydown", this.escape);
    document.removeEventListener("qkdemo:look", this.looked);
    this.playing = null;
    cancelAnimationFrame(this.frame);
  }

  // ---- focus across a rebuild

  reachable() {
    return [...this.root.querySelectorAll("input, button, [tabindex]")];
  }

  focused() {
    return this.parts ? this.reachable().indexOf(this.root.getRootNode().activeElement) : -1;
  }
}
