// Finding the server on this machine, and setting it up where it is not there.

import { readFile, realpath } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

import { alone } from "./alone";
import { baseOf, interpreterOf, isInside, isOutdated, makeEnvironment, removeFolder, type Wheel } from "./environment";
import { type Log } from "./log";
import { atHome, type Candidate, choose, type Choice, parseProbe, PROBE, type Probed } from "./python";
import { within } from "./restarts";
import { environmentFor, run } from "./run";
import { isSet } from "./settings";
import type { Phase } from "./status";

const PROBE_LIMIT_MS = 20_000;
const PYTHON_LIMIT_MS = 20_000;
const OUTDATED = "The server was set up by another version of this extension: set it up anew.";
const BUSY = "Another window is making the environment: wait until it is done there, then restart the server here.";
const PYTHONS = [
  "python3", "python", "python3.14", "python3.13", "python3.12", "python3.11",
  ...(process.platform === "win32" ? ["py"] : []),
];

/** What the extension `ms-python.python` offers to others, as far as it is used here. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string },
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

/** How it went to make the private environment; who has cancelled it need not be told so. */
export type Installed =
  | { readonly kind: "made" | "cancelled" }
  | { readonly kind: "failed"; readonly sentence: string };

export class Setup {
  /** The private environment. */
  readonly folder: string;
  private readonly server: string;
  private installing: Promise<Installed> | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: Log,
    private readonly onPhase: (phase: Phase) => void,
  ) {
    this.folder = path.join(context.globalStorageUri.fsPath, "environment");
    this.server = path.join(context.extensionPath, "server");
  }

  /** The interpreter that runs the server, or why there is none; what is being installed is waited for. */
  async find(): Promise<Choice> {
    await this.installing;
    const choice = await choose(await this.candidates(), (executable) => this.probe(executable));
    if (choice.kind === "found" || choice.remedy !== "set up") return choice;
    return (await this.isOutdated()) ? { ...choice, sentence: OUTDATED } : choice;
  }

  /** Makes the private environment with progress; whoever asks meanwhile joins. Never rejects. */
  install(): Promise<Installed> {
    this.installing ??= this.installOnce().finally(() => (this.installing = undefined));
    return this.installing;
  }

  private async installOnce(): Promise<Installed> {
    const aborting = new AbortController();
    this.onPhase({ kind: "installing", step: "looking for a Python" });
    try {
      const base = baseOf(await this.bases(), await this.wheels());
      if (typeof base === "string") return { kind: "failed", sentence: base };
      await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "treefill", cancellable: true },
        async (progress, token) => {
          token.onCancellationRequested(() => aborting.abort());
          const steps = {
            signal: aborting.signal,
            say: (step: string) => {
              progress.report({ message: step });
              this.onPhase({ kind: "installing", step });
            },
            log: (line: string) => this.log.info(line),
          };
          await alone(`${this.folder}.lock`, BUSY, () =>
            makeEnvironment(this.folder, this.server, base.python, base.wheel, steps),
          );
        },
      );
      return { kind: "made" };
    } catch (error) {
      if (aborting.signal.aborted) return { kind: "cancelled" };
      return { kind: "failed", sentence: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Removes the private environment. */
  async remove(): Promise<void> {
    await this.installing;
    await removeFolder(this.folder);
  }

  private async candidates(): Promise<Candidate[]> {
    const named = vscode.workspace.getConfiguration("treefill").inspect<unknown>("interpreter")?.globalValue;
    if (isSet(named)) return [{ executable: atHome(String(named), os.homedir()), origin: "setting" }];
    const active = await this.activeInterpreter();
    const own = (await this.isOutdated()) ? undefined : interpreterOf(this.folder);
    return [
      ...(active ? [{ executable: active, origin: "active environment" } as const] : []),
      ...(own ? [{ executable: own, origin: "private environment" } as const] : []),
    ];
  }

  /**
   * The environment that the Python extension has active. One that lies in the folder at hand is passed over: the
   * folder would bring the program that is run, and what is imported.
   */
  private async activeInterpreter(): Promise<string | undefined> {
    const active = await this.toldByPython();
    if (!active || !(await isInWorkspace(active))) return active;
    this.log.info(`${active} lies in this folder: it runs the server only if treefill.interpreter names it.`);
    return undefined;
  }

  private async toldByPython(): Promise<string | undefined> {
    const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
    try {
      return extension && (await within(PYTHON_LIMIT_MS, activeIn(extension)));
    } catch (error) {
      this.log.warn(`The Python extension did not tell its environment: ${String(error)}`);
      return undefined;
    }
  }

  private async bases(): Promise<Probed[]> {
    const active = await this.activeInterpreter();
    const probed = await Promise.all([...(active ? [active] : []), ...PYTHONS].map((each) => this.probe(each)));
    return probed.filter((each) => each !== undefined);
  }

  private async probe(executable: string): Promise<Probed | undefined> {
    // In a folder of ours: what lies in the one at hand must not be imported.
    const ran = await run(executable, ["-c", PROBE], {
      cwd: this.context.extensionPath,
      timeoutMs: PROBE_LIMIT_MS,
      env: environmentFor(),
    });
    const probed = ran.status === 0 ? parseProbe(executable, ran.stdout) : undefined;
    if (!probed) this.log.debug(`${executable}: ${ran.stderr.trim() || `status ${ran.status}`}`);
    return probed;
  }

  private async isOutdated(): Promise<boolean> {
    return isOutdated(this.folder, await this.wheels());
  }

  private async wheels(): Promise<Wheel[]> {
    try {
      return JSON.parse(await readFile(path.join(this.server, "wheels.json"), "utf8")) as Wheel[];
    } catch {
      return [];
    }
  }
}

async function activeIn(extension: vscode.Extension<PythonExtension>): Promise<string | undefined> {
  const { environments } = await extension.activate();
  const active = environments?.getActiveEnvironmentPath();
  return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
}

async function isInWorkspace(executable: string): Promise<boolean> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  // An environment's interpreter is itself a link to one that lies elsewhere; it is its folder that counts.
  const places = [path.dirname(executable), await resolved(path.dirname(executable))];
  const roots = [...folders, ...(await Promise.all(folders.map(resolved)))];
  return places.some((place) => roots.some((root) => isInside(root, place)));
}

function resolved(folder: string): Promise<string> {
  return realpath(folder).catch(() => folder);
}
