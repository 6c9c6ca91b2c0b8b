// Two windows never make the private environment at once.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { alone } from "../src/alone";

function file(): string {
  return path.join(mkdtempSync(path.join(tmpdir(), "treefill-")), "folder", "lock");
}

test("the second is told, the first is not disturbed, and afterwards the way is free", async () => {
  const lock = file();
  let n = 0;
  const count = (): Promise<void> => {
    ++n;
    return Promise.resolve();
  };
  await alone(lock, "busy", async () => {
    await assert.rejects(alone(lock, "busy", count), /^Error: busy$/);
    assert.ok(existsSync(lock));
  });
  await alone(lock, "busy", count);
  assert.equal(n, 1);
  assert.equal(existsSync(lock), false);
});

test("an action that fails frees the way", async () => {
  const lock = file();
  await assert.rejects(alone(lock, "busy", () => Promise.reject(new Error("no"))), /no/);
  assert.equal(existsSync(lock), false);
});

test("a process that ended in the midst of it holds up nobody", async () => {
  const lock = file();
  await alone(lock, "busy", () => Promise.resolve());
  const gone = spawnSync("sh", ["-c", "echo $$"]).stdout.toString();
  writeFileSync(lock, gone);
  await alone(lock, "busy", () => Promise.resolve());

  writeFileSync(lock, "");
  await assert.rejects(alone(lock, "busy", () => Promise.resolve()), /busy/);
  utimesSync(lock, 0, 0);
  await alone(lock, "busy", () => Promise.resolve());
});
