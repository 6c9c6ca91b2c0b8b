// The server's life, from the first start to the editor's end; the editor and the language client are stubs.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import type { Log } from "../src/log";
import type { Choice } from "../src/python";
import { Server } from "../src/server";
import { starts } from "./stubs/client";
import { editor } from "./stubs/vscode";

const FOUND: Choice = { kind: "found", executable: "/python", origin: "setting", version: "0.1.0" };
const MISSING: Choice = { kind: "missing", sentence: "Not installed.", remedy: "set up" };
const LOG = new Proxy({}, { get: () => () => undefined }) as Log;

let phases: string[];
let missing: string[];

beforeEach(() => {
  phases = [];
  missing = [];
  starts.clients = [];
  starts.behave = () => Promise.resolve();
  editor.isTrusted = true;
  editor.told = [];
});

function serverThat(find: () => Promise<Choice>): Server {
  return new Server({
    log: LOG,
    folder: "/extension",
    find,
    settings: () => ({ environment: {}, section: {} }),
    isPaused: () => false,
    onPhase: ({ kind }) => phases.push(kind),
    onMissing: (sentence) => missing.push(sentence),
  });
}

function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 10));
}

test("g22: in a folder that nobody trusts nothing is looked for and nothing starts, whoever asks", async () => {
  editor.isTrusted = false;
  const server = serverThat(() => Promise.reject(new Error("A program was looked for.")));
  await server.restart();
  assert.deepEqual([starts.clients.length, phases], [0, []]);

  editor.isTrusted = true;
  await serverThat(() => Promise.resolve(FOUND)).restart();
  assert.equal(starts.clients.length, 1);
});

test("a server that dies again and again is given up with one message", async () => {
  await serverThat(() => Promise.resolve(FOUND)).restart();
  for (let n = 0; n < 4; ++n) {
    starts.clients.at(-1)?.die();
    await settled();
  }
  assert.equal(starts.clients.length, 4);
  assert.equal(phases.at(-1), "stopped");
  assert.equal(editor.told.length, 1);
});

test("so is one that never comes up", async () => {
  starts.behave = () => Promise.reject(new Error("no libraries"));
  await serverThat(() => Promise.resolve(FOUND)).restart();
  await settled();
  assert.equal(starts.clients.length, 4);
  assert.equal(editor.told.length, 1);
});

test("a server that was ended on purpose is not started again", async () => {
  const server = serverThat(() => Promise.resolve(FOUND));
  await server.restart();
  await server.stop();
  starts.clients[0]?.die();
  await settled();
  assert.equal(starts.clients.length, 1);
});

test("what is missing is told, unless the user has just been told", async () => {
  const server = serverThat(() => Promise.resolve(MISSING));
  await server.restart();
  await server.restart(true);
  assert.deepEqual(missing, ["Not installed."]);
  assert.deepEqual(phases, ["starting", "missing", "starting", "missing"]);
});

test("whatever goes wrong in a start is told and can be mended", async () => {
  let choice = (): Promise<Choice> => Promise.reject(new Error("odd"));
  const server = serverThat(() => choice());
  await server.restart();
  assert.deepEqual([phases.at(-1), editor.told], ["stopped", ["treefill: The server could not be started (Error: odd)."]]);

  choice = () => Promise.resolve(FOUND);
  await server.restart();
  assert.equal(starts.clients.length, 1);
});

test("a start that is under way when the editor ends comes to nothing", async () => {
  let find: (choice: Choice) => void = () => undefined;
  const server = serverThat(() => new Promise((resolve) => (find = resolve)));
  const started = server.restart();
  await settled();
  await server.end();
  find(FOUND);
  await started;
  await server.restart();
  assert.equal(starts.clients.length, 0);
});

test("a server that dies while it is asked answers nothing, and nothing is raised", async () => {
  const server = serverThat(() => Promise.resolve(FOUND));
  await server.restart();
  await server.tellSettingsChanged();
  assert.equal(await server.command("treefill.explain"), undefined);
});
