// What the user has set, as the server gets it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Inspected, serverName, serverSettings, toggled } from "../src/settings";

const PROPERTIES = {
  "treefill.maxLines": { scope: "window" },
  "treefill.mode": { scope: "window" },
  "treefill.cacheDir": { scope: "machine" },
  "treefill.threads": { scope: "machine" },
  "treefill.modelSources": { scope: "machine" },
};

function settings(set: Record<string, Inspected>): unknown {
  return serverSettings(PROPERTIES, (key) => set[key]);
}

test("what nobody has set is not handed on", () => {
  assert.deepEqual(settings({ "treefill.cacheDir": { globalValue: "" } }), { environment: {}, section: {} });
});

test("the innermost value of a suggestion's setting counts", () => {
  assert.deepEqual(settings({ "treefill.maxLines": { globalValue: 3, workspaceValue: 4 }, "treefill.mode": { globalValue: "line" } }), {
    environment: {},
    section: { max_lines: 4, mode: "line" },
  });
});

test("g22: what a workspace says of a path, a size or a source is not looked at", () => {
  const hostile = { workspaceValue: "/tmp/evil", workspaceFolderValue: "/tmp/evil" };
  assert.deepEqual(
    settings({ "treefill.cacheDir": hostile, "treefill.threads": { ...hostile, globalValue: 2 }, "treefill.modelSources": hostile }),
    { environment: { TREEFILL_THREADS: "2" }, section: {} },
  );
});

test("lists go by the environment as JSON", () => {
  assert.deepEqual(settings({ "treefill.modelSources": { globalValue: ["wheels"] } }), {
    environment: { TREEFILL_MODEL_SOURCES: '["wheels"]' },
    section: {},
  });
});

test("names are the server's", () => {
  assert.equal(serverName("treefill.nNeighbourTokens"), "n_neighbour_tokens");
});

test("a language is switched off and on again", () => {
  assert.deepEqual(toggled(["sql"], "markdown"), ["markdown", "sql"]);
  assert.deepEqual(toggled(["markdown", "sql"], "markdown"), ["sql"]);
  for (const wrong of [undefined, null, 5, "python", { a: 1 }]) assert.deepEqual(toggled(wrong, "sql"), ["sql"]);
  assert.deepEqual(toggled(["c", 5], "sql"), ["c", "sql"]);
});
