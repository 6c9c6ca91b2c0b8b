// What the user has set, in the form that the server takes. The settings themselves are the server's:
// scripts/extension_settings.py writes them into package.json.
//
// Only what somebody has set is handed on: a default of ours would overrule the user's own settings file.

/** The part of a setting's schema that is looked at. */
export interface Property {
  readonly scope?: string;
}

/** Where a setting may have been given a value; as VS Code tells it. */
export interface Inspected {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

export interface ServerSettings {
  /** Environment variables: what says which model runs and how much of the machine it takes. */
  readonly environment: Readonly<Record<string, string>>;
  /** The section `treefill`, as the server asks for it. */
  readonly section: Readonly<Record<string, unknown>>;
}

const SECTION = "treefill.";

/**
 * Divides what is set. A setting of scope `machine` names a path or takes memory: it is the user's own alone, and goes
 * by the environment, which the server takes it from; whatever a workspace says of it is not looked at.
 */
export function serverSettings(
  properties: Readonly<Record<string, Property>>,
  inspect: (key: string) => Inspected | undefined,
): ServerSettings {
  const environment: Record<string, string> = {};
  const section: Record<string, unknown> = {};
  for (const [key, property] of Object.entries(properties)) {
    const found = inspect(key);
    if (property.scope === "machine") {
      const value = found?.globalValue;
      if (isSet(value)) environment[`TREEFILL_${serverName(key).toUpperCase()}`] = asText(value);
    } else {
      const value = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
      if (isSet(value)) section[serverName(key)] = value;
    }
  }
  return { environment, section };
}

/** `treefill.maxLines` → `max_lines`. */
export function serverName(key: string): string {
  const name = key.startsWith(SECTION) ? key.slice(SECTION.length) : key;
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The texts of a list; of anything else that stands in a settings file, none. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** The list with the language in it, or without it where it is in it already. */
export function toggled(set: unknown, language: string): string[] {
  const languages = textsOf(set);
  return languages.includes(language)
    ? languages.filter((each) => each !== language)
    : [...languages, language].sort();
}

/** An empty text is how an editor shows that a path is not set. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
