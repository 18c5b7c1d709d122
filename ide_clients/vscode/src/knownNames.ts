// Tells the server which names other extensions know where one begins: after a dot, in an import. They are asked once
// for each such place. Nothing waits for them.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { reasonOf } from "./errors.js";
import { headOf, isPlace, namesOf } from "./names.js";
import { setting } from "./settings.js";

const METHOD = "draftline/names";
const PROVIDER = "vscode.executeCompletionItemProvider";
const MAX_NAMES = 2000; // that the server takes

export class KnownNames implements vscode.Disposable {
  private asked = ""; // the last place
  private readonly subscription = vscode.workspace.onDidChangeTextDocument((event) => { this.onChange(event); });

  constructor(private readonly client: () => LanguageClient | undefined) {}

  dispose(): void {
    this.subscription.dispose();
  }

  private onChange({ document, contentChanges: [change, ...others] }: vscode.TextDocumentChangeEvent): void {
    if (!change || others.length > 0 || change.text.includes("\n") || document !== vscode.window.activeTextEditor?.document) {
      return;
    }
    const { line, character } = change.range.start; // the cursor moves after this event
    const head = headOf(document.lineAt(line).text.slice(0, character + change.text.length));
    const place = [document.uri.toString(), line, head].join("\0");
    if (place === this.asked || !setting("knownNames")) {
      return;
    }
    this.asked = place;
    if (isPlace(head)) {
      void this.ask(document, new vscode.Position(line, head.length), head, place);
    }
  }

  private async ask(document: vscode.TextDocument, position: vscode.Position, head: string, place: string): Promise<void> {
    const client = this.client();
    let found: vscode.CompletionList | undefined;
    try {
      found = await vscode.commands.executeCommand<vscode.CompletionList | undefined>(PROVIDER, document.uri, position);
    } catch (error) {
      client?.debug(`names: ${reasonOf(error)}`);
    }
    const isCurrent = place === this.asked && !document.isClosed && position.line < document.lineCount;
    if (!client?.isRunning() || !isCurrent || !document.lineAt(position.line).text.startsWith(head)) {
      return;
    }
    const names = namesOf(found?.items ?? []);
    if (names.length > 0 && names.length <= MAX_NAMES) {
      const converter = client.code2ProtocolConverter;
      const where = { uri: converter.asUri(document.uri), version: document.version, position: converter.asPosition(position) };
      void client.sendNotification(METHOD, { ...where, names });
    }
  }
}
