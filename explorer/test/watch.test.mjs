// Looking again and again, with a clock and a server that do what the test says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle } from "./bundle.mjs";

const { watch } = await bundle("state/watch.ts");

/** Watches something that answers when the test wants it to; `looks` are the questions, oldest first. */
function watching(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const told = { looks: [], seen: [], failed: [] };
  const read = (signal) => new Promise((answer, refuse) => told.looks.push({ signal, answer, refuse }));
  const watched = watch({ read, seen: (one) => told.seen.push(one), failed: (error) => told.failed.push(error.message), every: () => 1000 });
  t.after(watched.stop);
  return { ...told, ...watched };
}

/** Answers are heard a few microtasks later. */
const heard = () => new Promise(setImmediate);

test("an old answer never takes the place of a newer one, and looks do not multiply", async (t) => {
  const { looks, seen, wake } = watching(t);
  wake();
  wake();
  assert.equal(looks.length, 3);
  assert.deepEqual(looks.map(({ signal }) => signal.aborted), [true, true, false]);
  looks[2].answer("new");
  await heard();
  looks[0].answer("old");
  looks[1].refuse(new Error("given up"));
  await heard();
  assert.deepEqual(seen, ["new"]);
  t.mock.timers.tick(1000);
  assert.equal(looks.length, 4, "one look follows, not one for each that was begun");
});

test("a look that fails is followed by the next", async (t) => {
  const { looks, seen, failed } = watching(t);
  looks[0].refuse(new Error("restarting"));
  await heard();
  assert.deepEqual(failed, ["restarting"]);
  t.mock.timers.tick(1000);
  looks[1].answer("back");
  await heard();
  assert.deepEqual(seen, ["back"]);
});

test("what is stopped neither looks again nor tells what it hears", async (t) => {
  const { looks, seen, failed, stop } = watching(t);
  stop();
  assert.ok(looks[0].signal.aborted);
  looks[0].answer("late");
  await heard();
  t.mock.timers.tick(10_000);
  assert.equal(looks.length, 1);
  assert.deepEqual([seen, failed], [[], []]);
});
