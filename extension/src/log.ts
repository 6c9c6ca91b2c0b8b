// The one log of this extension; the server's lines come to it, too.

import * as vscode from "vscode";

export type Log = vscode.LogOutputChannel;

export function openLog(): Log {
  return vscode.window.createOutputChannel("treefill", { log: true });
}

/** Shows a sentence once, with buttons; the log is always one of them. Resolves to the button that was pressed. */
export async function tell(
  log: Log,
  severity: "info" | "warning" | "error",
  sentence: string,
  ...buttons: string[]
): Promise<string | undefined> {
  log[severity === "warning" ? "warn" : severity](sentence);
  const show = {
    info: vscode.window.showInformationMessage,
    warning: vscode.window.showWarningMessage,
    error: vscode.window.showErrorMessage,
  }[severity];
  const pressed = await show(sentence, ...buttons, SHOW_LOG);
  if (pressed === SHOW_LOG) log.show();
  return pressed;
}

export const SHOW_LOG = "Show Log";
