// A program that is run says how it went, whatever it is.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { environmentFor, run } from "../src/run";

test("what can't be started says why, and nothing is raised", async () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "treefill-")), "file");
  writeFileSync(file, "");
  for (const command of ["/nowhere/python", file, path.join(file, "python"), "a\0b", "", `/${"a".repeat(5000)}`]) {
    const ran = await run(command, []);
    assert.equal(ran.status, -1, command);
    assert.notEqual(ran.stderr, "", command);
  }
  assert.equal((await run("sh", [], { env: { A: "a\0b" } })).status, -1);
});

test("a program that is ended is not waited for because of what it has started", async () => {
  const began = Date.now();
  const ran = await run("sh", ["-c", "sleep 30; true"], { timeoutMs: 200 });
  assert.equal(ran.status, -1);
  assert.ok(Date.now() - began < 10_000);
});

test("what a shell says of Python is left out, however it is written", () => {
  const shell = { PYTHONPATH: "/a", PythonHome: "/b", PYTHONUTF8: "1", PATH: "/bin" };
  assert.deepEqual(environmentFor({ TREEFILL_MODEL: "m" }, shell), { PYTHONUTF8: "1", PATH: "/bin", TREEFILL_MODEL: "m" });
});
