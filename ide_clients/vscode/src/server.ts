// The language server: started, restarted, and what it says handed on.

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, RevealOutputChannelOn } from "vscode-languageclient/node";
import { serverCommand } from "./launch.js";
import { SECTION } from "./manifest.js";
import type { PartialCompletion } from "./offer.js";
import { PythonFinder } from "./python.js";
import { serverSettings, setting } from "./settings.js";
import type { ServerStatus, StatusItem } from "./status.js";
import type { Suggestions } from "./suggestions.js";

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly python: PythonFinder;

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly status: StatusItem,
    private readonly suggestions: () => Suggestions,
  ) {
    this.python = new PythonFinder(context, log);
  }

  /** The running client, if there is one. */
  current(): LanguageClient | undefined {
    return this.client;
  }

  /** Find the server's Python and start it; asks the user where there is none. */
  async start(): Promise<void> {
    this.status.update({ kind: "starting" });
    const command = await this.command();
    if (!command) {
      this.status.update({ kind: "error", message: "no Python with draftline was found" });
      return;
    }
    const [program = "", ...words] = command;
    const cwd = await this.workingFolder();
    const client = new LanguageClient("draftline", "draftline", { command: program, args: words, options: { cwd } }, this.options());
    client.onNotification("draftline/status", (status: ServerStatus) => { this.onStatus(status); });
    client.onNotification("draftline/partialCompletion", (partial: PartialCompletion) => {
      this.suggestions().onPartial(partial);
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.log.error(reason);
      this.status.update({ kind: "error", message: `the language server did not start (${reason}); “draftline: Show Log” says more` });
    }
  }

  /** Stop the server and start it again. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Tell the server about changed settings. */
  async tellSettings(): Promise<void> {
    if (this.client?.isRunning()) {
      const settings = { [SECTION]: serverSettings() };
      await this.client.sendNotification("workspace/didChangeConfiguration", { settings });
    }
  }

  /** The Python that runs the server, for commands in a terminal. */
  async terminalCommand(): Promise<string | undefined> {
    return (await this.command())?.[0];
  }

  /** An empty folder for processes to run in, away from the workspace. */
  async workingFolder(): Promise<string> {
    return await this.python.workingFolder();
  }

  dispose(): void {
    void this.stop();
  }

  private onStatus(status: ServerStatus): void {
    this.status.update(status);
    if (status.kind === "ready") {
      void this.suggestions().onReady();
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.suggestions().reset();
    await client?.dispose();
  }

  private async command(): Promise<string[] | undefined> {
    const chosen = setting("serverCommand");
    if (chosen.length > 0) {
      return chosen;
    }
    const python = (await this.python.find()) ?? (await this.python.offerToInstall());
    return python === undefined ? undefined : serverCommand(python);
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-notebook-cell" }],
      initializationOptions: { ...serverSettings(), streaming: true },
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        provideInlineCompletionItems: (document, position, context, token) =>
          this.suggestions().provide(document, position, context, token),
        workspace: {
          // The server reads its own settings only.
          configuration: (params) =>
            params.items.map((item) => (item.section === SECTION ? serverSettings() : null)),
        },
      },
    };
  }
}
