// Commands that the server runs: the quiet controls, and the download of a model; and the setting `trigger`.

import * as vscode from "vscode";
import { reasonOf } from "./errors.js";
import { setting, update } from "./settings.js";

const MINUTES = [5, 15, 60, 240];
const SHOWN_MS = 5000; // how long the status bar shows the server's sentence

export type Scope = "file" | "language" | "workspace";

/** Run a command of the server, and show its sentence in the status bar. */
export async function run(command: string, ...words: unknown[]): Promise<void> {
  try {
    const sentence = await vscode.commands.executeCommand<string>(command, ...words);
    vscode.window.setStatusBarMessage(sentence === "" ? "draftline makes automatic suggestions." : sentence, SHOWN_MS);
  } catch (error) {
    const reason = reasonOf(error);
    void vscode.window.showWarningMessage(`draftline: the server did not run the command (${reason}).`);
  }
}

/** Ask for how long, and make no automatic suggestions until then. */
export async function snooze(): Promise<void> {
  const entries = [
    ...MINUTES.map((minutes) => ({ label: `${minutes} minutes`, words: [minutes] })),
    { label: "Until the server is restarted", words: [] },
  ];
  const chosen = await vscode.window.showQuickPick(entries, { placeHolder: "No automatic suggestions for" });
  if (chosen) {
    await run("draftline.snooze", ...chosen.words);
  }
}

/** Switch suggestions for the document's file, language or workspace on or off. The server remembers it. */
export async function switchScope(scope: Scope, document: vscode.TextDocument | undefined): Promise<void> {
  if (document) {
    await run("draftline.switch", scope, document.uri.toString());
  }
}

/** Switch between suggestions while the user types, and suggestions on request only. */
export async function toggleTrigger(): Promise<void> {
  await update("trigger", setting("trigger") === "manual" ? "automatic" : "manual");
}
