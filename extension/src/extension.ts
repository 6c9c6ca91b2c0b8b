// Makes everything once and connects it. The suggestions themselves are the language client's work.

import * as vscode from "vscode";

import { COMMANDS, INSTALL, type Parts } from "./commands";
import { StatusItem } from "./item";
import { openLog, tell } from "./log";
import { Pages } from "./pages";
import type { Remedy } from "./python";
import { SCHEMES, Server } from "./server";
import { type Property, serverSettings, type ServerSettings } from "./settings";
import { Setup } from "./setup";
import { Snooze } from "./snooze";

const CHANGE_SETTING = "Change Setting";

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = openLog();
  const pages = new Pages();
  const snooze: Snooze = new Snooze(() => item.show());
  const item: StatusItem = new StatusItem(() => snooze.until);
  const setup = new Setup(context, log, (phase) => item.follow(phase));
  const settings = (): ServerSettings => settingsOf(context);
  const server = new Server({
    log,
    folder: context.extensionPath,
    find: () => setup.find(),
    settings,
    isPaused: () => snooze.until !== undefined,
    onPhase: (phase) => item.follow(phase),
    onMissing: (sentence, remedy) => void offer(sentence, remedy),
  });
  running = server;
  const parts: Parts = {
    context, log, server, setup, item, snooze, pages, environment: () => settings().environment,
  };

  async function offer(sentence: string, remedy: Remedy): Promise<void> {
    const pressed = await tell(log, "warning", `treefill: ${sentence}`, remedy === "set up" ? INSTALL : CHANGE_SETTING);
    if (pressed === INSTALL) await vscode.commands.executeCommand("treefill.install");
    if (pressed === CHANGE_SETTING) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "treefill.interpreter");
    }
  }

  context.subscriptions.push(
    pages, snooze, item, server,
    ...Object.entries(COMMANDS).map(([id, command]) =>
      vscode.commands.registerCommand(id, () => command(parts)),
    ),
    vscode.workspace.onDidChangeConfiguration((event) => followSettings(event, parts)),
    vscode.window.onDidChangeActiveTextEditor(() => item.show()),
    vscode.workspace.onDidOpenTextDocument((document) => tellScheme(document.uri.scheme)),
    vscode.extensions.onDidChange(() => item.show()),
    log, // last: what ends before it may still have something to say
  );

  const told = new Set([...SCHEMES, "output", "treefill"]); // our own pages and logs are no news
  function tellScheme(scheme: string): void {
    if (told.has(scheme)) return;
    told.add(scheme);
    log.info(`Nothing is suggested in documents of the kind ${scheme}.`);
  }

  if (vscode.workspace.isTrusted) {
    void server.restart();
  } else {
    // A folder that nobody trusts starts no program, whatever it says of itself.
    item.follow({ kind: "untrusted" });
    context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => void server.restart()));
  }
}

export async function deactivate(): Promise<void> {
  await running?.end();
}

function followSettings(event: vscode.ConfigurationChangeEvent, { server, item, context }: Parts): void {
  item.show();
  if (!event.affectsConfiguration("treefill") || !vscode.workspace.isTrusted) return;
  const atStart = Object.entries(properties(context)).filter(([, { scope }]) => scope === "machine");
  if (atStart.some(([key]) => event.affectsConfiguration(key))) void server.restart();
  else void server.tellSettingsChanged();
}

function settingsOf(context: vscode.ExtensionContext): ServerSettings {
  const configuration = vscode.workspace.getConfiguration();
  const own = Object.entries(properties(context)).filter(([key]) => key !== "treefill.interpreter");
  return serverSettings(Object.fromEntries(own), (key) => configuration.inspect(key));
}

function properties(context: vscode.ExtensionContext): Record<string, Property> {
  const { contributes } = context.extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, Property> }[] };
  };
  return Object.assign({}, ...contributes.configuration.map((each) => each.properties)) as Record<string, Property>;
}
