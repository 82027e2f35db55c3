// Presses in line: none is lost, none overtakes, and an answer is opened for the question it was meant for alone.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

let title = "one";
const marks = new Set(); // of the page
const documentElement = { toggleAttribute: (/** @type {string} */ name, /** @type {boolean} */ on) => (on ? marks.add(name) : marks.delete(name)) };
globalThis.document = /** @type {any} */ ({ documentElement, querySelector: () => ({ textContent: title }) });
const { arrived, inLine, once } = await import("../../qkdemo/web/presenter/line.js");

let [done, begun] = [[], 0];
const press = (name, does = true) => () => (done.push(name), does);

beforeEach((context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() + 60000 * ++begun });
  arrived();
  [done, title] = [[], "one"];
});

test("what nothing waits for is done at once", () => {
  assert.equal(inLine(press("a", false)), false);
  assert.equal(inLine(press("b")), true);
  assert.deepEqual(done, ["a", "b"]);
});

test("what comes while the page is on its way waits, in order", () => {
  for (const name of ["a", "b", "c"]) inLine(press(name));
  assert.deepEqual(done, ["a"]);
  arrived();
  assert.deepEqual(done, ["a", "b"]);
  assert.ok(marks.has("data-key-waits"));
  arrived();
  assert.deepEqual(done, ["a", "b", "c"]);
  arrived();
  assert.equal(marks.size, 0);
});

test("an answer that was meant for the last question opens nothing in the next", () => {
  inLine(press("next"));
  inLine(press("answer"), true);
  title = "two";
  arrived();
  assert.deepEqual(done, ["next"]);
});

test("what never comes holds nobody up for ever", (context) => {
  inLine(press("a"));
  inLine(press("b"));
  context.mock.timers.tick(60000);
  inLine(press("c"));
  assert.deepEqual(done, ["a", "c"]);
});

test("in a lecture a second press skips nothing: it is dropped until the page is there, and while a finger may slip", (context) => {
  assert.equal(once(press("a")), true);
  assert.equal(once(press("b")), true);
  arrived();
  assert.equal(once(press("c")), true);
  assert.deepEqual(done, ["a"]);
  context.mock.timers.tick(1000);
  once(press("d"));
  assert.deepEqual(done, ["a", "d"]);
});

test("a press that does nothing is none", () => {
  assert.equal(once(press("a", false)), false);
  assert.equal(once(press("b")), true);
  assert.deepEqual(done, ["a", "b"]);
});
