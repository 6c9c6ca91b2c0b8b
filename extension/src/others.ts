// What else in this editor concerns suggestions: whether they are shown at all, and who else makes them.

/** Extensions that suggest code as ghost text, by id. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "github.copilot": "GitHub Copilot",
  "codeium.codeium": "Windsurf",
  "tabnine.tabnine-vscode": "Tabnine",
  "continue.continue": "Continue",
  "tabbyml.vscode-tabby": "Tabby",
  "ggml-org.llama-vscode": "llama.vscode",
  "rjmacarthy.twinny": "twinny",
  "sourcegraph.cody-ai": "Cody",
  "supermaven.supermaven": "Supermaven",
  "amazonwebservices.amazon-q-vscode": "Amazon Q",
  "huggingface.huggingface-vscode": "llm-vscode",
  "kilocode.kilo-code": "Kilo Code",
};

/** Why suggestions can't be seen, with the remedy; none where they can. */
export function obstacles(inlineSuggestEnabled: boolean): string[] {
  return inlineSuggestEnabled
    ? []
    : ["The editor shows no suggestions: switch on the setting editor.inlineSuggest.enabled."];
}

/** Who else suggests code here: worth knowing, and nothing wrong where the user wants both. */
export function rivals(installed: readonly string[]): string[] {
  const found = installed.map((id) => PROVIDERS[id.toLowerCase()]).filter((name) => name !== undefined);
  if (found.length === 0) return [];
  const names = `${found.join(" and ")} ${found.length > 1 ? "suggest" : "suggests"}`;
  return [`${names} code here, too, and the editor shows one at a time: disable what you don't want to see.`];
}
