// Tells the server which names other extensions know where one begins: after a dot, in an import. They are asked once
// for each such place. Nothing waits for them.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { setting } from "./settings.js";

const METHOD = "draftline/names";
const PROVIDER = "vscode.executeCompletionItemProvider";
const MAX_NAMES = 2000; // that the server takes
// Before a name that some type, module or package has.
const PLACE = /(?:[\w)\]"']\??\.|->|::|^\s*import\s[^"'{}()]*|^\s*from\s+\S+\s+import\s[^"'()]*\(?)$/;
const BEGUN = /[\w$\u0080-\uffff]*$/;
const IDENTIFIER = /^[\s.?]*([A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*)/;

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
    const head = document.lineAt(line).text.slice(0, character + change.text.length).replace(BEGUN, "");
    const place = [document.uri.toString(), line, head].join("\0");
    if (place === this.asked || !setting("knownNames")) {
      return;
    }
    this.asked = place;
    if (PLACE.test(head)) {
      void this.ask(document, new vscode.Position(line, head.length), head, place);
    }
  }

  private async ask(document: vscode.TextDocument, position: vscode.Position, head: string, place: string): Promise<void> {
    const found = await vscode.commands.executeCommand<vscode.CompletionList | undefined>(PROVIDER, document.uri, position);
    const client = this.client();
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

/** Return the names of items; none if they are of any place: who cannot read unfinished code offers keywords. */
function namesOf(items: readonly vscode.CompletionItem[]): string[] {
  const { Keyword, Snippet, Text } = vscode.CompletionItemKind;
  if (items.some(({ kind }) => kind === Keyword)) {
    return [];
  }
  const names = items
    .filter(({ kind }) => kind !== Text && kind !== Snippet)
    .map((item) => IDENTIFIER.exec(insertedBy(item))?.[1] ?? "");
  return [...new Set(names)].filter((name) => name !== "");
}

function insertedBy({ insertText, label }: vscode.CompletionItem): string {
  const text = typeof insertText === "string" ? insertText : insertText?.value;
  return text ?? (typeof label === "string" ? label : label.label);
}
