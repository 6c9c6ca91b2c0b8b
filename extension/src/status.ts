// What the status item shows, from what is known. No editor in here: what a person reads is decided, and tested, alone.

import type { Remedy } from "./python";

/** What the server tells of itself; its `didChangeStatus`. */
export interface ServerStatus {
  readonly busy: boolean;
  readonly message: string;
  readonly kind: "Normal" | "Warning" | "Error";
  readonly state: "starting" | "loading" | "ready" | "working" | "failed" | "lost";
  readonly percent: number;
  readonly model: string;
  readonly tokensPerSecond: number;
}

/** How far this extension has come with its server. */
export type Phase =
  | { readonly kind: "untrusted" }
  | { readonly kind: "starting" }
  | { readonly kind: "missing"; readonly sentence: string; readonly remedy: Remedy }
  | { readonly kind: "installing"; readonly step: string }
  | { readonly kind: "stopped"; readonly sentence: string }
  | { readonly kind: "running"; readonly server: ServerStatus };

/** Everything that the item depends on. */
export interface Situation {
  readonly phase: Phase;
  /** When suggestions come again, or undefined where they are not snoozed. */
  readonly snoozedUntil?: Date;
  /** Why nothing is suggested in the document at hand, or an empty text. */
  readonly disabledHere: string;
  /** What in the editor keeps suggestions from being seen: sentences with remedies. */
  readonly obstacles: readonly string[];
  /** Who else suggests code here. */
  readonly rivals: readonly string[];
}

export interface Shown {
  readonly text: string;
  /** Paragraphs of the hover. */
  readonly tooltip: readonly string[];
  readonly severity: "normal" | "warning" | "error";
}

const FAILURE = "$(error) treefill";
const WARNING = "$(warning) treefill";

export function present(situation: Situation): Shown {
  const shown = presentPhase(situation);
  const hinted = situation.obstacles.length > 0 && shown.severity === "normal";
  return {
    text: hinted ? shown.text.replace(/^\$\([a-z~-]+\)/, "$(warning)") : shown.text,
    tooltip: [...shown.tooltip, ...situation.obstacles, ...situation.rivals],
    severity: hinted ? "warning" : shown.severity,
  };
}

function presentPhase({ phase, snoozedUntil, disabledHere }: Situation): Shown {
  switch (phase.kind) {
    case "untrusted":
      return calm("$(circle-slash) treefill", "Nothing runs in a folder that you have not trusted.");
    case "starting":
      return calm("$(loading~spin) treefill", "The server is starting.");
    case "missing":
      return { text: WARNING, tooltip: missingLines(phase), severity: "warning" };
    case "installing":
      return calm("$(loading~spin) treefill: installing", `Setting up: ${phase.step}.`);
    case "stopped":
      return { text: FAILURE, tooltip: [phase.sentence], severity: "error" };
    case "running":
      return presentServer(phase.server, snoozedUntil, disabledHere);
  }
}

function missingLines({ sentence, remedy }: Phase & { kind: "missing" }): string[] {
  return remedy === "set up" ? [sentence, "Click to set it up."] : [sentence];
}

function presentServer(server: ServerStatus, snoozedUntil: Date | undefined, disabledHere: string): Shown {
  if (server.kind === "Error") return { text: FAILURE, tooltip: [server.message], severity: "error" };
  if (server.kind === "Warning") return { text: WARNING, tooltip: [server.message], severity: "warning" };
  if (snoozedUntil) {
    return calm("$(bell-slash) treefill", `Snoozed until ${timeOf(snoozedUntil)}.`);
  }
  if (disabledHere) return calm("$(circle-slash) treefill", disabledHere);
  if (server.state === "loading") {
    const percent = server.percent > 0 ? ` ${server.percent} %` : "";
    return calm(`$(loading~spin) treefill:${percent || " loading"}`, `The model is loading${percent && `:${percent}`}.`);
  }
  if (server.state === "starting") return calm("$(loading~spin) treefill", "The server is starting.");
  const icon = server.state === "working" ? "$(sync~spin)" : "$(sparkle)";
  return calm(`${icon} treefill`, ...readyLines(server));
}

function readyLines({ model, tokensPerSecond }: ServerStatus): string[] {
  const speed = tokensPerSecond > 0 ? `The last suggestion came at ${tokensPerSecond} tokens a second.` : "";
  return [model ? `Ready: ${model}.` : "Ready; the model is loaded when it is needed.", speed].filter(Boolean);
}

function timeOf(date: Date): string {
  return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

function calm(text: string, ...tooltip: string[]): Shown {
  return { text, tooltip, severity: "normal" };
}
