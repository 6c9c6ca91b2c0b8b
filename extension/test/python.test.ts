// Which Python runs the server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { atHome, type Candidate, choose, isOldEnough, parseProbe, PROBE, type Probed } from "../src/python";
import { run } from "../src/run";

const ANSWERS: Record<string, Probed> = {
  "/new": { executable: "/new", version: [3, 12], treefill: "0.1.0", tags: [] },
  "/bare": { executable: "/bare", version: [3, 12], treefill: null, tags: [] },
  "/old": { executable: "/old", version: [3, 9], treefill: null, tags: [] },
};

const probe = (executable: string): Promise<Probed | undefined> => Promise.resolve(ANSWERS[executable]);

function chosen(...candidates: Candidate[]): Promise<unknown> {
  return choose(candidates, probe).then((choice) =>
    choice.kind === "found" ? `${choice.executable} as ${choice.origin}` : choice.sentence,
  );
}

test("the first that has the server runs it", async () => {
  assert.equal(
    await chosen(
      { executable: "/bare", origin: "active environment" },
      { executable: "/new", origin: "private environment" },
    ),
    "/new as private environment",
  );
});

test("what the user has named is never passed over", async () => {
  const other: Candidate = { executable: "/new", origin: "private environment" };
  for (const [executable, trouble] of [
    ["/bare", "treefill is not installed in /bare."],
    ["/old", "/old is Python 3.9, and treefill needs 3.11 or newer."],
    ["/none", "/none (setting) is no Python that runs."],
  ] as const) {
    const remedy = "Change the setting treefill.interpreter, or clear it.";
    assert.equal(await chosen({ executable, origin: "setting" }, other), `${trouble} ${remedy}`);
  }
});

test("where nobody has the server it is offered", async () => {
  assert.equal(await chosen(), "The treefill server is not installed on this machine yet.");
});

test("Python 3.11 and what comes after it are old enough", () => {
  assert.deepEqual(
    [[3, 10], [3, 11], [3, 20], [4, 0], [2, 7]].map(([major, minor]) => isOldEnough([major ?? 0, minor ?? 0])),
    [false, true, true, true, false],
  );
});

test("a real interpreter answers the probe", async () => {
  const ran = await run("python3", ["-c", PROBE]);
  const probed = parseProbe("python3", ran.stdout);
  assert.equal(ran.stderr, "");
  assert.ok(probed && isOldEnough(probed.version));
  assert.match(probed.tags[0] ?? "", /^cp3\d+-cp3\d+-\w+$/);
});

test("noise before the answer is passed over, and what is no answer is none", () => {
  const answer = '{"version": [3, 11], "treefill": null, "tags": []}';
  assert.deepEqual(parseProbe("/x", `warning: site\n${answer}\n`)?.version, [3, 11]);
  assert.equal(parseProbe("/x", "Python was not found; run without arguments to install"), undefined);
});

test("an answer of another shape is none, and what it leaves out is not there", () => {
  for (const answer of ['{"version": "3.11"}', '{"version": 3}', '{"version": [3]}', '{"treefill": "1"}', "null", "[]", "3"]) {
    assert.equal(parseProbe("/x", answer), undefined, answer);
  }
  const bare = { executable: "/x", version: [3, 11], treefill: null, tags: [] };
  assert.deepEqual(parseProbe("/x", '{"version": [3, 11], "treefill": 1, "tags": "cp311"}'), bare);
});

test("a path below one's home is written as in a shell", () => {
  assert.equal(atHome("~/venv/bin/python", "/home/$&"), "/home/$&/venv/bin/python");
  for (const other of ["/a/~/python", "~other/python", "python3"]) assert.equal(atHome(other, "/home/me"), other);
});
