// The rows of an exhibit in the browser: the nearest one is found, and what arrives late is put where it belongs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LiveSweep } from "../../qkdemo/web/exhibit/rows/feed.js";
import { Sweep } from "../../qkdemo/web/exhibit/rows/sweep.js";
import { thinned } from "../../qkdemo/web/exhibit/drawn/thinned.js";

const DIAL = [0.1, 0.3, 1, 3, 10, 200];

function column(values) {
  const bytes = new Uint8Array(Float64Array.from(values).buffer);
  const apart = new Uint8Array(bytes.length); // all first bytes, then all second ones, as they travel
  for (let byte = 0; byte < 8; byte++) {
    for (let i = 0; i < values.length; i++) apart[byte * values.length + i] = bytes[8 * i + byte];
  }
  return { kind: "f8", width: 1, data: apart };
}

function sweep(log, values = DIAL) {
  return new Sweep({ rows: values.length, columns: new Map([["scale", column(values)]]) }, { column: "scale", log });
}

test("numbers arrive as they were sent", () => {
  assert.deepEqual([...sweep(true).numbers("scale")], DIAL);
});

test("the row under a place is the nearest one, on any dial", () => {
  for (const [log, values] of [[true, DIAL], [false, DIAL], [true, [0, 1, 7, 500]]]) {
    const found = sweep(log, values);
    for (let place = -0.2; place <= 1.2; place += 0.0137) {
      const away = [...found.places].map((other) => Math.abs(other - place));
      assert.equal(away[found.rowAt(place)], Math.min(...away), `${place} of ${values}`);
    }
    values.forEach((value, row) => assert.equal(found.rowOf(value), row));
  }
});

test("a column that is not there is named", () => {
  assert.throws(() => sweep(true).numbers("gain"), /gain/);
});

const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const message = (first, losses, texts = {}, maps = {}, mapped = []) => ({
  first,
  count: losses.length,
  scalars: base64(new Uint8Array(Float32Array.from(losses).buffer)),
  texts,
  maps,
  mapped,
});

test("rows of a run are taken in order, once", () => {
  const run = new LiveSweep({ steps: 4, columns: ["loss"] });
  assert.equal(run.append(message(1, [3, 2], { finding: [0, "a", 1, "b"] })), true);
  assert.equal(run.append(message(1, [9, 9])), false); // again
  assert.equal(run.append(message(4, [9])), false); // one is missing
  assert.equal(run.append(message(3, [NaN, 1], { finding: [0, "c"] })), true);
  assert.equal(run.append(message(5, [0])), false); // more than there are
  assert.deepEqual([...run.numbers("loss")], [3, 2, NaN, 1]);
  assert.deepEqual([0, 1, 2, 3, 4].map((row) => run.text("finding", row)), ["a", "b", "c", "c", ""]);
  while (run.reveal()) assert.ok(run.rows <= run.arrived);
  assert.equal(run.rowOf(99), 3);
});

test("steps that came together are shown one after another, and many at once when they are many", () => {
  const run = new LiveSweep({ steps: 200, columns: ["loss"] });
  run.append(message(1, [1, 2, 3]));
  const seen = [run.rows];
  while (run.reveal()) seen.push(run.rows);
  assert.deepEqual(seen, [0, 1, 2, 3]);
  run.append(message(4, Array.from({ length: 12 }, () => 1)));
  run.reveal();
  assert.ok(run.rows > 4 && run.rows < 15); // who comes fast is not shown late
  run.append(message(16, Array.from({ length: 150 }, () => 1)));
  assert.equal(run.rows, 165); // a browser that came late, or back
});

test("of a column of pixels a line keeps its first, lowest, highest and last point", () => {
  const few = [0, 1, 10, 5, 20, 3];
  assert.equal(thinned(few), few);
  assert.deepEqual(thinned([]), []);
  const heights = Array.from({ length: 1000 }, (_, i) => (i % 7) + (i === 500 ? 90 : 0));
  const line = heights.flatMap((y, i) => [i / 100, y]);
  const kept = thinned(line);
  assert.ok(kept.length / 2 <= 4 * 10 && kept.length < line.length);
  assert.deepEqual([kept.slice(0, 2), kept.slice(-2)], [line.slice(0, 2), line.slice(-2)]);
  assert.ok(kept.includes(90 + (500 % 7)));
  for (let column = 0; column < 10; column++) {
    const inside = (points) => points.filter((_, at) => at % 2 && Math.floor(points[at - 1]) === column);
    assert.equal(Math.min(...inside(kept)), Math.min(...inside(line)));
    assert.equal(Math.max(...inside(kept)), Math.max(...inside(line)));
  }
  for (let at = 2; at < kept.length; at += 2) assert.ok(kept[at] > kept[at - 2]);
});

test("a causal map is half sent, and its other half is masked", () => {
  const run = new LiveSweep({ steps: 3, columns: [] });
  const [early, late] = [[250, 10, 240], [250, 0, 251]];
  run.append(message(1, [], {}, { map: base64([...early, ...late]) }, [1, 3]));
  run.append({ ...message(1, []), count: 3 });
  assert.deepEqual([...run.list("map", 0)], [250, 254, 10, 240]);
  assert.deepEqual([...run.list("map", 1)], [250, 254, 10, 240]); // the latest that there is
  assert.deepEqual([...run.list("map", 2)], [250, 254, 0, 251]);
  assert.equal(run.stepOfList(1), 1);
});
