// Quiet for a while: until a time that was chosen, or until the user wants suggestions again.

import * as vscode from "vscode";

export class Snooze implements vscode.Disposable {
  until: Date | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly onChange: () => void) {}

  start(minutes: number): void {
    this.dispose();
    this.until = new Date(Date.now() + minutes * 60_000);
    this.timer = setTimeout(() => this.end(), minutes * 60_000);
    this.onChange();
  }

  end(): void {
    this.dispose();
    this.onChange();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.until = undefined;
  }
}
