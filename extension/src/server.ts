// The language server's life: found, started, watched, started again, ended. The language client does the rest.

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  ShowMessageNotification,
  MessageType,
} from "vscode-languageclient/node";

import type { Log } from "./log";
import { tell } from "./log";
import type { Choice, Remedy } from "./python";
import { Crashes, OneAtATime, within } from "./restarts";
import { environmentFor } from "./run";
import { type ServerSettings } from "./settings";
import type { Phase, ServerStatus } from "./status";

/** Documents that suggestions come for. In a remote window they are files of the machine that this runs on. */
export const SCHEMES = ["file", "untitled", "vscode-notebook-cell"];

const STOP_LIMIT_MS = 2000;
const START_LIMIT_MS = 30_000; // of a start that never ends, each further one would wait for its end
const CHOOSE_MODEL = "Choose Model…";
const STARTING: ServerStatus = {
  busy: true, message: "starting", kind: "Normal", state: "starting", percent: 0, model: "", tokensPerSecond: 0,
};

export interface ServerHost {
  readonly log: Log;
  /** A folder of ours: nothing of a workspace's is imported from it. */
  readonly folder: string;
  find(): Promise<Choice>;
  settings(): ServerSettings;
  /** True while nothing is to be suggested, whatever is asked. */
  isPaused(): boolean;
  onPhase(phase: Phase): void;
  onMissing(sentence: string, remedy: Remedy): void;
}

/** A client that leaves it to us what a user is told of its errors. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server implements vscode.Disposable {
  /** The interpreter that runs the server, where one does. */
  interpreter: string | undefined;
  private client: LanguageClient | undefined;
  private readonly crashes = new Crashes();
  private readonly restarts = new OneAtATime(() => this.startAnew());
  private isDisposed = false;
  private isToldAlready = false;

  constructor(private readonly host: ServerHost) {}

  /**
   * Starts the server, or starts it anew. One start runs, one may wait; further calls join that one. In a folder that
   * nobody trusts nothing starts, whoever asks. Never rejects.
   *
   * @param isToldAlready The user has just been told why there may be no server.
   */
  restart(isToldAlready = false): Promise<void> {
    if (!vscode.workspace.isTrusted) return Promise.resolve();
    this.isToldAlready = isToldAlready;
    this.crashes.forget();
    return this.restarts.run();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    // A client that is still starting can't be stopped, and one that is not running has nothing to end.
    await client?.dispose(STOP_LIMIT_MS).catch((error: unknown) => this.host.log.warn(`At its end: ${String(error)}`));
  }

  /** Ends the server, and a start that is under way comes to nothing. */
  async end(): Promise<void> {
    this.isDisposed = true;
    await this.stop();
  }

  dispose(): void {
    void this.end();
  }

  /** Asks the server to carry out one of its commands; undefined where it is not there. */
  async command<T>(command: string, ...args: unknown[]): Promise<T | undefined> {
    const { client } = this;
    if (!client?.isRunning()) return undefined;
    try {
      return await client.sendRequest<T>("workspace/executeCommand", { command, arguments: args });
    } catch (error) {
      this.host.log.warn(`${command} was not answered: ${String(error)}`);
      return undefined;
    }
  }

  /** The server asks for the settings that it wants to know. */
  async tellSettingsChanged(): Promise<void> {
    if (!this.client?.isRunning()) return;
    try {
      await this.client.sendNotification("workspace/didChangeConfiguration", { settings: null });
    } catch (error) {
      this.host.log.warn(`The server was not told of the settings: ${String(error)}`); // it has just ended
    }
  }

  private async startAnew(): Promise<void> {
    if (this.isDisposed) return;
    try {
      await this.stop();
      this.interpreter = undefined;
      await this.findAndStart();
    } catch (error) {
      this.giveUp(`The server could not be started (${String(error)}).`);
    }
  }

  private async findAndStart(): Promise<void> {
    this.host.onPhase({ kind: "starting" });
    const found = await this.host.find();
    if (this.isDisposed) return;
    if (found.kind === "missing") {
      this.host.onPhase(found);
      if (!this.isToldAlready) this.host.onMissing(found.sentence, found.remedy);
      return;
    }
    this.interpreter = found.executable;
    this.host.log.info(`Server ${found.version} in ${found.executable} (${found.origin}).`);
    await this.start(found.executable);
  }

  private async start(executable: string): Promise<void> {
    const client = this.newClient(executable);
    this.client = client;
    client.onNotification("didChangeStatus", (status: Partial<ServerStatus>) => {
      if (this.client === client) this.host.onPhase({ kind: "running", server: { ...STARTING, ...status } });
    });
    client.onNotification(ShowMessageNotification.type, ({ type, message }) => void this.show(type, message));
    try {
      await within(START_LIMIT_MS, client.start());
    } catch (error) {
      this.host.log.error(`The server could not be started: ${String(error)}`);
      this.followEnd(client);
      await client.dispose(STOP_LIMIT_MS).catch(() => undefined); // which ends the process of one that is starting
    }
  }

  private newClient(executable: string): LanguageClient {
    const env = environmentFor(this.host.settings().environment);
    const client: LanguageClient = new QuietClient(
      "treefill",
      "treefill",
      { command: executable, args: ["-m", "treefill", "serve"], options: { cwd: this.host.folder, env } },
      {
        documentSelector: SCHEMES.map((scheme) => ({ scheme })),
        // Nothing is started in a folder that nobody trusts, so what is open here is trusted.
        initializationOptions: { statusNotifications: true, trustsWorkspace: true },
        outputChannel: this.host.log,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => {
            this.followEnd(client);
            return { action: CloseAction.DoNotRestart, handled: true };
          },
        },
        initializationFailedHandler: () => false,
        middleware: {
          provideInlineCompletionItems: (document, position, context, token, next) =>
            this.host.isPaused() ? [] : next(document, position, context, token),
          workspace: {
            configuration: ({ items }) => items.map(() => this.host.settings().section),
          },
        },
      },
    );
    return client;
  }

  /** The server has ended without being asked to: it is found and started anew, but not for ever. */
  private followEnd(client: LanguageClient): void {
    if (this.client !== client) return; // it was ended, or its end has been followed already
    this.client = undefined;
    if (this.crashes.mayRestart(Date.now())) {
      this.host.log.warn("The server has ended unexpectedly; it is started again.");
      this.host.onPhase({ kind: "starting" });
      this.isToldAlready = false;
      void this.restarts.run();
    } else {
      this.giveUp("The server has ended unexpectedly several times within minutes; it is not started again.");
    }
  }

  private giveUp(sentence: string): void {
    this.host.onPhase({ kind: "stopped", sentence });
    void tell(this.host.log, "error", `treefill: ${sentence}`, "Restart").then((pressed) => {
      if (pressed === "Restart") void this.restart();
    });
  }

  private async show(type: MessageType, message: string): Promise<void> {
    const severity = type === MessageType.Error ? "error" : type === MessageType.Warning ? "warning" : "info";
    const buttons = message.includes("treefill model") ? [CHOOSE_MODEL] : [];
    if ((await tell(this.host.log, severity, message, ...buttons)) === CHOOSE_MODEL) {
      await vscode.commands.executeCommand("treefill.chooseModel");
    }
  }
}
