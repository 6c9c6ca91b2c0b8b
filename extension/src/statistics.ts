// The statistics page: what the server has counted, as a page with a plot. No script runs in it.

export interface Day {
  readonly day: string;
  readonly offered: number;
  readonly accepted: number;
  readonly partly_accepted: number;
  readonly characters_accepted: number;
}

export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly n: number;
}

export interface Syntax {
  readonly guarded_share: number | null;
  readonly guarded_tokens: number;
  readonly refused_first: number;
  readonly cut: number;
  readonly invalid: number;
}

/** The answer of the server's command `treefill.statistics`. */
export interface Statistics {
  readonly since: string | null;
  readonly days: readonly Day[];
  readonly total: Omit<Day, "day">;
  readonly acceptance_rate: number | null;
  readonly kept_share: number | null;
  readonly latency_ms: Readonly<Record<string, Percentiles>>;
  readonly cache: { readonly reused_tokens: number; readonly evaluated_tokens: number };
  readonly declined: Readonly<Record<string, number>>;
  /** Servers of before do not tell it. */
  readonly syntax?: Syntax;
}

const N_DAYS = 30;
const HEIGHT = 120;
const WIDTH = 18;

export function statisticsPage(found: Statistics): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>treefill statistics</title>
<style>
  body { font-family: var(--vscode-font-family); color: var(--vscode-foreground); max-width: 60em; margin: 2em auto; }
  table { border-collapse: collapse; margin: 1em 0; }
  td, th { padding: 0.25em 1.5em 0.25em 0; text-align: left; font-weight: normal; }
  td.number { text-align: right; font-variant-numeric: tabular-nums; }
  .offered { fill: var(--vscode-charts-lines); opacity: 0.5; }
  .accepted { fill: var(--vscode-charts-green); }
  text { fill: var(--vscode-descriptionForeground); font-size: 10px; }
  p.note { color: var(--vscode-descriptionForeground); }
</style>
</head>
<body>
<h1>Suggestions</h1>
<p class="note">Counted on this machine${found.since ? ` since ${escape(found.since)}` : ""}; numbers only, and nothing is sent anywhere.</p>
${plot(found.days.slice(-N_DAYS))}
${table(rows(found))}
<h2>Why nothing was suggested</h2>
${table(Object.entries(found.declined).sort((a, b) => b[1] - a[1]).map(([reason, n]) => [reason, `${n}`]))}
</body>
</html>`;
}

function rows({ total, acceptance_rate, kept_share, latency_ms, cache, syntax }: Statistics): [string, string][] {
  const n_tokens = cache.reused_tokens + cache.evaluated_tokens;
  return [
    ["offered", `${total.offered}`],
    ["accepted", `${total.accepted} and ${total.partly_accepted} in part`],
    ["of those offered", percent(acceptance_rate)],
    ["still there a minute later", percent(kept_share)],
    ["characters saved", `${total.characters_accepted}`],
    ...Object.entries(latency_ms).map(([kind, found]): [string, string] => [
      `milliseconds to an answer, ${kind}`,
      found.n ? `${ms(found.p50)} half of the time, ${ms(found.p95)} in 95 of 100 (${found.n} answers)` : "none yet",
    ]),
    ["tokens of prompts that were reused", percent(n_tokens ? cache.reused_tokens / n_tokens : null)],
    ...(syntax ? syntaxRows(syntax) : []),
  ];
}

function syntaxRows({ guarded_share, guarded_tokens, refused_first, cut, invalid }: Syntax): [string, string][] {
  return [
    ["answers that the grammar watched while they were written", percent(guarded_share)],
    ["tokens for which it refused the model's first choice", `${refused_first} of ${guarded_tokens}`],
    ["suggestions cut or kept back as invalid", `${cut} and ${invalid}`],
  ];
}

/** Two bars a day: offered, and before it what was accepted of that. */
function plot(days: readonly Day[]): string {
  const most = Math.max(1, ...days.map(({ offered }) => offered));
  const bar = (kind: string, n: number, index: number): string => {
    const height = (n / most) * HEIGHT;
    return `<rect class="${kind}" x="${index * WIDTH}" y="${(HEIGHT - height).toFixed(1)}" width="${WIDTH - 4}" height="${height.toFixed(1)}"/>`;
  };
  const bars = days.map(
    ({ day, offered, accepted, partly_accepted }, index) =>
      `<g><title>${escape(`${day}: ${offered} offered, ${accepted + partly_accepted} accepted`)}</title>` +
      bar("offered", offered, index) +
      bar("accepted", accepted + partly_accepted, index) +
      "</g>",
  );
  const width = Math.max(days.length * WIDTH, 200);
  const ends = [days.at(0)?.day, days.length > 1 ? days.at(-1)?.day : undefined];
  return `<svg role="img" aria-label="Suggestions offered and accepted by day" width="${width}" height="${HEIGHT + 16}">
${bars.join("\n")}
<text x="0" y="${HEIGHT + 12}">${escape(ends[0] ?? "no day yet")}</text>
${ends[1] ? `<text x="${width}" y="${HEIGHT + 12}" text-anchor="end">${escape(ends[1])}</text>` : ""}
</svg>`;
}

function table(lines: readonly (readonly [string, string])[]): string {
  if (lines.length === 0) return "<p>Nothing yet.</p>";
  const row = ([name, value]: readonly [string, string]): string =>
    `<tr><th scope="row">${escape(name)}</th><td class="number">${escape(value)}</td></tr>`;
  return `<table>${lines.map(row).join("")}</table>`;
}

function percent(share: number | null): string {
  return share === null ? "none yet" : `${(100 * share).toFixed(0)} %`;
}

function ms(value: number | null): string {
  return value === null ? "–" : value.toFixed(0);
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
