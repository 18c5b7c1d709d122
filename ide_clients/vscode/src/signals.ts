// What the server is told about suggestions: shown after the read delay, partly accepted, put away, cursor at rest.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Item, Offer } from "./offer.js";
import { setting } from "./settings.js";

const REST_MS = 150; // as the server's preparation of its cache expects

export class Signals implements vscode.Disposable {
  private readTimer: NodeJS.Timeout | undefined;
  private restTimer: NodeJS.Timeout | undefined;
  private visible: string | undefined; // the item whose read delay runs or has run

  constructor(private readonly client: () => LanguageClient | undefined) {}

  /** An item was given to the editor: it counts once it stood there for the read delay. */
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

  /** Nothing is shown any more. */
  hidden(): void {
    clearTimeout(this.readTimer);
    this.visible = undefined;
  }

  /** A part of an item was inserted; `inserted` is everything of it that stands in the document now. */
  partlyAccepted(item: Item, inserted: string): void {
    this.notify("textDocument/didPartiallyAcceptCompletion", {
      item: { command: item.command },
      acceptedLength: inserted.length,
    });
  }

  /** A suggestion was put away. */
  rejected(offer: Offer, reason: "dismissed" | "typedOver" | "cursorMoved"): void {
    this.notify("draftline/didRejectCompletion", { id: offer.id, reason });
  }

  /** The text at a suggestion's place changed to something else: typed over, unless the change is its acceptance. */
  leftBehind(offer: Offer, inserted: string): void {
    if (!offer.items.some((item) => inserted !== "" && item.text.endsWith(inserted))) {
      this.rejected(offer, "typedOver");
    }
  }

  /** The cursor moved: say where, once it rests. */
  cursorMoved(editor: vscode.TextEditor): void {
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => {
      const client = this.client();
      if (client && editor === vscode.window.activeTextEditor) {
        const converter = client.code2ProtocolConverter;
        this.notify("draftline/didMoveCursor", {
          uri: converter.asUri(editor.document.uri),
          position: converter.asPosition(editor.selection.active),
        });
      }
    }, REST_MS);
  }

  dispose(): void {
    clearTimeout(this.readTimer);
    clearTimeout(this.restTimer);
  }

  private notify(method: string, params: object): void {
    const client = this.client();
    if (client?.isRunning()) {
      void client.sendNotification(method, params);
    }
  }
}
