// The words at the arrows' tips: inside the drawing, and beside one another as long as there is room.

import assert from "node:assert/strict";
import { test } from "node:test";

import { besideTip } from "../../qkdemo/web/arrows/labels.js";

const SIZE = [500, 400];
const CENTRE = { x: 250, y: 200 };

function tip(length, degrees) {
  const [dx, dy] = [Math.cos((degrees * Math.PI) / 180), -Math.sin((degrees * Math.PI) / 180)];
  return { dx, dy, x: CENTRE.x + dx * length, y: CENTRE.y + dy * length };
}

function placed(tips, halves) {
  const words = [];
  tips.forEach((end, at) => words.push(besideTip(end, halves[at], { words, arrows: tips, centre: CENTRE, size: SIZE })));
  return words;
}

const within = ({ x, y, half }) => x - half[0] >= 0 && x + half[0] <= SIZE[0] && y - half[1] >= 0 && y + half[1] <= SIZE[1];
const meet = (a, b) => Math.abs(a.x - b.x) < a.half[0] + b.half[0] && Math.abs(a.y - b.y) < a.half[1] + b.half[1];
// Points along an arrow, of which one lies on the word.
const liesOn = (end, { x, y, half }) =>
  Array.from({ length: 200 }, (_, at) => at / 199).some(
    (t) => Math.abs(CENTRE.x + t * (end.x - CENTRE.x) - x) < half[0] - 1 && Math.abs(CENTRE.y + t * (end.y - CENTRE.y) - y) < half[1] - 1,
  );

test("a word goes on in its arrow's direction where nothing is in the way", () => {
  const [right] = placed([tip(100, 0)], [[20, 10]]);
  const [up] = placed([tip(100, 90)], [[20, 10]]);
  assert.deepEqual([right.y, right.x > CENTRE.x + 120], [CENTRE.y, true]);
  assert.ok(Math.abs(up.x - CENTRE.x) < 1e-9 && up.y < CENTRE.y - 110);
});

test("a word that has no room to the right of its arrow does not lie on the arrow", () => {
  const end = tip(180, 20);
  const [word] = placed([end], [[70, 12]]);
  assert.ok(within(word) && !liesOn(end, word));
});

test("a word at an arrow that ends at the edge is all there", () => {
  for (const [length, degrees] of [[174, 90], [174, -90], [224, 0], [224, 180]]) assert.ok(within(placed([tip(length, degrees)], [[40, 12]])[0]));
});

test("words lie on no other word and on no arrow while one of eight places is free", () => {
  let [seed, crowded] = [1, 0];
  const draw = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let round = 0; round < 300; round++) {
    const tips = Array.from({ length: 6 }, (_, at) => tip(60 + 110 * draw(), 60 * at + 40 * draw()));
    const words = placed(tips, tips.map(() => [15 + 15 * draw(), 10]));
    assert.ok(words.every(within));
    const lying = words.some((word, at) => words.slice(0, at).some((other) => meet(word, other)) || tips.some((end) => liesOn(end, word)));
    crowded += Number(lying);
  }
  assert.equal(crowded, 0);
});
