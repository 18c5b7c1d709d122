// Starts, restarts and stops the language server, and passes its notifications on.

import { setTimeout as pause } from "node:timers/promises";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, RevealOutputChannelOn } from "vscode-languageclient/node";
import { reasonOf } from "./errors.js";
import { serverCommand } from "./launch.js";
import { SECTION } from "./manifest.js";
import type { PartialCompletion } from "./offer.js";
import { PythonFinder } from "./python.js";
import type { PartialEdit } from "./selectionEdit.js";
import { downloadEnvironment, serverSettings, setting } from "./settings.js";
import type { ServerStatus, StatusItem } from "./status.js";
import type { Signals } from "./signals.js";
import type { Suggestions } from "./suggestions.js";

/** Longest wait for a server that is starting before another one is started, in milliseconds. */
const START_MS = 10_000;

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly python: PythonFinder;
  private starts = 0; // a start that another one follows ends without a server
  private starting: Promise<void> = Promise.resolve();
  private stopping: Promise<void> = Promise.resolve();

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly status: StatusItem,
    private readonly suggestions: () => Suggestions,
    private readonly signals: () => Signals,
    private readonly onPartialEdit: (partial: PartialEdit) => void,
    private readonly hideNextEdit: () => void,
  ) {
    this.python = new PythonFinder(context, log);
  }

  /** Return the running client, if there is one. */
  current(): LanguageClient | undefined {
    return this.client;
  }

  /** Stop the running server and start one with a Python that has it. Offer to install one if there is none. */
  async start(): Promise<void> {
    const start = ++this.starts;
    await this.stop();
    if (start !== this.starts) {
      return;
    }
    this.status.update({ kind: "starting" });
    const command = await this.command();
    const cwd = await this.workingFolder();
    if (start !== this.starts) {
      return;
    }
    if (!command) {
      this.status.update({ kind: "error", message: "no Python with draftline was found; set “draftline.python” or run “draftline: Restart the Server” to install it" });
      return;
    }
    const [program = "", ...words] = command;
    const client = new LanguageClient("draftline", "draftline", { command: program, args: words, options: { cwd, env: downloadEnvironment() } }, this.options());
    client.onNotification("draftline/status", (status: ServerStatus) => { this.onStatus(client, status); });
    client.onNotification("draftline/partialCompletion", (partial: PartialCompletion) => {
      this.suggestions().onPartial(partial);
    });
    client.onNotification("draftline/partialEdit", this.onPartialEdit);
    this.client = client;
    this.starting = this.bringUp(client);
    await this.starting;
  }

  /** Send changed settings to the server. */
  async tellSettings(): Promise<void> {
    if (this.client?.isRunning()) {
      const settings = { [SECTION]: serverSettings() };
      await this.client.sendNotification("workspace/didChangeConfiguration", { settings });
    }
  }

  /** Return the Python that runs the server, for commands in a terminal. */
  async terminalCommand(): Promise<string | undefined> {
    return (await this.command())?.[0];
  }

  /** Return an empty folder outside the workspace, in which processes run. */
  async workingFolder(): Promise<string> {
    return await this.python.workingFolder();
  }

  dispose(): void {
    this.starts += 1;
    void this.stop();
  }

  private async bringUp(client: LanguageClient): Promise<void> {
    try {
      await client.start();
      if (client !== this.client) { // stopped meanwhile, by whoever did not wait for it to start
        await client.dispose();
        return;
      }
      this.signals().editorShown();
    } catch (error) {
      const reason = reasonOf(error);
      this.log.error(reason);
      this.onStatus(client, { kind: "error", message: `the language server did not start (${reason}); “draftline: Show Log” says more` });
    }
  }

  private onStatus(client: LanguageClient, status: ServerStatus): void {
    if (client !== this.client) {
      return;
    }
    const before = this.status.update(status);
    if (status.quiet && status.quiet !== before.quiet) {
      void this.suggestions().silence();
      this.hideNextEdit();
    }
    if (status.kind === "ready" && before.kind !== "ready" && before.kind !== "busy") {
      void this.suggestions().onReady();
    }
  }

  private async stop(): Promise<void> {
    const { client, starting } = this;
    this.client = undefined;
    this.suggestions().reset();
    this.hideNextEdit();
    this.stopping = this.stopping.then(() => this.end(client, starting));
    await this.stopping;
  }

  /** End a server. Only one that is up can be stopped. */
  private async end(client: LanguageClient | undefined, starting: Promise<void>): Promise<void> {
    await Promise.race([starting, pause(START_MS, undefined, { ref: false })]);
    try {
      if (client?.isRunning()) {
        await client.dispose();
      }
    } catch (error) {
      this.log.error(String(error));
    }
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
      initializationOptions: { streaming: true, itemRange: "replaced" }, // the settings are requested: what is set here could not be reset
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        provideInlineCompletionItems: (document, position, context, token) =>
          this.suggestions().provide(document, position, context, token),
        workspace: {
          // The server gets only its own settings.
          configuration: (params) =>
            params.items.map((item) => (item.section === SECTION ? serverSettings() : null)),
        },
      },
    };
  }
}
