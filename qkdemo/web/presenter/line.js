// Presses in line: after one that changes what is on screen the next wait until that is there, and follow in their order.
//
// One that opens an answer opens that of the question which was on screen when it was pressed, and no other.

import { titled } from "./arrivals.js";

const PATIENCE_MS = 10000; // what does not come holds nobody up for ever

let [waiting, busy, timer] = [[], false, 0];

// Do it now, or when it is its turn. `act` returns whether it does anything. Returns whether there is anything to do.
export function inLine(act, answers) {
  if (busy) waiting.push({ act, asked: answers ? titled() : null });
  else if (act()) hold();
  return busy;
}

// What was waited for is there.
export function arrived() {
  clearTimeout(timer);
  busy = false;
  while (waiting.length && !busy) {
    const { act, asked } = waiting.shift();
    if ((asked === null || asked === titled()) && act()) hold();
  }
}

function hold() {
  busy = true;
  clearTimeout(timer);
  timer = setTimeout(() => {
    [waiting, busy] = [[], false];
  }, PATIENCE_MS);
}
