// The private environment: which wheel, which Python, and what is said when it can't be made.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { baseOf, interpreterOf, isInside, isOutdated, makeEnvironment, pythonIn, troubleOf, wheelFor } from "../src/environment";
import type { Probed } from "../src/python";

const WHEELS = [
  { file: "treefill-0.1.0-cp311-cp311-manylinux_2_28_x86_64.linux_x86_64.whl", sha256: "a" },
  { file: "treefill-0.1.0-cp312-abi3-macosx_11_0_arm64.whl", sha256: "b" },
];

function python(minor: number, platform = "linux_x86_64"): Probed {
  const own = `cp3${minor}`;
  const tags = [`${own}-${own}-${platform}`, ...(minor >= 12 ? [`cp312-abi3-${platform}`] : [])];
  return { executable: `/usr/bin/python3.${minor}`, version: [3, minor], treefill: null, tags };
}

test("an interpreter gets the wheel that was built for it", () => {
  assert.equal(wheelFor(python(11).tags, WHEELS)?.sha256, "a");
  assert.equal(wheelFor(python(13, "macosx_11_0_arm64").tags, WHEELS)?.sha256, "b");
  assert.equal(wheelFor(python(12).tags, WHEELS), undefined);
});

test("the first Python that a wheel fits is taken", () => {
  const base = baseOf([python(9), python(12), python(11)], WHEELS);
  assert.ok(typeof base !== "string");
  assert.equal(base.python.executable, "/usr/bin/python3.11");
});

test("no Python, an old one, and one that no wheel fits each say what to do", () => {
  assert.match(baseOf([], WHEELS) as string, /^No Python 3\.11 or newer was found: install one, or install treefill in one of your own/);
  assert.match(baseOf([python(9)], WHEELS) as string, /\(\/usr\/bin\/python3\.9 is 3\.9\): install one/);
  assert.match(baseOf([python(13)], WHEELS) as string, /none of the Pythons here is that .*treefill\.interpreter\.$/);
});

test("a wheel that was altered is not installed, and nothing is left", async () => {
  const server = mkdtempSync(path.join(tmpdir(), "treefill-"));
  const wheel = { file: "treefill.whl", sha256: createHash("sha256").update("right").digest("hex") };
  writeFileSync(path.join(server, wheel.file), "wrong");
  const folder = path.join(server, "environment");
  const progress = { signal: new AbortController().signal, say: () => undefined, log: () => undefined };
  await assert.rejects(makeEnvironment(folder, server, python(11), wheel, progress), /install it again/);
  assert.equal(existsSync(folder), false);
});

test("a step that fails leaves no environment behind, and the log has what it said", async () => {
  const server = mkdtempSync(path.join(tmpdir(), "treefill-"));
  const wheel = { file: "treefill.whl", sha256: createHash("sha256").update("right").digest("hex") };
  writeFileSync(path.join(server, wheel.file), "right");
  writeFileSync(path.join(server, "requirements.txt"), "");
  const folder = path.join(server, "environment");
  const lines: string[] = [];
  const progress = { signal: new AbortController().signal, say: () => undefined, log: (line: string) => lines.push(line) };
  await assert.rejects(
    makeEnvironment(folder, server, { ...python(11), executable: "python3" }, wheel, progress),
    /could not be made/,
  );
  assert.equal(existsSync(folder), false);
  assert.equal(interpreterOf(folder), undefined);
  assert.ok(lines.some((line) => line.includes("treefill.whl")));
});

test("a cancelled installation says so", async () => {
  const server = mkdtempSync(path.join(tmpdir(), "treefill-"));
  const wheel = { file: "treefill.whl", sha256: createHash("sha256").update("right").digest("hex") };
  writeFileSync(path.join(server, wheel.file), "right");
  const aborting = new AbortController();
  aborting.abort();
  const progress = { signal: aborting.signal, say: () => undefined, log: () => undefined };
  const folder = path.join(server, "environment");
  await assert.rejects(
    makeEnvironment(folder, server, { ...python(11), executable: "python3" }, wheel, progress),
    /The installation was cancelled\./,
  );
});

test("what pip says becomes a sentence with a remedy", () => {
  for (const [stderr, sentence] of [
    ["The virtual environment was not created because ensurepip is not available.", /python3-venv on Debian/],
    ["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", /not the one that was checked/],
    ["NewConnectionError('<pip._vendor.urllib3>: Failed to establish a new connection')", /can't be reached/],
    ["ReadTimeoutError('HTTPSConnectionPool')", /can't be reached/],
    ["OSError: [Errno 28] No space left on device", /The disk is full/],
    ["whatever\nERROR: something new\nand a hint", /\(ERROR: something new\)/],
  ] as const) {
    assert.match(troubleOf({ status: 1, stdout: "", stderr }, "/usr/bin/python3"), sentence);
  }
});

test("an environment's interpreter is where its system puts it", () => {
  assert.equal(pythonIn("/e", "linux"), path.join("/e", "bin", "python"));
  assert.equal(pythonIn("/e", "win32"), path.join("/e", "Scripts", "python.exe"));
});

test("g22: an environment that a folder brings is told from one that lies beside it", () => {
  for (const inside of ["/code/a", "/code/a/.venv/bin", "/code/a/..b/bin"]) assert.ok(isInside("/code/a", inside), inside);
  for (const outside of ["/code", "/code/ab/bin", "/usr/bin"]) assert.ok(!isInside("/code/a", outside), outside);
});

test("an environment that another version of this extension has made is made anew", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "treefill-"));
  assert.equal(await isOutdated(folder, WHEELS), false);
  writeFileSync(path.join(folder, "treefill-environment.json"), JSON.stringify({ file: "old", sha256: "old" }));
  assert.equal(await isOutdated(folder, WHEELS), true);
  writeFileSync(path.join(folder, "treefill-environment.json"), JSON.stringify(WHEELS[0]));
  assert.equal(await isOutdated(folder, WHEELS), false);
});

test("every requirement is pinned and has a hash, and the server is not among them", () => {
  const text = readFileSync(path.join(__dirname, "..", "..", "server", "requirements.txt"), "utf8");
  const blocks = text.split(/\n(?=\S)/).filter((block) => /^[a-z0-9]/i.test(block));
  assert.ok(blocks.length > 10);
  for (const block of blocks) assert.match(block, /^[\w.-]+(\[[\w,]+\])?==[\w.]+[^]*--hash=sha256:[0-9a-f]{64}/);
  assert.doesNotMatch(text, /^(treefill|torch|transformers|bitsandbytes)==/m);
});
