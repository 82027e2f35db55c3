// Which pictures a frame draws while the dial moves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace, WORDS } from "../../qkdemo/web/exhibit/pace.js";

const ALL = [0, 1, 2, 3, 4, WORDS];

// A pace that has just seen so many frames that took so long.
function paced(t, frames, ms) {
  const pace = new Pace();
  t.after(() => pace.close()); // whose messages would keep the tests going
  pace.under = 1;
  for (let i = 0; i < frames; i++) {
    pace.take(ALL, true);
    pace.took(ms);
  }
  return pace;
}

test("where a frame is quick, each shows everything", (t) => {
  const pace = paced(t, 10, 5);
  assert.deepEqual(new Set(pace.take(ALL, true)), new Set(ALL));
  assert.equal(pace.owed.size, 0);
});

test("a long frame now and then changes nothing", (t) => {
  const pace = paced(t, 2, 50);
  pace.took(5);
  assert.equal(pace.take(ALL, true).length, ALL.length);
});

test("where frames take long, the picture under the hand is in each, and the others come by turns", (t) => {
  const pace = paced(t, 3, 50);
  const frames = [1, 2, 3, 4, 5, 6].map(() => pace.take(ALL, true));
  for (const drawn of frames) {
    assert.equal(drawn[0], 1);
    assert.equal(drawn.length, 3);
  }
  for (const three of [frames.slice(0, 3), frames.slice(3)]) assert.deepEqual(new Set(three.flat()), new Set(ALL));
});

test("a dial that stays where it is gets what is owed, and one that rests gets it at once", (t) => {
  const pace = paced(t, 3, 50);
  pace.take(ALL, true);
  assert.ok(pace.owed.size > 0);
  pace.take([], true);
  pace.take([], true);
  assert.equal(pace.owed.size, 0);
  pace.take(ALL, true);
  const owed = new Set(pace.owed);
  assert.deepEqual(new Set(pace.take([], false)), owed);
  assert.equal(pace.take(ALL, true).length, ALL.length); // the next drag begins as quick as it can
});
