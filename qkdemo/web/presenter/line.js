// Presses in line: after one that changes what is on screen the next wait until that is there, and follow in their order.
//
// One that opens an answer opens that of the question which was on screen when it was pressed, and no other. In a lecture
// nothing waits: a press that comes before the page has settled is not meant, and is dropped.

import { titled } from "./arrivals.js";

const PATIENCE_MS = 10000; // what does not come holds nobody up for ever
const TWICE_MS = 700; // a finger that slips presses twice within it
const WAITS = "data-key-waits"; // on the page while it has not followed a press

let [waiting, busy, timer, pressed] = [[], false, 0, -Infinity];

// Do it now, or when it is its turn. `act` returns whether it does anything. Returns whether there is anything to do.
export function inLine(act, answers) {
  if (busy) waiting.push({ act, asked: answers ? titled() : null });
  else if (act()) hold();
  return busy;
}

// Do it now, or not at all. Returns whether it was done, or dropped.
export function once(act) {
  if (busy || Date.now() - pressed < TWICE_MS) return true;
  if (!act()) return false;
  pressed = Date.now();
  hold();
  return true;
}

// What was waited for is there.
export function arrived() {
  clearTimeout(timer);
  free();
  while (waiting.length && !busy) {
    const { act, asked } = waiting.shift();
    if ((asked === null || asked === titled()) && act()) hold();
  }
}

function hold() {
  busy = true;
  document.documentElement.toggleAttribute(WAITS, true);
  clearTimeout(timer);
  timer = setTimeout(() => {
    waiting = [];
    free();
  }, PATIENCE_MS);
}

function free() {
  busy = false;
  document.documentElement.toggleAttribute(WAITS, false);
}
