// Entry point of the extension: creates its parts and connects them.

import * as vscode from "vscode";
import { reasonOf } from "./errors.js";
import { KnownNames } from "./knownNames.js";
import { terminalArguments } from "./launch.js";
import { SECTION } from "./manifest.js";
import { NextEdits } from "./nextEdit.js";
import { OpenEdit } from "./openEdit.js";
import { Server } from "./server.js";
import { type Scope, run, snooze, switchScope, toggleTrigger } from "./quiet.js";
import { SelectionEdits } from "./selectionEdit.js";
import { setting, toggle } from "./settings.js";
import { Signals } from "./signals.js";
import { StatusItem } from "./status.js";
import { Suggestions } from "./suggestions.js";

const RESTARTING_SETTINGS = ["python", "serverCommand", "model", "backend", "threads"];

/** Start the extension; VS Code calls this once. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("draftline", { log: true });
  const status = new StatusItem();
  const server: Server = new Server(
    context,
    log,
    status,
    () => suggestions,
    () => signals,
    (partial) => { edits.onPartial(partial); },
    () => { nextEdits.hide(); },
  );
  const signals = new Signals(() => server.current());
  const suggestions = new Suggestions(
    () => server.current(),
    signals,
    (milliseconds) => { status.latency(milliseconds); },
  );
  const edits = new SelectionEdits(() => server.current(), new OpenEdit(context.workspaceState));
  const nextEdits = new NextEdits(() => server.current());
  context.subscriptions.push(
    log,
    status,
    server,
    signals,
    suggestions,
    edits,
    nextEdits,
    new KnownNames(() => server.current()),
    ...commands(server, suggestions, edits, nextEdits, log),
    vscode.workspace.onDidChangeConfiguration((event) => { void onSettingsChanged(event, server); }),
  );
  // No wait for it: it may ask the user, and commands wait for the activation.
  server.start().catch((error: unknown) => { status.update({ kind: "error", message: reasonOf(error) }); });
}

async function onSettingsChanged(event: vscode.ConfigurationChangeEvent, server: Server): Promise<void> {
  if (RESTARTING_SETTINGS.some((name) => event.affectsConfiguration(`${SECTION}.${name}`))) {
    await server.start();
  } else if (event.affectsConfiguration(SECTION)) {
    await server.tellSettings();
  }
}

function commands(
  server: Server,
  suggestions: Suggestions,
  edits: SelectionEdits,
  nextEdits: NextEdits,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const document = () => vscode.window.activeTextEditor?.document;
  const switching = (scope: Scope) => () => switchScope(scope, document());
  const actions: Record<string, () => unknown> = {
    "draftline.toggle": toggle,
    "draftline.toggleTrigger": toggleTrigger,
    "draftline.toggleFile": switching("file"),
    "draftline.toggleLanguage": switching("language"),
    "draftline.toggleWorkspace": switching("workspace"),
    "draftline.snoozeFor": snooze,
    "draftline.endSnooze": () => run("draftline.resume"),
    "draftline.downloadModel": () => run("draftline.getModel"),
    "draftline.restart": () => server.start(),
    "draftline.showLog": () => { log.show(); },
    "draftline.showReport": () => runInTerminal(server, "report"),
    "draftline.runDoctor": () => runInTerminal(server, "doctor"),
    "draftline.editSelection": () => edits.start(),
    "draftline.acceptEdit": () => edits.accept(),
    "draftline.rejectEdit": () => edits.reject(),
    "draftline.requestNextEdit": () => nextEdits.request(vscode.InlineCompletionTriggerKind.Invoke),
    "draftline.acceptNextEdit": () => nextEdits.accept(),
    "draftline.refuseNextEdit": () => nextEdits.refuse(),
    "draftline.dismiss": () => suggestions.dismiss(),
    "draftline.showMenu": () => showMenu(document()?.languageId),
  };
  return Object.entries(actions).map(([name, action]) => vscode.commands.registerCommand(name, action));
}

async function runInTerminal(server: Server, subcommand: "report" | "doctor"): Promise<void> {
  if (setting("serverCommand").length > 0) {
    void vscode.window.showWarningMessage(`draftline: “draftline.serverCommand” starts the server. Run “draftline ${subcommand}” in its environment.`);
    return;
  }
  const python = await server.terminalCommand();
  if (python !== undefined) {
    const terminal = vscode.window.createTerminal({
      name: `draftline ${subcommand}`,
      shellPath: python,
      shellArgs: terminalArguments(subcommand),
      cwd: await server.workingFolder(),
    });
    terminal.show();
  }
}

async function showMenu(language: string | undefined): Promise<void> {
  const isOn = setting("enabled");
  const isManual = setting("trigger") === "manual";
  const entries = [
    { label: isOn ? "$(circle-slash) Switch off" : "$(sparkle) Switch on", command: "draftline.toggle" },
    { label: "$(bell-slash) Snooze…", command: "draftline.snoozeFor" },
    { label: "$(bell) End the snooze", command: "draftline.endSnooze" },
    {
      label: isManual ? "$(zap) Suggest while I type" : "$(zap) Suggest on request only",
      command: "draftline.toggleTrigger",
    },
    ...(language === undefined
      ? []
      : [
          { label: "$(file) Switch this file on or off", command: "draftline.toggleFile" },
          { label: `$(code) Switch ${language} on or off`, command: "draftline.toggleLanguage" },
          { label: "$(folder) Switch this workspace on or off", command: "draftline.toggleWorkspace" },
        ]),
    { label: "$(refresh) Restart the server", command: "draftline.restart" },
    { label: "$(graph) Show the report", command: "draftline.showReport" },
    { label: "$(pulse) Run the doctor", command: "draftline.runDoctor" },
    { label: "$(output) Show the log", command: "draftline.showLog" },
  ];
  const chosen = await vscode.window.showQuickPick(entries, { placeHolder: "draftline" });
  if (chosen) {
    await vscode.commands.executeCommand(chosen.command);
  }
}
