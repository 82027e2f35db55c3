// What the server says of one entry of a matrix, asked for while a pointer or the keyboard stands on it.
//
// A panel's `details` name the url, the numbers of every entry that go into the question, and the panel whose texts the
// answer replaces. What was answered is kept; an answer that comes too late, or not at all, changes nothing.

import { HOME } from "./home.js";

const REST_MS = 40; // a pointer that only passes asks nothing
const MOST = 2000; // answers that are kept

export class Details {
  constructor(changed) {
    this.changed = changed;
    this.known = new Map();
    this.cell = this.answer = null;
  }

  // The entry that is stood on; null for none.
  point(panel, cell) {
    if (String(cell) === String(this.cell)) return;
    this.cell = cell;
    clearTimeout(this.timer);
    if (cell) this.timer = setTimeout(() => this.ask(panel, cell), REST_MS);
    else this.take(null);
  }

  async ask({ details, columns }, cell) {
    const [row, column] = cell;
    const question = Object.entries(details.numbers).map(([name, all]) => `${name}=${encodeURIComponent(all[row * columns + column])}`);
    const url = [details.url, `row=${row}`, `column=${column}`, ...question].join("&");
    if (this.known.size > MOST) this.known.clear();
    if (!this.known.has(url)) this.known.set(url, fetch(new URL(url, HOME)).then((reply) => (reply.ok ? reply.json() : null)).catch(() => null));
    const answer = await this.known.get(url);
    if (!answer) this.known.delete(url);
    else if (this.cell === cell) this.take({ ...answer, cell, panel: details.panel });
  }

  take(answer) {
    if (answer === this.answer) return;
    this.answer = answer;
    this.changed();
  }

  forget() {
    clearTimeout(this.timer);
    this.cell = this.answer = null;
  }
}
