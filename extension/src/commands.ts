// The commands of the palette and of the status item's menu.

import * as os from "node:os";
import * as vscode from "vscode";

import type { StatusItem } from "./item";
import { type Log, tell } from "./log";
import { choosable, complaintOf, type Model, progressOf } from "./models";
import type { Pages } from "./pages";
import { environmentFor, type Ran, run, type RunOptions } from "./run";
import type { Server } from "./server";
import { toggled } from "./settings";
import type { Setup } from "./setup";
import type { Snooze } from "./snooze";
import { type Statistics, statisticsPage } from "./statistics";

export const INSTALL = "Set Up";
const TRUST = "Manage Trust";

/** What the commands work on. */
export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly log: Log;
  readonly server: Server;
  readonly setup: Setup;
  readonly item: StatusItem;
  readonly snooze: Snooze;
  readonly pages: Pages;
  /** Environment variables that the user's settings come to. */
  environment(): Readonly<Record<string, string>>;
}

type Command = (parts: Parts) => Promise<void>;

export const COMMANDS: Readonly<Record<string, Command>> = {
  "treefill.trigger": trigger,
  "treefill.toggleLanguage": toggleLanguage,
  "treefill.toggleWorkspace": toggleWorkspace,
  "treefill.snooze": snooze,
  "treefill.chooseModel": chooseModel,
  "treefill.explainLast": explainLast,
  "treefill.showStatistics": showStatistics,
  "treefill.runDoctor": runDoctor,
  "treefill.restart": restart,
  "treefill.install": install,
  "treefill.showLog": showLog,
  "treefill.tryIt": tryIt,
  "treefill.removeEverything": removeEverything,
  "treefill.menu": menu,
};

async function trigger(): Promise<void> {
  await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
}

async function toggleLanguage(): Promise<void> {
  const language = vscode.window.activeTextEditor?.document.languageId;
  if (!language) {
    await vscode.window.showInformationMessage("treefill: Open a file of the language first.");
    return;
  }
  const settings = vscode.workspace.getConfiguration("treefill");
  const set = settings.inspect("disabledLanguages");
  // Where the workspace has a list of its own, the user's is not looked at.
  const [now, target] =
    set?.workspaceValue === undefined
      ? [set?.globalValue, vscode.ConfigurationTarget.Global]
      : [set.workspaceValue, vscode.ConfigurationTarget.Workspace];
  await settings.update("disabledLanguages", toggled(now, language), target);
}

async function toggleWorkspace(): Promise<void> {
  if (!vscode.workspace.workspaceFolders) {
    await vscode.window.showInformationMessage("treefill: No folder is open that could be switched off.");
    return;
  }
  const settings = vscode.workspace.getConfiguration("treefill");
  await settings.update("enabled", !settings.get<boolean>("enabled"), vscode.ConfigurationTarget.Workspace);
}

async function snooze({ snooze: current }: Parts): Promise<void> {
  const choices = [5, 15, 30, 60, 240].map((minutes) => ({
    label: minutes < 60 ? `${minutes} minutes` : `${minutes / 60} hour${minutes > 60 ? "s" : ""}`,
    minutes,
  }));
  const end = { label: "Suggest again", minutes: 0 };
  const chosen = await vscode.window.showQuickPick(current.until ? [end, ...choices] : choices, {
    title: "treefill: no suggestions for",
  });
  if (!chosen) return;
  if (chosen.minutes === 0) {
    current.end();
  } else {
    current.start(chosen.minutes);
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
  }
}

async function chooseModel(parts: Parts): Promise<void> {
  const listed = await answerOf(parts, ["model", "list"]);
  if (!listed) return;
  const settings = vscode.workspace.getConfiguration("treefill");
  const current = settings.inspect<string>("model")?.globalValue ?? "";
  const models = choosable(listed as Model[], os.totalmem(), current);
  const chosen = await vscode.window.showQuickPick(models, { title: "treefill: the model that completes" });
  if (!chosen || (!chosen.installed && !(await pull(parts, chosen.name)))) return;
  if (chosen.name === current) {
    await parts.server.restart(); // the model may be new
  } else {
    await settings.update("model", chosen.name, vscode.ConfigurationTarget.Global); // which starts the server anew
  }
}

async function pull(parts: Parts, name: string): Promise<boolean> {
  const pulled = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: `treefill: ${name}`, cancellable: true },
    async (progress, token) => {
      const aborting = new AbortController();
      token.onCancellationRequested(() => aborting.abort());
      let done = "";
      const onLine = (line: string): void => {
        const told = progressOf(line);
        if (!told) parts.log.info(line);
        else progress.report({ message: (done = `${told.label} ${told.percent} %`) });
      };
      const ran = await treefill(parts, ["model", "pull", name, "--progress-lines"], { signal: aborting.signal, onLine });
      if (aborting.signal.aborted) parts.log.info(`Pulling ${name} was cancelled at: ${done}`);
      return ran;
    },
  );
  return pulled !== undefined;
}

async function explainLast({ server, pages }: Parts): Promise<void> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString() ?? "";
  const told = await server.command<{ markdown: string }>("treefill.explain", uri, "markdown");
  await pages.show("Last completion", told?.markdown ?? "# The last completion\n\nThe server is not running.\n");
}

async function showStatistics({ server }: Parts): Promise<void> {
  const found = await server.command<Statistics>("treefill.statistics");
  if (!found) {
    await vscode.window.showInformationMessage("treefill: The server is not running, so nothing is counted.");
    return;
  }
  const panel = vscode.window.createWebviewPanel("treefill.statistics", "treefill statistics", vscode.ViewColumn.Active, {
    localResourceRoots: [],
  });
  panel.webview.html = statisticsPage(found);
}

async function runDoctor(parts: Parts): Promise<void> {
  const found = await answerOf(parts, ["doctor"], [0, 1]);
  if (!found) return;
  const { checks } = found as {
    checks: { name: string; is_ok: boolean; found: string; remedy: string }[];
  };
  const lines = checks.map(
    ({ name, is_ok, found, remedy }) => `- ${is_ok ? "OK" : "**MEND**"} ${name}: ${found}${remedy && `. ${remedy}`}`,
  );
  const about = `Run by ${parts.server.interpreter ?? "no Python"}.`;
  await parts.pages.show("Doctor", `# Is everything here that a completion needs?\n\n${lines.join("\n")}\n\n${about}\n`);
}

async function restart({ log, server }: Parts): Promise<void> {
  if (isTrusted(log)) await server.restart();
}

async function install(parts: Parts): Promise<void> {
  const { log, setup, server } = parts;
  if (!isTrusted(log)) return;
  await server.stop(); // it may run in the environment that is made anew
  const installed = await setup.install();
  if (installed.kind === "failed") void offerAgain(parts, installed.sentence);
  await server.restart(installed.kind !== "made"); // also where it failed: the status tells what there is
}

async function offerAgain({ log }: Parts, sentence: string): Promise<void> {
  const pressed = await tell(log, "error", `treefill: ${sentence}`, INSTALL);
  if (pressed === INSTALL) await vscode.commands.executeCommand("treefill.install");
}

/** False in a folder that nobody trusts, where no program is run; the user has been told then. */
function isTrusted(log: Log): boolean {
  if (!vscode.workspace.isTrusted) void offerTrust(log);
  return vscode.workspace.isTrusted;
}

async function offerTrust(log: Log): Promise<void> {
  const sentence = "treefill: Nothing runs in a folder that you have not trusted: trust it first.";
  if ((await tell(log, "warning", sentence, TRUST)) === TRUST) {
    await vscode.commands.executeCommand("workbench.trust.manage");
  }
}

function showLog({ log }: Parts): Promise<void> {
  log.show();
  return Promise.resolve();
}

/** The last step of the walkthrough: a file in which a suggestion comes. */
async function tryIt(): Promise<void> {
  const content = "def celsius_to_fahrenheit(celsius: float) -> float:\n    return ";
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  const editor = await vscode.window.showTextDocument(document);
  const end = document.positionAt(content.length);
  editor.selection = new vscode.Selection(end, end);
  await trigger();
}

async function removeEverything(parts: Parts): Promise<void> {
  const remove = "Remove";
  const detail = parts.server.interpreter
    ? "The models that treefill has pulled, the Python environment that it has made and what it has counted are " +
      "deleted, and the extension is uninstalled. Settings are kept."
    : "The Python environment that treefill has made is deleted, and the extension is uninstalled. Models, if there are " +
      "any, stay: no Python here runs the server, which knows where they are.";
  if (!isTrusted(parts.log)) return;
  const pressed = await vscode.window.showWarningMessage("Remove treefill and its models?", { modal: true, detail }, remove);
  if (pressed !== remove) return;
  if (parts.server.interpreter) {
    const listed = ((await answerOf(parts, ["model", "list"])) ?? []) as Model[];
    const installed = listed.filter((model) => model.installed);
    for (const { name } of installed) await treefill(parts, ["model", "remove", name]);
    await treefill(parts, ["stats", "--forget"]);
  }
  await parts.server.end();
  await parts.setup.remove();
  await vscode.commands.executeCommand("workbench.extensions.uninstallExtension", parts.context.extension.id);
}

async function menu(parts: Parts): Promise<void> {
  const { contributes } = parts.context.extension.packageJSON as {
    contributes: { commands: { command: string; title: string }[] };
  };
  const shown = contributes.commands.filter(({ command }) => command !== "treefill.menu");
  const chosen = await vscode.window.showQuickPick(
    shown.map(({ command, title }) => ({ label: title, command })),
    { title: "treefill" },
  );
  if (chosen) await vscode.commands.executeCommand(chosen.command);
}

/** What the command line answers as JSON; undefined where there is no such answer, which has been told then. */
async function answerOf(parts: Parts, args: readonly string[], okStatus?: readonly number[]): Promise<unknown> {
  const ran = await treefill(parts, [...args, "--json"], { okStatus });
  try {
    return ran && (JSON.parse(ran.stdout) as unknown);
  } catch {
    const sentence = `The treefill in ${parts.server.interpreter ?? "Python"} is not one that this extension understands`;
    void tell(parts.log, "error", `treefill: ${sentence}: set it up again, or change treefill.interpreter.`);
    return undefined;
  }
}

/** Runs the command line of the server's own Python; undefined where it failed, which has been told then. */
async function treefill(
  parts: Parts,
  args: readonly string[],
  options: RunOptions & { readonly okStatus?: readonly number[] } = {},
): Promise<Ran | undefined> {
  if (!isTrusted(parts.log)) return undefined;
  const { interpreter } = parts.server;
  if (!interpreter) {
    void tell(parts.log, "warning", "treefill: No Python here runs the server yet: set it up first.");
    return undefined;
  }
  const env = environmentFor(parts.environment());
  const ran = await run(interpreter, ["-m", "treefill", ...args], { cwd: parts.context.extensionPath, env, ...options });
  if ((options.okStatus ?? [0]).includes(ran.status)) return ran;
  if (!options.signal?.aborted) void tell(parts.log, "error", `treefill: ${complaintOf(ran.stderr)}`);
  return undefined;
}
