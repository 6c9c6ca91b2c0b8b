// Which Python runs the server: what an interpreter says of itself, and in what order interpreters are asked.

import { textsOf } from "./settings";

export const OLDEST: Version = [3, 11];

export type Version = readonly [major: number, minor: number];

/** What an interpreter says of itself. */
export interface Probed {
  readonly executable: string;
  readonly version: Version;
  /** The version of treefill that is installed there, or null. */
  readonly treefill: string | null;
  /** Tags of the wheels that it can install, the best first. */
  readonly tags: readonly string[];
}

/** Where an interpreter was found: in the user's setting, as the active environment, or made by this extension. */
export type Origin = "setting" | "active environment" | "private environment";

export interface Candidate {
  readonly executable: string;
  readonly origin: Origin;
}

/** An interpreter that runs the server, or why none does. */
export type Choice =
  | { readonly kind: "found"; readonly executable: string; readonly origin: Origin; readonly version: string }
  | { readonly kind: "missing"; readonly sentence: string; readonly remedy: Remedy };

/** What helps where no interpreter runs the server: setting it up, or another value of the user's setting. */
export type Remedy = "set up" | "change setting";

/**
 * Prints what `parseProbe` reads. It runs in any Python that can be met, so it is written for an old one, and it does
 * not import treefill: that would take longer than the answer is worth.
 */
export const PROBE = `
import json, sys
answer = {"version": list(sys.version_info[:2]), "treefill": None, "tags": []}
try:
    from importlib import metadata
    try:
        answer["treefill"] = metadata.version("treefill")
    except metadata.PackageNotFoundError:
        pass
    import sysconfig
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    own = "cp%d%d" % sys.version_info[:2]
    # Other Pythons, and CPython without its lock, take wheels of other names.
    if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        answer["tags"] = [own + "-" + own + "-" + platform]
        if sys.version_info[:2] >= (3, 12):
            answer["tags"].append("cp312-abi3-" + platform)
except (ImportError, AttributeError):
    pass
print(json.dumps(answer))
`;

/** What the probe has printed; undefined where that is nothing of ours. */
export function parseProbe(executable: string, output: string): Probed | undefined {
  try {
    const line = output.trim().split("\n").at(-1) ?? "";
    const { version, treefill, tags } = JSON.parse(line) as Partial<Record<keyof Probed, unknown>>;
    if (!isVersion(version)) return undefined;
    return { executable, version, treefill: typeof treefill === "string" ? treefill : null, tags: textsOf(tags) };
  } catch {
    return undefined;
  }
}

function isVersion(value: unknown): value is Version {
  return Array.isArray(value) && value.length === 2 && value.every((part) => Number.isInteger(part));
}

export function isOldEnough(version: Version): boolean {
  return version[0] > OLDEST[0] || (version[0] === OLDEST[0] && version[1] >= OLDEST[1]);
}

/** A path as a person writes it: `~/venv/bin/python`. */
export function atHome(executable: string, home: string): string {
  return executable.replace(/^~(?=[/\\])/, () => home);
}

/**
 * The first candidate that has the server. What the user has named is obeyed or complained of, never passed over.
 */
export async function choose(
  candidates: readonly Candidate[],
  probe: (executable: string) => Promise<Probed | undefined>,
): Promise<Choice> {
  for (const candidate of candidates) {
    const probed = await probe(candidate.executable);
    const trouble = troubleWith(candidate, probed);
    if (!trouble && probed?.treefill) {
      return { kind: "found", ...candidate, version: probed.treefill };
    }
    if (candidate.origin === "setting") {
      const sentence = `${trouble} Change the setting treefill.interpreter, or clear it.`;
      return { kind: "missing", sentence, remedy: "change setting" };
    }
  }
  return { kind: "missing", sentence: "The treefill server is not installed on this machine yet.", remedy: "set up" };
}

function troubleWith(candidate: Candidate, probed: Probed | undefined): string {
  const { executable, origin } = candidate;
  if (!probed) return `${executable} (${origin}) is no Python that runs.`;
  if (!isOldEnough(probed.version)) {
    return `${executable} is Python ${probed.version.join(".")}, and treefill needs ${OLDEST.join(".")} or newer.`;
  }
  return probed.treefill ? "" : `treefill is not installed in ${executable}.`;
}
