// As much of the editor as the server's life touches. The tests' bundles have it in the place of `vscode`.

export const editor = { isTrusted: true, told: [] as string[] };

export const workspace = {
  get isTrusted(): boolean {
    return editor.isTrusted;
  },
};

function show(sentence: string): Promise<undefined> {
  editor.told.push(sentence);
  return Promise.resolve(undefined);
}

export const window = { showInformationMessage: show, showWarningMessage: show, showErrorMessage: show };
