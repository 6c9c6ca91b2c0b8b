// The status item: puts together what is known and shows what `status` makes of it.

import * as vscode from "vscode";

import { obstacles, rivals } from "./others";
import { SCHEMES } from "./server";
import { textsOf } from "./settings";
import { type Phase, present, type ServerStatus, type Situation } from "./status";

const COLOURS = { warning: "statusBarItem.warningBackground", error: "statusBarItem.errorBackground" };

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("treefill.status", vscode.StatusBarAlignment.Right, 100);
  private phase: Phase = { kind: "starting" };

  constructor(private readonly snoozedUntil: () => Date | undefined) {
    this.item.name = "treefill";
    this.item.command = "treefill.menu";
    this.show();
    this.item.show();
  }

  /** What the server last told, where one runs. */
  get server(): ServerStatus | undefined {
    return this.phase.kind === "running" ? this.phase.server : undefined;
  }

  follow(phase: Phase): void {
    this.phase = phase;
    this.show();
  }

  show(): void {
    const shown = present(this.situation());
    this.item.text = shown.text;
    this.item.tooltip = new vscode.MarkdownString(shown.tooltip.map(escaped).join("\n\n"));
    this.item.backgroundColor =
      shown.severity === "normal" ? undefined : new vscode.ThemeColor(COLOURS[shown.severity]);
    this.item.accessibilityInformation = { label: ["treefill", ...shown.tooltip].join(". ") };
  }

  dispose(): void {
    this.item.dispose();
  }

  private situation(): Situation {
    const document = vscode.window.activeTextEditor?.document;
    // Of a language, an editor's setting may have a value of its own.
    const inlineSuggest = vscode.workspace.getConfiguration("editor", document).get<boolean>("inlineSuggest.enabled");
    return {
      phase: this.phase,
      snoozedUntil: this.snoozedUntil(),
      disabledHere: disabledIn(document),
      obstacles: obstacles(inlineSuggest ?? true),
      rivals: rivals(vscode.extensions.all.map(({ id }) => id)),
    };
  }
}

/** Why nothing is suggested in a document, or an empty text. */
export function disabledIn(document: vscode.TextDocument | undefined): string {
  const settings = vscode.workspace.getConfiguration("treefill");
  if (!settings.get<boolean>("enabled")) return "Switched off by the setting treefill.enabled.";
  if (!document) return "";
  if (textsOf(settings.get("disabledLanguages")).includes(document.languageId)) {
    return `Switched off for ${document.languageId} by the setting treefill.disabledLanguages.`;
  }
  return SCHEMES.includes(document.uri.scheme) || document.uri.scheme === "output"
    ? ""
    : `Nothing is suggested in documents of the kind ${document.uri.scheme}.`;
}

function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>#!|]/g, "\\$&");
}
