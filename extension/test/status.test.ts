// What the status item shows.

import assert from "node:assert/strict";
import { test } from "node:test";

import { obstacles, rivals } from "../src/others";
import { type Phase, present, type ServerStatus, type Situation } from "../src/status";

const READY: ServerStatus = {
  busy: false, message: "ready", kind: "Normal", state: "ready", percent: 0, model: "qwen", tokensPerSecond: 39.5,
};

function shown(phase: Phase, more: Partial<Situation> = {}): string {
  const { text, tooltip, severity } = present({ phase, disabledHere: "", obstacles: [], rivals: [], ...more });
  return [text, severity, ...tooltip].join(" | ");
}

function running(server: Partial<ServerStatus>, more: Partial<Situation> = {}): string {
  return shown({ kind: "running", server: { ...READY, ...server } }, more);
}

test("a start is told from the first moment to the model's name", () => {
  assert.equal(shown({ kind: "starting" }), "$(loading~spin) treefill | normal | The server is starting.");
  assert.equal(running({ state: "loading", percent: 0 }), "$(loading~spin) treefill: loading | normal | The model is loading.");
  assert.equal(running({ state: "loading", percent: 40 }), "$(loading~spin) treefill: 40 % | normal | The model is loading: 40 %.");
  assert.equal(running({}), "$(sparkle) treefill | normal | Ready: qwen. | The last suggestion came at 39.5 tokens a second.");
  assert.match(running({ state: "working" }), /^\$\(sync~spin\) treefill/);
});

test("a model that was put away is told so", () => {
  assert.match(running({ model: "", tokensPerSecond: 0 }), /Ready; the model is loaded when it is needed\.$/);
});

test("what is wrong comes before everything else", () => {
  const until = { snoozedUntil: new Date(2026, 0, 1, 9, 5), disabledHere: "Switched off." };
  assert.equal(running({ kind: "Error", message: "No model." }, until), "$(error) treefill | error | No model.");
  assert.equal(running({ kind: "Warning", message: "Gone." }), "$(warning) treefill | warning | Gone.");
  assert.equal(shown({ kind: "stopped", sentence: "It died." }), "$(error) treefill | error | It died.");
});

test("quiet has its reason", () => {
  const snoozedUntil = new Date(2026, 0, 1, 9, 5);
  assert.equal(running({}, { snoozedUntil }), "$(bell-slash) treefill | normal | Snoozed until 09:05.");
  assert.equal(running({}, { disabledHere: "Switched off for sql." }), "$(circle-slash) treefill | normal | Switched off for sql.");
  assert.match(shown({ kind: "untrusted" }), /not trusted/);
  assert.match(shown({ kind: "missing", sentence: "Not installed.", remedy: "set up" }), /warning \| Not installed\. \| Click to set it up\.$/);
  assert.match(shown({ kind: "missing", sentence: "Change it.", remedy: "change setting" }), /warning \| Change it\.$/);
  assert.match(shown({ kind: "installing", step: "fetching" }), /Setting up: fetching\./);
});

test("an editor that shows no suggestions, and others that make some, are hinted at", () => {
  assert.deepEqual([...obstacles(true), ...rivals(["ms-python.python"])], []);
  const [off] = obstacles(false);
  assert.match(off ?? "", /^The editor shows no suggestions: switch on/);
  assert.match(running({}, { obstacles: [off ?? ""] }), /^\$\(warning\) treefill \| warning \| Ready: qwen\./);
  assert.match(running({ kind: "Error", message: "No." }, { obstacles: [off ?? ""] }), /^\$\(error\) treefill \| error/);
});

test("who else suggests code is told and is nothing wrong", () => {
  assert.match(rivals(["GitHub.copilot"])[0] ?? "", /^GitHub Copilot suggests code here, too/);
  const both = rivals(["GitHub.copilot", "continue.continue"]);
  assert.match(both[0] ?? "", /^GitHub Copilot and Continue suggest code here/);
  assert.match(running({}, { rivals: both }), /^\$\(sparkle\) treefill \| normal \| Ready: qwen\..*Continue suggest/);
});
