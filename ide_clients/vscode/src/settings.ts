// Reads and changes the settings of the extension, and collects those of the language server.

import * as vscode from "vscode";
import { proxied } from "./launch.js";
import { SECTION, SERVER_SETTINGS } from "./manifest.js";

/** The settings that the extension reads. package.json has their descriptions and defaults. */
interface OwnSettings {
  enabled: boolean;
  trigger: "automatic" | "manual";
  nextEdit: "auto" | "manual" | "off";
  knownNames: boolean;
  python: string;
  serverCommand: string[];
  installFrom: string;
  readDelayMs: number;
}

/** Return a setting of the extension. */
export function setting<Name extends keyof OwnSettings>(name: Name): OwnSettings[Name] {
  return vscode.workspace.getConfiguration(SECTION).get(name) as OwnSettings[Name];
}

/** Return the changed settings of the server. For the others the server uses its own files and defaults. */
export function serverSettings(): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const changed: Record<string, unknown> = {};
  for (const name of SERVER_SETTINGS) {
    const found = configuration.inspect(name);
    const value: unknown = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
    if (value !== undefined) {
      changed[name] = value;
    }
  }
  return changed;
}

/** Return the environment of programs that download: with VS Code's proxy. */
export function downloadEnvironment(): NodeJS.ProcessEnv {
  return proxied(vscode.workspace.getConfiguration("http").get("proxy") ?? "", process.env);
}

/** Switch suggestions on or off. */
export async function toggle(): Promise<void> {
  await update("enabled", !setting("enabled"));
}

/** Set a setting for this workspace if the workspace has a value of it, which counts, otherwise for every window. */
export async function update(name: string, value: unknown): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const { Global, Workspace } = vscode.ConfigurationTarget;
  await configuration.update(name, value, configuration.inspect(name)?.workspaceValue === undefined ? Global : Workspace);
}
