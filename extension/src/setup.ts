// Finding the server on this machine, and setting it up where it is not there.

import { readFile, rm } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";

import { baseOf, interpreterOf, isOutdated, makeEnvironment, type Wheel } from "./environment";
import { type Log, tell } from "./log";
import { type Candidate, choose, type Choice, parseProbe, PROBE, type Probed } from "./python";
import { environmentFor, run } from "./run";
import { isSet } from "./settings";
import type { Phase } from "./status";

const PROBE_LIMIT_MS = 20_000;
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

export class Setup {
  /** The private environment. */
  readonly folder: string;
  private readonly server: string;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: Log,
    private readonly onPhase: (phase: Phase) => void,
  ) {
    this.folder = path.join(context.globalStorageUri.fsPath, "environment");
    this.server = path.join(context.extensionPath, "server");
  }

  /** The interpreter that runs the server, or why there is none. */
  async find(): Promise<Choice> {
    return choose(await this.candidates(), (executable) => this.probe(executable));
  }

  /** Asks, makes the private environment with progress, and resolves to whether it is there now. */
  async install(): Promise<boolean> {
    try {
      const base = baseOf(await this.bases(), await this.wheels());
      if (typeof base === "string") throw new Error(base);
      await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "treefill", cancellable: true },
        async (progress, token) => {
          const aborting = new AbortController();
          token.onCancellationRequested(() => aborting.abort());
          await makeEnvironment(this.folder, this.server, base.python, base.wheel, {
            signal: aborting.signal,
            say: (step) => {
              progress.report({ message: step });
              this.onPhase({ kind: "installing", step });
            },
            log: (line) => this.log.info(line),
          });
        },
      );
      return true;
    } catch (error) {
      await tell(this.log, "error", `treefill: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }

  /** Removes the private environment. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  private async candidates(): Promise<Candidate[]> {
    const named = vscode.workspace.getConfiguration("treefill").inspect<unknown>("interpreter")?.globalValue;
    if (isSet(named)) return [{ executable: String(named), origin: "setting" }];
    const active = await this.activeInterpreter();
    const own = (await isOutdated(this.folder, await this.wheels())) ? undefined : interpreterOf(this.folder);
    return [
      ...(active ? [{ executable: active, origin: "active environment" } as const] : []),
      ...(own ? [{ executable: own, origin: "private environment" } as const] : []),
    ];
  }

  /** The environment that the Python extension has active, where that extension is installed. */
  private async activeInterpreter(): Promise<string | undefined> {
    const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
    try {
      const { environments } = (await extension?.activate()) ?? {};
      const active = environments?.getActiveEnvironmentPath();
      return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
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

  private async wheels(): Promise<Wheel[]> {
    try {
      return JSON.parse(await readFile(path.join(this.server, "wheels.json"), "utf8")) as Wheel[];
    } catch {
      return [];
    }
  }
}
