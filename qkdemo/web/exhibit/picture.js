// The picture: everything that is drawn for the row that is shown, and when.
//
// Three things decide the row, the first that is set wins:
//   previewed  a dial value under the pointer or under the scrubber's thumb
//   awaited    a dial value that was picked and that new data has not brought yet
//   committed  the dial value of the data

import { gutters } from "./drawn/curves.js";
import { Details } from "./details.js";
import { heard } from "./heard/hear.js";
import { guessesOf, openRows } from "./lesson.js";
import { Pace, WORDS } from "./pace.js";
import { readTheme, textWidth, wearTheme } from "./pens/theme.js";
import { Sight } from "./sight.js";

export class Picture {
  constructor(root) {
    this.root = root;
    /** @type {Spec.Exhibit} */ this.view = null;
    /** @type {any} */ this.sweep = null;
    /** @type {any} */ this.parts = null; // of the exhibit's HTML, see frame.js
    /** @type {any[]} */ this.plots = null; // one per panel that is drawn
    /** @type {any[]} */ this.steady = []; // the words that follow the cursor
    this.playing = null; // what moves the dial by itself
    this.previewed = this.awaited = this.committed = null;
    this.chosen = null; // {query, key, from} or {row, column, from}: a cell that new data has not brought yet
    this.lit = null; // the role whose lines a text points at
    this.sketched = null; // a prediction that is being drawn
    this.details = new Details(() => this.ask(true));
    this.pace = new Pace();
    this.sight = new Sight(() => {
      this.came = true;
      this.ask();
    });
  }

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

  selected(/** @type {{kind?: string, selected?: any, keys?: number[]}} */ { kind, selected, keys }, row = this.row()) {
    const inGrid = this.chosen?.from === "grid";
    if (kind === "grid") return inGrid ? [this.chosen.row, this.chosen.column] : (selected ?? null);
    const chosen = inGrid ? null : this.chosen;
    const looked = this.detailed(row)?.cell;
    if (kind === "heat" && looked && !chosen) return looked;
    if (kind === "heat") return selected && chosen ? [chosen.query ?? selected[0], chosen.key] : (selected ?? null);
    return chosen?.from === "bars" && !keys ? chosen.key : (selected ?? null); // a bar may stand for keys without an arrow
  }

  // What is known of the entry that is stood on: it is one at the committed value.
  detailed(row = this.row()) {
    return this.details.answer && this.atRest(row) ? this.details.answer : null;
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
  scene(i, row = this.row(), open = this.open) {
    const { view, sweep, theme, gutters: room, measure } = this;
    const panel = this.panel(i);
    const shown = { row, selected: this.selected(panel, row), open, lit: this.lit };
    return { view, panel, sweep, theme, measure, gutters: room, ...shown, guesses: guessesOf(panel, this.guesses()) };
  }

  finding(row = this.row()) {
    return this.sweep.has(this.view.finding) ? this.sweep.text(this.view.finding, row) : "";
  }

  // What there is to say beside the finding, which is heard before it.
  get more() {
    const { alt = "" } = this.view;
    const finding = this.finding(this.sweep.rowOf(this.committed));
    return alt.startsWith(finding) ? alt.slice(finding.length).trim() : alt;
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
    const { moves } = this;
    const late = this.behind && (this.came || !moves);
    const fresh = all || late || row !== this.drawn;
    this.root.classList.toggle("moving", moves);
    if (!fresh && !this.pace.owed.size) return;
    const seen = (node) => !moves || !node || this.sight.sees(node);
    const shown = this.parts.panels.map(({ node }) => seen(node));
    this.behind = shown.includes(false) || !seen(this.parts.tiled);
    const now = this.pace.take(fresh ? [...[...shown.keys()].filter((i) => shown[i] && this.plots[i]), WORDS] : [], moves);
    if (this.pace.owed.size) this.ask();
    this.came = false;
    this.drawn = row;
    this.all = false;
    if (all) this.plots.forEach((plot) => plot?.forget());
    const [detailed, open] = [this.detailed(row), this.open];
    // Pictures before words: a word on a canvas waits for the styles of all words that have changed on the page.
    for (const i of now) if (i !== WORDS) this.plots[i].draw(this.scene(i, row, open));
    const { text } = this.parts.scrubber;
    for (const part of this.steady) if (part === text || (now.includes(WORDS) && seen(part.within))) part.show(row, detailed?.texts);
    if (!fresh) return;
    if (all) this.parts.panels.forEach(({ title }, i) => {
      const words = detailed?.panel === i ? detailed.title : this.view.panels[i].title;
      if (title.textContent !== words) title.textContent = words;
    });
    this.parts.panels.forEach(({ grid }, i) => shown[i] && grid?.mark(this.selected(this.panel(i), row) ?? []));
    const hidden = this.atRest(row) ? this.more : ""; // it speaks of the value that the data has
    if (this.parts.alt.textContent !== hidden) this.parts.alt.textContent = hidden;
    const { range } = this.parts.scrubber;
    if (Number(range.value) !== row) range.value = row;
    range.setAttribute("aria-valuetext", this.sweep.text(this.view.dial.text, row));
    range.style.setProperty("--done", `${(100 * row) / Math.max(1, Number(range.max))}%`);
  }

  get plays() {
    return Boolean(this.playing?.plays);
  }

  fillPlay() {
    const { play } = this.parts.scrubber;
    if (!play) return;
    const [first, last] = this.open;
    const words = this.plays ? this.view.words.pause : this.view.words.play;
    if (play.textContent !== words) play.textContent = words;
    play.hidden = first === last;
  }
}
