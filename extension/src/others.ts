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
  "visualstudioexptteam.vscodeintellicode": "IntelliCode",
  "huggingface.huggingface-vscode": "llm-vscode",
  "kilocode.kilo-code": "Kilo Code",
};

/** Sentences with remedies; none where all is well. */
export function hints(inlineSuggestEnabled: boolean, installed: readonly string[]): string[] {
  const found = installed.map((id) => PROVIDERS[id.toLowerCase()]).filter((name) => name !== undefined);
  const off = "The editor shows no suggestions: switch on the setting editor.inlineSuggest.enabled.";
  const shared = `${found.join(" and ")} ${found.length > 1 ? "suggest" : "suggests"} code here, too, and the editor shows one of them: disable one.`;
  return [...(inlineSuggestEnabled ? [] : [off]), ...(found.length > 0 ? [shared] : [])];
}
