// Tells the server what happens to suggestions (shown, partly accepted, rejected) and where the cursor pauses.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Item, Offer } from "./offer.js";
import { setting } from "./settings.js";

const PAUSE_MS = 150; // pause of the cursor after which the server learns its position

export class Signals implements vscode.Disposable {
  private readonly subscription = vscode.window.onDidChangeActiveTextEditor(() => { this.editorShown(); });
  private readTimer: NodeJS.Timeout | undefined;
  private pauseTimer: NodeJS.Timeout | undefined;
  private visible: string | undefined; // the item on the screen, whose read delay has started

  constructor(private readonly client: () => LanguageClient | undefined) {}

  /** Note that an item is on the screen. It counts as shown after the read delay. */
  shown(offer: Offer, item: Item): void {
    const key = JSON.stringify(item.command.arguments ?? offer.id);
    if (key === this.visible) {
      return;
    }
    this.hidden();
    this.visible = key;
    this.readTimer = setTimeout(() => {
      this.notify("textDocument/didShowCompletion", { item: { command: item.command } });
    }, setting("readDelayMs"));
  }

  /** Note that no item is on the screen. */
  hidden(): void {
    clearTimeout(this.readTimer);
    this.visible = undefined;
  }

  /** Report that a part of an item was inserted; `inserted` is all inserted text of the item. */
  partlyAccepted(item: Item, inserted: string): void {
    this.notify("textDocument/didPartiallyAcceptCompletion", {
      item: { command: item.command },
      acceptedLength: inserted.length,
    });
  }

  /** Report that a suggestion was rejected. */
  rejected(offer: Offer, reason: "dismissed" | "typedOver" | "cursorMoved"): void {
    this.notify("draftline/didRejectCompletion", { id: offer.id, reason });
  }

  /** Report that the user typed over a suggestion, unless the inserted text is the suggestion itself. */
  replaced(offer: Offer, inserted: string): void {
    if (!offer.items.some((item) => inserted !== "" && item.text.endsWith(inserted))) {
      this.rejected(offer, "typedOver");
    }
  }

  /** Report the cursor of the editor in front, which VS Code does not report as moved. The status is about that document. */
  editorShown(): void {
    if (vscode.window.activeTextEditor) {
      this.cursorMoved(vscode.window.activeTextEditor);
    }
  }

  /** Report the cursor's position once it pauses there. */
  cursorMoved(editor: vscode.TextEditor): void {
    clearTimeout(this.pauseTimer);
    this.pauseTimer = setTimeout(() => {
      const client = this.client();
      if (client && editor === vscode.window.activeTextEditor) {
        const converter = client.code2ProtocolConverter;
        this.notify("draftline/didMoveCursor", {
          uri: converter.asUri(editor.document.uri),
          position: converter.asPosition(editor.selection.active),
        });
      }
    }, PAUSE_MS);
  }

  /** Report the cursor's position only after it has moved with the changed text: until then it is that of the old text. */
  textChanged({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length > 0 && document === vscode.window.activeTextEditor?.document) {
      clearTimeout(this.pauseTimer);
    }
  }

  dispose(): void {
    this.subscription.dispose();
    clearTimeout(this.readTimer);
    clearTimeout(this.pauseTimer);
  }

  private notify(method: string, params: object): void {
    const client = this.client();
    if (client?.isRunning()) {
      void client.sendNotification(method, params);
    }
  }
}
