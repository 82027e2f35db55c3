// Which pictures (and, as one of them, the words) a frame draws while the dial moves: all of them, or, where a frame takes too long, the one under the hand
// and a few others by turns.

const LONG_MS = 14; // of the page's own work in a frame: more than that is no 60 frames a second
const OFTEN = 3; // in a row
export const WORDS = -2;
const NONE = -1;
const AT_ONCE = 2; // beside the one under the hand

export class Pace {
  constructor() {
    this.owed = new Set(); // pictures that do not show the row yet, those that have waited longest first
    this.under = NONE; // the picture under the hand
    this.long = 0;
    this.slow = false;
    this.began = 0;
    const { port1, port2 } = new MessageChannel(); // a message sent within a frame arrives when the frame's work is done
    port1.onmessage = () => this.took(performance.now() - this.began);
    this.end = () => port2.postMessage(0);
    this.close = () => port1.close();
  }

  forget() {
    this.owed.clear();
    this.under = NONE;
  }

  // Of the pictures that are to show another row, those that this frame draws; the others are owed.
  take(pictures, moves) {
    for (const picture of pictures) this.owed.add(picture);
    if (!moves) this.long = 0;
    this.slow = moves && (this.slow || this.long >= OFTEN);
    const others = [...this.owed].filter((picture) => picture !== this.under);
    const drawn = this.slow ? others.slice(0, AT_ONCE) : others;
    if (this.owed.has(this.under)) drawn.unshift(this.under);
    for (const picture of drawn) this.owed.delete(picture);
    if (moves && !this.slow) {
      this.began = performance.now();
      this.end();
    }
    return drawn;
  }

  took(ms) {
    this.long = ms > LONG_MS ? this.long + 1 : 0;
  }
}
