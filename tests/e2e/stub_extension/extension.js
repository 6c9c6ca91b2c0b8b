// Ghost text without a language server: every request is answered at once with the setting `stub.text`. The status bar
// counts what was answered and what was accepted, and tells what is suggested.

const vscode = require("vscode");

let nAnswered = 0;
let nAccepted = 0;

function activate(context) {
  const item = vscode.window.createStatusBarItem("counts", vscode.StatusBarAlignment.Right, 1000);
  const showCounts = () => {
    item.text = `stub: answered ${nAnswered}, accepted ${nAccepted}, suggests ${suggestion().split("\n")[0]}`;
    item.tooltip = `${nAnswered} answered`;
  };
  const provider = { provideInlineCompletionItems: (_document, position) => answer(position, showCounts) };
  context.subscriptions.push(
    item,
    vscode.workspace.onDidChangeConfiguration(showCounts),
    vscode.languages.registerInlineCompletionItemProvider({ pattern: "**" }, provider),
    vscode.commands.registerCommand("e2e.stub.accepted", () => {
      nAccepted += 1;
      showCounts();
    }),
    vscode.commands.registerCommand("e2e.stub.greet", () => vscode.window.showInformationMessage("Hello from the stub")),
    vscode.commands.registerCommand("e2e.stub.ask", askInDialog),
    vscode.commands.registerCommand("e2e.stub.hooks", registerProposedHooks),
  );
  showCounts();
  item.show();
}

function answer(position, showCounts) {
  nAnswered += 1;
  showCounts();
  const item = new vscode.InlineCompletionItem(suggestion(), new vscode.Range(position, position));
  item.command = { command: "e2e.stub.accepted", title: "Accepted" };
  return [item];
}

function suggestion() {
  return vscode.workspace.getConfiguration("stub").get("text");
}

async function askInDialog() {
  const choice = await vscode.window.showWarningMessage("Shall it be?", { modal: true }, "Yes, it shall");
  vscode.window.showInformationMessage(`The answer was ${choice}`);
}

// What VS Code refuses to every extension that does not have the proposed API `inlineCompletionsAdditions`.
function registerProposedHooks() {
  const provider = { provideInlineCompletionItems: () => [], handleDidShowCompletionItem: () => {} };
  try {
    vscode.languages.registerInlineCompletionItemProvider({ pattern: "**" }, provider).dispose();
    vscode.window.showInformationMessage("The proposed hooks are there");
  } catch (error) {
    vscode.window.showErrorMessage(error.message);
  }
}

module.exports = { activate };
