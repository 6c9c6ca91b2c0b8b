// Quiet for a while: until a time that was chosen, or until the user wants suggestions again.

import type * as vscode from "vscode";

export class Snooze implements vscode.Disposable {
  private ending: Date | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly onChange: () => void) {}

  /** When suggestions come again. The clock counts: a timer stands still while the machine sleeps. */
  get until(): Date | undefined {
    return this.ending && this.ending.getTime() > Date.now() ? this.ending : undefined;
  }

  start(minutes: number): void {
    this.dispose();
    this.ending = new Date(Date.now() + minutes * 60_000);
    this.timer = setTimeout(() => this.end(), minutes * 60_000);
    this.onChange();
  }

  end(): void {
    this.dispose();
    this.onChange();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.ending = undefined;
  }
}
