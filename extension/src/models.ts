// Models as `treefill model list --json` tells of them, and as a person chooses among them.

export interface Model {
  readonly name: string;
  readonly licence: string | null;
  readonly installed: boolean;
  readonly in_use: boolean;
  readonly is_default: boolean;
  readonly download_bytes: number;
  readonly stored_bytes: number;
}

export interface Choosable {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly name: string;
  readonly installed: boolean;
}

/** What front, core and a context take beside the mapped weights. */
const SPARE_BYTES = 500_000_000;

/** The models in the order of their sizes; those that are too large for this machine say so. */
export function choosable(models: readonly Model[], memoryBytes: number, current: string): Choosable[] {
  return [...models].sort((a, b) => sizeOf(a) - sizeOf(b)).map((model) => ({
    label: model.name,
    description: [
      (current ? model.name === current : model.in_use) && "in use",
      model.installed ? "on this machine" : `download of ${megabytes(model.download_bytes)}`,
      model.is_default && "default",
    ].filter(Boolean).join(" · "),
    detail: `${suits(model, memoryBytes)}${model.licence ? `; licence ${model.licence}` : ""}`,
    name: model.name,
    installed: model.installed,
  }));
}

function suits(model: Model, memoryBytes: number): string {
  const needed = sizeOf(model) + SPARE_BYTES;
  const size = `takes about ${megabytes(needed)} of memory`;
  return needed <= memoryBytes / 2 ? `Suits this machine: ${size}` : `Large for this machine: ${size}`;
}

function sizeOf(model: Model): number {
  return model.installed ? model.stored_bytes : model.download_bytes;
}

export function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

/** What `treefill model pull --progress-lines` prints of its progress, or undefined for any other line. */
export function progressOf(line: string): { readonly label: string; readonly percent: number } | undefined {
  try {
    const told = JSON.parse(line) as { progress?: { label: string; done: number; total: number } };
    if (!told.progress) return undefined;
    const { label, done, total } = told.progress;
    if (![done, total].every(Number.isFinite)) return undefined;
    return { label, percent: total > 0 ? Math.min(100, Math.floor((100 * done) / total)) : 0 };
  } catch {
    return undefined;
  }
}

/** The last sentence that the command line has said: what went wrong, in the words for a person. */
export function complaintOf(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("{"));
  return (lines.at(-1) ?? "It ended without a word.").replace(/^treefill: /, "");
}
