// Rows that arrive while one watches: a sweep that grows, and the stream of server-sent events that feeds it.

import { HOME } from "../home.js";

export const AT_REST = new Set(["paused", "stopped", "finished", "lost"]); // what a run does that holds no worker

const MASKED = 254;
const RETRY_MS = 2000;
const FULL_MS = 10000;
const FRAMES = 5; // over which what waits is spread: messages come every other frame, and not evenly
const MANY = 24; // steps that are not shown one after another

// As Sweep, but with `rows` so far of `steps` in all: axes span the whole run from the beginning. Of what `arrived`, those
// are shown that were revealed: a picture for every step, though several come in one message.
export class LiveSweep {
  constructor(live) {
    this.live = live;
    this.rows = this.arrived = 0;
    this.log = false;
    this.dial = Float64Array.from({ length: live.steps }, (_, row) => row + 1);
    this.places = Float64Array.from(this.dial, (step) => this.place(step));
    this.scalars = new Map(live.columns.map((name) => [name, new Float64Array(live.steps)]));
    this.words = new Map();
    this.maps = new Map();
    this.mapped = []; // the steps that have maps, rising
  }

  // Takes a message's rows; those that are here already are left alone. True if something came.
  append({ first, count, scalars, texts, mapped, maps }) {
    if (first !== this.arrived + 1 || this.arrived + count > this.live.steps) return false;
    const numbers = new DataView(bytesOf(scalars).buffer);
    this.live.columns.forEach((name, column) => {
      const values = this.scalars.get(name);
      for (let i = 0; i < count; i++) values[this.arrived + i] = numbers.getFloat32(4 * (column * count + i), true);
    });
    for (const [name, changes] of Object.entries(texts)) unrolled(this.texts(name), changes, count);
    for (const [name, text] of Object.entries(maps)) this.take(name, bytesOf(text), mapped.length);
    this.mapped.push(...mapped);
    this.arrived += count;
    if (this.arrived - this.rows > MANY) this.rows = this.arrived;
    return true;
  }

  // What one frame shows more, or `all` of it; true if anything waited.
  reveal(all = false) {
    const waiting = this.arrived - this.rows;
    this.rows += all ? waiting : Math.ceil(waiting / FRAMES);
    return waiting > 0;
  }

  take(name, codes, count) {
    if (!this.maps.has(name)) this.maps.set(name, []);
    const size = count ? codes.length / count : 0;
    for (let i = 0; i < count; i++) this.maps.get(name).push(codes.subarray(i * size, (i + 1) * size));
  }

  has(name) {
    return this.scalars.has(name) || name === "finding" || String(name).endsWith(".text");
  }

  numbers(name) {
    return this.scalars.get(name);
  }

  texts(name) {
    if (!this.words.has(name)) this.words.set(name, []);
    return this.words.get(name);
  }

  text(name, row) {
    return this.texts(name)[row] ?? "";
  }

  // The matrix of the latest step up to this row that has one, with the hidden half filled in.
  list(name, row) {
    const codes = this.maps.get(name)?.[this.mapAt(row)];
    return codes ? square(codes) : null;
  }

  // The step whose matrix that is.
  stepOfList(row) {
    return this.mapped[this.mapAt(row)];
  }

  mapAt(row) {
    let at = this.mapped.length - 1;
    while (at > 0 && this.mapped[at] > row + 1) at--;
    return at;
  }

  place(step) {
    return this.live.steps > 1 ? (step - 1) / (this.live.steps - 1) : 0;
  }

  rowAt(place) {
    return this.within(Math.round(place * (this.live.steps - 1)));
  }

  rowOf(step) {
    return this.within(Math.round(step) - 1);
  }

  // The nearest row there is; −1 if there is none.
  within(row) {
    return Math.min(this.rows - 1, Math.max(0, row));
  }
}

// Calls `take(message)` for every message and `offline(yes)` when the connection goes and comes; `restarting` says whether
// the server said goodbye, `full` whether it has no place for one more who watches.
export class Feed {
  constructor(url, take, offline) {
    this.url = url;
    this.take = take;
    this.offline = offline;
    this.open();
  }

  open() {
    this.source = new EventSource(new URL(this.url, HOME));
    this.source.onopen = () => {
      this.restarting = this.full = false;
      this.offline(false);
    };
    this.source.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.closing) this.restarting = true;
      else this.take(message);
    };
    this.source.onerror = () => {
      this.offline(true);
      if (this.source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.askAgain(), RETRY_MS);
    };
  }

  // A stream that is refused does not say why; the headers alone do, and end at once.
  async askAgain() {
    const answer = await fetch(new URL(this.url, HOME), { method: "HEAD" }).catch(() => null);
    if (this.closed) return;
    this.full = answer?.status === 503;
    if (!this.full) {
      this.open();
      return;
    }
    this.offline(true);
    this.timer = setTimeout(() => this.askAgain(), FULL_MS);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
  }
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function unrolled(texts, changes, count) {
  for (let k = 0; k < changes.length; k += 2) {
    const end = changes[k + 2] ?? count;
    for (let i = changes[k]; i < end; i++) texts.push(changes[k + 1]);
  }
}

function square(triangle) {
  const n = Math.round((Math.sqrt(8 * triangle.length + 1) - 1) / 2);
  const codes = new Uint8Array(n * n).fill(MASKED);
  for (let row = 0, at = 0; row < n; at += ++row) codes.set(triangle.subarray(at, at + row + 1), row * n);
  return codes;
}
