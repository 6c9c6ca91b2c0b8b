// A server that dies is started again, but not for ever; a restart runs once, and one may wait.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Crashes, OneAtATime, within } from "../src/restarts";

test("the fourth crash within minutes is the last", () => {
  const crashes = new Crashes();
  assert.deepEqual([0, 1000, 2000, 3000].map((at) => crashes.mayRestart(at)), [true, true, true, false]);
});

test("a crash a day is started again for ever, and who restarts by hand begins anew", () => {
  const crashes = new Crashes();
  for (let day = 0; day < 10; ++day) assert.equal(crashes.mayRestart(day * 86_400_000), true);
  for (let n = 0; n < 2; ++n) crashes.mayRestart(9 * 86_400_000);
  crashes.forget();
  assert.equal(crashes.mayRestart(9 * 86_400_000), true);
});

test("of many restarts one runs and one waits", async () => {
  const finish: (() => void)[] = [];
  const restarts = new OneAtATime(() => new Promise((resolve) => finish.push(resolve)));
  const all = [restarts.run(), restarts.run(), restarts.run()];
  assert.equal(finish.length, 1);
  finish[0]?.();
  await all[0];
  await new Promise(setImmediate);
  assert.equal(finish.length, 2);
  finish[1]?.();
  await Promise.all(all);
  assert.equal(finish.length, 2);
});

test("a restart that fails lets the one that waits run", async () => {
  let n = 0;
  const restarts = new OneAtATime(() => (++n === 1 ? Promise.reject(new Error("no")) : Promise.resolve()));
  const first = restarts.run();
  const second = restarts.run();
  await assert.rejects(first, /no/);
  await second;
  assert.equal(n, 2);
});

test("what never ends is given up after its time, and what ends is not held up", async () => {
  assert.equal(await within(60_000, Promise.resolve(5)), 5);
  await assert.rejects(within(60_000, Promise.reject(new Error("no"))), /no/);
  await assert.rejects(within(20, new Promise(() => undefined)), /longer than 0\.02 s/);
});

test("a start that always takes too long is given up as well", () => {
  const crashes = new Crashes();
  assert.deepEqual([30, 60, 90, 120].map((s) => crashes.mayRestart(s * 1000)), [true, true, true, false]);
});
