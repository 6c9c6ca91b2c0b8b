// Pages to read: shown as documents that can't be edited, asked about or saved.

import * as vscode from "vscode";

const SCHEME = "treefill";

export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private nShown = 0;
  private readonly subscriptions = vscode.Disposable.from(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => this.texts.delete(uri.toString())),
  );

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Shows a Markdown text beside what is being edited, in place of the page before. */
  async show(name: string, markdown: string): Promise<void> {
    // A page of its own each time: of one that has just been closed, the editor may still have the old text.
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md`, query: String(++this.nShown) });
    this.texts.set(uri.toString(), markdown);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: true,
    });
  }

  dispose(): void {
    this.subscriptions.dispose();
  }
}
