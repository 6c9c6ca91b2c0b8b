// Snoozing ends by the clock, also where the machine has slept through its timer.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Snooze } from "../src/snooze";

test("it ends by itself, and at the user's word", () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    let nChanges = 0;
    const snooze = new Snooze(() => ++nChanges);
    snooze.start(5);
    assert.equal(snooze.until?.getTime(), 5 * 60_000);
    mock.timers.tick(5 * 60_000);
    assert.equal(snooze.until, undefined);
    snooze.start(5);
    snooze.end();
    assert.equal(snooze.until, undefined);
    assert.equal(nChanges, 4);
  } finally {
    mock.timers.reset();
  }
});

test("a machine that has slept is not quiet for longer", () => {
  mock.timers.enable({ apis: ["Date"] });
  const snooze = new Snooze(() => undefined);
  try {
    snooze.start(5);
    mock.timers.setTime(6 * 60_000);
    assert.equal(snooze.until, undefined);
  } finally {
    snooze.dispose();
    mock.timers.reset();
  }
});
