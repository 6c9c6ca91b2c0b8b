// The private environment: a folder of ours with Python packages, made at the press of a button.
//
// The server comes from a wheel that lies in this extension and whose hash is written beside it; what it needs comes
// from the index that pip is set to, each file by its hash. Nothing is installed because of its name alone.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import * as path from "node:path";

import { isOldEnough, OLDEST, type Probed } from "./python";
import { environmentFor, type Ran, run } from "./run";

/** A wheel of the server that came with this extension. */
export interface Wheel {
  readonly file: string;
  readonly sha256: string;
}

export interface Progress {
  readonly signal: AbortSignal;
  /** Told what is being done, for the notification. */
  readonly say: (step: string) => void;
  /** Told each line that pip prints, for the log. */
  readonly log: (line: string) => void;
}

/** What stands in a complete environment: whoever was interrupted has not written it. */
const MARK = "treefill-environment.json";
const NO_PIP = /ensurepip|No module named (pip|venv)/;

/** The interpreter of a complete environment, or undefined. */
export function interpreterOf(folder: string): string | undefined {
  return existsSync(path.join(folder, MARK)) ? pythonIn(folder) : undefined;
}

/** Where a system puts the interpreter of an environment. */
export function pythonIn(folder: string, platform: NodeJS.Platform = process.platform): string {
  return platform === "win32" ? path.join(folder, "Scripts", "python.exe") : path.join(folder, "bin", "python");
}

/** Whether a path is a folder, or lies somewhere in it. */
export function isInside(folder: string, place: string): boolean {
  const way = path.relative(folder, place);
  return way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
}

/** The wheel that an interpreter can install; undefined where none of them is built for it. */
export function wheelFor(tags: readonly string[], wheels: readonly Wheel[]): Wheel | undefined {
  for (const tag of tags) {
    const [python, abi, platform] = tag.split("-");
    const found = wheels.find(({ file }) => {
      const [itsPython, itsAbi, itsPlatforms] = file.replace(/\.whl$/, "").split("-").slice(-3);
      return itsPython === python && itsAbi === abi && (itsPlatforms ?? "").split(".").includes(platform ?? "");
    });
    if (found) return found;
  }
  return undefined;
}

/** The interpreter to make the environment with, and its wheel; or why there is none. */
export function baseOf(
  probed: readonly Probed[],
  wheels: readonly Wheel[],
): { readonly python: Probed; readonly wheel: Wheel } | string {
  const fit = probed.filter(({ version }) => isOldEnough(version));
  if (fit.length === 0) {
    const seen = probed.map(({ executable, version }) => `${executable} is ${version.join(".")}`).join(", ");
    return (
      `No Python ${OLDEST.join(".")} or newer was found${seen ? ` (${seen})` : ""}: install one, ` +
      "or install treefill in one of your own and name that in the setting treefill.interpreter."
    );
  }
  for (const python of fit) {
    const wheel = wheelFor(python.tags, wheels);
    if (wheel) return { python, wheel };
  }
  const built = wheels.map(({ file }) => file.replace(/\.whl$/, "").split("-").slice(-3).join("-")).join(", ");
  return (
    `This extension brings the server built for ${built || "no Python"}, and none of the Pythons here is that ` +
    `(${fit.map(({ executable, tags }) => `${executable}: ${tags[0] ?? "unknown"}`).join(", ")}): install treefill ` +
    "in an environment of your own and name its Python in the setting treefill.interpreter."
  );
}

/** Makes the environment anew. Throws an `Error` whose message is a sentence with the remedy. */
export async function makeEnvironment(
  folder: string,
  server: string,
  python: Probed,
  wheel: Wheel,
  progress: Progress,
): Promise<void> {
  const wheelPath = path.join(server, wheel.file);
  await checkHash(wheelPath, wheel.sha256);
  await removeFolder(folder);
  await mkdir(folder, { recursive: true });
  try {
    progress.say("making an environment");
    await step(python.executable, ["-m", "venv", folder], server, progress, python);
    const own = pythonIn(folder);
    const pip = ["-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--no-input"];
    progress.say("installing what the server needs");
    const requirements = path.join(server, "requirements.txt");
    await step(own, [...pip, "--only-binary", ":all:", "--require-hashes", "-r", requirements], server, progress, python);
    progress.say("installing the server");
    await step(own, [...pip, "--no-index", wheelPath], server, progress, python);
    await writeFile(path.join(folder, MARK), JSON.stringify(wheel));
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

/** What was ended may still run, or write, for a moment: it is tried for some seconds. */
export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** True where the environment was made from another wheel than this extension brings. */
export async function isOutdated(folder: string, wheels: readonly Wheel[]): Promise<boolean> {
  try {
    const made = JSON.parse(await readFile(path.join(folder, MARK), "utf8")) as Wheel;
    return !wheels.some(({ sha256 }) => sha256 === made.sha256);
  } catch {
    return false;
  }
}

async function checkHash(file: string, expected: string): Promise<void> {
  const found = createHash("sha256").update(await readFile(file)).digest("hex");
  if (found !== expected) {
    throw new Error(`${path.basename(file)} is not the file that this extension was made with: install it again.`);
  }
}

async function step(
  command: string,
  args: readonly string[],
  cwd: string,
  progress: Progress,
  python: Probed,
): Promise<void> {
  // The index is the user's choice; where packages go is not: they go into the environment.
  const env = environmentFor({ PIP_USER: "0", PIP_REQUIRE_VIRTUALENV: "0" });
  delete env.PIP_TARGET;
  delete env.PIP_PREFIX;
  const ran = await run(command, args, { cwd, env, signal: progress.signal, onLine: progress.log });
  if (progress.signal.aborted) throw new Error("The installation was cancelled.");
  if (ran.status !== 0) throw new Error(troubleOf(ran, python.executable));
}

/** What went wrong, in a sentence; the log has the rest. */
export function troubleOf(ran: Ran, executable: string): string {
  const said = ran.stderr + ran.stdout;
  if (NO_PIP.test(said)) {
    return `${executable} can't make environments: install its venv package (python3-venv on Debian and Ubuntu).`;
  }
  if (/No space left/.test(said)) return "The disk is full: the environment takes about 200 MB.";
  if (/THESE PACKAGES DO NOT MATCH THE HASHES/.test(said)) {
    return "A downloaded package is not the one that was checked for this version: try another network or index.";
  }
  if (/ConnectionError|Name or service not known|Failed to establish|Temporary failure|TimeoutError|ProxyError/.test(said)) {
    return "The package index can't be reached: connect to a network, or install treefill yourself and name its Python in the setting treefill.interpreter.";
  }
  const last = said.trim().split("\n").filter((line) => /error/i.test(line)).at(-1) ?? said.trim().split("\n").at(-1);
  return `The environment could not be made (${(last ?? "").trim() || `status ${ran.status}`}).`;
}
