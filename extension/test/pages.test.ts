// Models to choose from, progress, and the statistics page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { choosable, complaintOf, megabytes, progressOf } from "../src/models";
import { type Statistics, statisticsPage } from "../src/statistics";

const SMALL = {
  name: "small", licence: "apache-2.0", installed: true, in_use: true, is_default: true,
  download_bytes: 490e6, stored_bytes: 800e6,
};
const LARGE = { ...SMALL, name: "large", licence: null, installed: false, in_use: false, is_default: false, download_bytes: 7e9 };

test("models come in the order of their sizes and say what suits the machine", () => {
  assert.deepEqual(choosable([LARGE, SMALL], 8e9, "").map(({ label, description, detail }) => [label, description, detail]), [
    ["small", "in use · on this machine · default", "Suits this machine: takes about 1.3 GB of memory; licence apache-2.0"],
    ["large", "download of 7.0 GB", "Large for this machine: takes about 7.5 GB of memory"],
  ]);
});

test("the setting says which one is in use", () => {
  assert.deepEqual(choosable([SMALL, LARGE], 8e9, "large").map(({ description }) => description.includes("in use")), [false, true]);
});

test("the command line's progress is read, and its complaints", () => {
  assert.deepEqual(progressOf('{"progress": {"label": "Downloading", "done": 25, "total": 50}}'), { label: "Downloading", percent: 50 });
  assert.equal(progressOf("About to download 491 MB."), undefined);
  assert.equal(progressOf("{broken"), undefined);
  for (const line of ["null", "5", '{"progress": 5}', '{"progress": {"label": "x", "done": "a", "total": 1}}']) {
    assert.equal(progressOf(line), undefined, line);
  }
  assert.equal(complaintOf('x\n{"progress": {}}\ntreefill: No such model.\n'), "No such model.");
  assert.equal(complaintOf(""), "It ended without a word.");
  assert.equal(megabytes(491_400_000), "491 MB");
});

const NOTHING: Statistics = {
  since: null, days: [], declined: {}, latency_ms: {}, acceptance_rate: null, kept_share: null,
  total: { offered: 0, accepted: 0, partly_accepted: 0, characters_accepted: 0 },
  cache: { reused_tokens: 0, evaluated_tokens: 0 },
};

test("a page without figures says so and divides by nothing", () => {
  const page = statisticsPage(NOTHING);
  assert.match(page, /no day yet/);
  assert.doesNotMatch(page, /NaN|undefined|null/);
});

test("what the grammars did is told where the server tells it", () => {
  const syntax = { guarded_share: 0.75, guarded_tokens: 400, refused_first: 12, cut: 3, invalid: 1 };
  const page = statisticsPage({ ...NOTHING, syntax });
  assert.match(page, />75 %</);
  assert.match(page, />12 of 400</);
  assert.match(page, />3 and 1</);
  assert.doesNotMatch(statisticsPage(NOTHING), /grammar/);
});

test("what is no number, in a file that was tampered with, is shown as text", () => {
  const day = { day: "<i>", offered: "<b>" as unknown as number, accepted: 0, partly_accepted: 0, characters_accepted: 0 };
  assert.doesNotMatch(statisticsPage({ ...NOTHING, since: "<i>", days: [day], total: day }), /<[bi]>/);
});

test("a page has a bar for each day and runs no script", () => {
  const day = { day: "2026-11-30", offered: 10, accepted: 4, partly_accepted: 1, characters_accepted: 200 };
  const page = statisticsPage({
    ...NOTHING, since: "2026-11-30", days: [day, { ...day, day: "2026-12-01", offered: 20 }], total: day,
    acceptance_rate: 0.5, kept_share: 0.9, declined: { "<b>comment</b>": 3 },
    latency_ms: { decoded: { p50: 180, p95: 240, p99: null, n: 14 } }, cache: { reused_tokens: 90, evaluated_tokens: 10 },
  });
  assert.equal(page.match(/class="offered"/g)?.length, 2);
  assert.match(page, /2026-11-30: 10 offered, 5 accepted/);
  assert.match(page, /180 half of the time, 240 in 95 of 100 \(14 answers\)/);
  assert.match(page, />90 %</);
  assert.match(page, /&#60;b&#62;comment/);
  assert.doesNotMatch(page, /<script|<b>/);
});
