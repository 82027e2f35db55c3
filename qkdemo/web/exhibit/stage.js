// The stage: which row is shown, and everything that has to be drawn when that changes.
//
// Three things decide the row, the first that is set wins:
//   previewed  a dial value under the pointer or under the scrubber's thumb
//   awaited    a dial value that was picked and that new data has not brought yet
//   committed  the dial value of the data

import { wordUnder } from "./arcs.js";
import { cellUnder } from "./heat.js";
import { guessUnder, gutters, rowUnder } from "./curves.js";
import { Details } from "./details.js";
import { keyUnder } from "./bars.js";
import { build, fill, structureOf } from "./frame.js";
import { cellOf, heard, placed } from "./hear.js";
import { holdCurves, holdGrid, holdScrubber, holdTable } from "./hands.js";
import { guessesOf, openRows, runDial } from "./lesson.js";
import { playOrPause } from "./play.js";
import { Plot } from "./plot.js";
import { savePng, saveSvg } from "./save.js";
import { Sight } from "./sight.js";
import { tell } from "./tell.js";
import { Sweep } from "./sweep.js";
import { readTheme, textWidth, wearTheme, whenLookChanges } from "./theme.js";

const PATIENCE_MS = 2000; // how long older data may arrive after a pick without taking the cursor back

export class Stage {
  constructor(root) {
    this.root = root;
    this.previewed = this.awaited = this.committed = null;
    this.press = null; // the pointer that is down on a curve
    this.chosen = null; // {query, key, from} or {row, column, from}: a cell that new data has not brought yet
    this.details = new Details(() => this.ask(true));
    this.send = (/** @type {object} */ _message) => {};
    this.sight = new Sight(() => {
      this.came = true;
      this.ask();
    });
    this.sizes = new ResizeObserver(() => this.refit());
    this.sizes.observe(root);
    this.escape = (event) => event.key === "Escape" && this.sweep && this.reset();
    document.addEventListener("keydown", this.escape); // a pointer that hovers has no focus
    this.unfolded = false; // whether the visitor wants to see the rest, too
    this.lit = null; // the role whose lines a text points at
    this.sketched = null; // a prediction that is being drawn
    this.looked = ({ detail }) => this.sweep && this.look(detail);
    document.addEventListener("qkdemo:look", this.looked);
    this.listening = new AbortController();
    whenLookChanges(() => this.refresh(), this.listening.signal); // paper, too, has its own width and colours
    document.fonts?.ready.then(() => this.refresh());
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
    if (this.first && finding) tell({ finding, more: this.view.alt });
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

  get plays() {
    return Boolean(this.playing?.plays);
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
    this.sizes.disconnect();
    [this.root, ...this.plots.filter(Boolean).map((plot) => plot.canvas)].forEach((node) => this.sizes.observe(node));
    this.sight.watch(this.parts.panels.map(({ node }) => node));
    const { range, play } = this.parts.scrubber;
    holdScrubber(range, this);
    if (play) play.onclick = () => playOrPause(this);
    if (this.parts.fold) this.parts.fold.onclick = () => this.unfold(!this.unfolded);
    this.plots.forEach((plot, i) => plot && this.handle(plot, i));
    this.parts.panels.forEach(({ grid }, i) => grid && holdTable(grid, this.tableGrid(i), this));
    this.reachable()[focus]?.focus();
  }

  handle(plot, i) {
    const { canvas, stage: area, png, svg, ear } = this.parts.panels[i];
    const scene = () => this.scene(i);
    if (ear) ear.onclick = () => import("./ear.js").then(({ listen }) => listen(this, scene()));
    png.onclick = () => savePng(plot, scene());
    svg.onclick = () => saveSvg(plot, scene());
    const { kind } = this.view.panels[i];
    if (kind === "curves") {
      const guessAt = (x, y) => guessUnder(x, y, plot.box, scene());
      holdCurves(canvas, (x) => rowUnder(x, plot.box, scene()), guessAt, this);
    }
    if (kind === "heat") holdGrid(area, canvas, this.heatGrid(plot, i), this);
    if (kind === "bars") holdGrid(area, canvas, this.barsGrid(plot, i, keyUnder), this);
    if (kind === "arcs") holdGrid(area, canvas, this.barsGrid(plot, i, wordUnder), this);
  }

  heatGrid(plot, i) {
    const stage = this;
    return {
      under: (x, y) => cellUnder(x, y, plot.box, stage.scene(i)),
      point: (cell) => stage.panel(i).details && stage.details.point(stage.panel(i), cell),
      now: () => stage.selected(stage.panel(i)),
      get size() {
        return [stage.panel(i).rows, stage.panel(i).columns];
      },
      choice: ([query, key]) => ({ query, key, from: "heat" }),
      name(cell) {
        const held = cellOf(cell, stage.scene(i));
        return `${placed(cell, stage.panel(i))}${held && `: ${held}`}`;
      },
    };
  }

  // What stands in one row: bars, or the words under arcs.
  barsGrid(plot, i, under) {
    const stage = this;
    const key = (at) => (at === null ? null : [0, at]);
    return {
      under: (x) => key(under(x, plot.box, stage.scene(i))),
      now: () => key(stage.selected(stage.panel(i)) ?? 0),
      get size() {
        return [1, stage.panel(i).labels.length];
      },
      choice: ([, at]) => ({ key: at, from: "bars" }),
      name: ([, at]) => `${stage.panel(i).key_label ?? ""} ${stage.panel(i).labels[at]}: ${cellOf([0, at], stage.scene(i))}`.trim(),
    };
  }

  tableGrid(i) {
    const stage = this;
    return {
      now: () => stage.selected(stage.panel(i)) ?? [0, 0],
      get size() {
        return [stage.panel(i).rows.length, stage.panel(i).head.length];
      },
      choice: ([row, column]) => ({ row, column, from: "grid" }),
      name: () => "", // the focus is on the cell, which says itself
    };
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

  // ---- what is shown

  row() {
    return this.opened(this.sweep.rowOf(this.previewed ?? this.awaited ?? this.committed));
  }

  // The nearest row that may be seen.
  opened(row) {
    const [first, last] = this.open;
    return Math.max(first, Math.min(last, row));
  }

  get open() {
    return openRows(this.view, this.sweep);
  }

  selected(/** @type {{kind?: string, selected?: any}} */ { kind, selected }) {
    const inGrid = this.chosen?.from === "grid";
    if (kind === "grid") return inGrid ? [this.chosen.row, this.chosen.column] : (selected ?? null);
    const chosen = inGrid ? null : this.chosen;
    const looked = this.detailed()?.cell;
    if (kind === "heat" && looked && !chosen) return looked;
    if (kind === "heat") return selected && chosen ? [chosen.query ?? selected[0], chosen.key] : (selected ?? null);
    return chosen?.from === "bars" ? chosen.key : (selected ?? null);
  }

  // What is known of the entry that is stood on: it is one at the committed value.
  detailed() {
    return this.atRest(this.row()) ? this.details.answer : null;
  }

  // Whether a row is that of the committed value.
  atRest(row) {
    return row === this.sweep.rowOf(this.committed);
  }

  /** @returns {any} of the kind that whoever asks knows it to be */
  panel(i) {
    return this.view.panels[i];
  }

  /** @returns {any} a `Scene` of that kind */
  scene(i) {
    const { view, sweep, theme, gutters: room, measure } = this;
    const panel = this.panel(i);
    const shown = { row: this.row(), selected: this.selected(panel), open: this.open, lit: this.lit };
    return { view, panel, sweep, theme, measure, gutters: room, ...shown, guesses: guessesOf(panel, this.guesses()) };
  }

  finding(row = this.row()) {
    return this.sweep.has(this.view.finding) ? this.sweep.text(this.view.finding, row) : "";
  }

  guesses() {
    const { veil, guesses } = this.view;
    return this.sketched === null || !veil ? guesses : [{ column: veil.column, x: veil.x, y: this.sketched, label: "" }];
  }

  // Names the pictures: their title, and their values where the dial stands. What stands on a picture's title is not.
  describe() {
    this.parts.panels.forEach(({ canvas }, i) => {
      const { title, subtitle = "" } = this.view.panels[i];
      const words = [title, subtitle.trim().replace(/\.$/, ""), heard(this.scene(i))].filter(Boolean).join(". ");
      if (canvas?.getAttribute("aria-label") !== words) canvas?.setAttribute("aria-label", words);
    });
  }

  // ---- drawing

  refresh() {
    if (!this.sweep) return;
    const theme = readTheme(this.root, this.view.lecture);
    if (theme.name !== this.theme?.name) this.theme = theme;
    wearTheme(this.root, this.theme);
    this.measure = (words, weight) => textWidth(words, this.theme, this.theme.small, weight);
    this.plots.forEach((plot) => plot?.fit());
    this.layOut();
    this.describe();
    this.draw(true);
  }

  refit() {
    if (!this.sweep || !this.plots) return;
    const changed = this.plots.filter((plot) => plot?.fit());
    if (changed.length) this.refresh();
  }

  layOut() {
    const { panels } = this.view;
    for (const { scroller } of this.parts.panels) {
      if (scroller) scroller.tabIndex = scroller.scrollWidth > scroller.clientWidth ? 0 : -1; // else only a pointer could scroll it
    }
    const drawn = panels.map((panel, i) => [panel, this.plots[i]?.box.w]).filter(([{ kind }, width]) => kind === "curves" && width);
    const widths = drawn.map(([, width]) => width);
    this.gutters = gutters(drawn.map(([panel]) => panel), this.theme, this.measure, Math.min(...widths));
    this.root.style.setProperty("--gutter", `${this.gutters[0]}px`);
  }

  ask(all = false) {
    this.all = this.all || all;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw(this.all);
    });
  }

  // Whether a hand or the dial itself is moving: a row that is shown for a moment.
  get moves() {
    return this.previewed !== null;
  }

  draw(all) {
    const row = this.row();
    this.fillPlay();
    const late = this.behind && (this.came || !this.moves);
    if (!all && row === this.drawn && !late) return;
    const shown = this.parts.panels.map(({ node }) => !this.moves || this.sight.sees(node));
    this.behind = shown.includes(false);
    this.came = false;
    this.drawn = row;
    this.all = false;
    if (all) this.plots.forEach((plot) => plot?.forget());
    const detailed = this.detailed();
    // Pictures before words: a word on a canvas waits for the styles of all words that have changed on the page.
    this.plots.forEach((plot, i) => shown[i] && plot?.draw(this.scene(i)));
    for (const part of this.steady) part.show(row, detailed?.texts);
    if (all) this.parts.panels.forEach(({ title }, i) => {
      const words = detailed?.panel === i ? detailed.title : this.view.panels[i].title;
      if (title.textContent !== words) title.textContent = words;
    });
    this.parts.panels.forEach(({ grid }, i) => grid?.mark(this.selected(this.panel(i)) ?? []));
    const hidden = this.atRest(row) ? (this.view.alt ?? "") : ""; // it speaks of the value that the data has
    if (this.parts.alt.textContent !== hidden) this.parts.alt.textContent = hidden;
    const { range } = this.parts.scrubber;
    if (Number(range.value) !== row) range.value = row;
    range.setAttribute("aria-valuetext", this.sweep.text(this.view.dial.text, row));
    range.style.setProperty("--done", `${(100 * row) / Math.max(1, Number(range.max))}%`);
  }

  fillPlay() {
    const { play } = this.parts.scrubber;
    if (!play) return;
    const [first, last] = this.open;
    const words = this.plays ? this.view.words.pause : this.view.words.play;
    if (play.textContent !== words) play.textContent = words;
    play.hidden = first === last;
  }

  close() {
    this.sizes.disconnect();
    this.sight.close();
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
