// Draws a suggestion that changed while the editor shows it. The editor calls for items, and is made to do so again.

import * as vscode from "vscode";
import { type Offer, type Remainder, remaindersOf } from "./offer.js";
import { OwnCall } from "./ownCall.js";

const DRAWING_MS = 50; // minimum time between two drawings
const COMMAND = "editor.action.inlineSuggest.";

export class Drawing implements vscode.Disposable {
  private readonly call = new OwnCall();
  private latest: { document: vscode.TextDocument; version: number } | undefined; // call of the editor, not only of drawings
  private timer: NodeJS.Timeout | undefined;
  private shown: Offer | undefined; // when the drawing was scheduled
  private withoutItems: vscode.Disposable | undefined;

  constructor(private readonly offer: () => Offer | undefined) {}

  /** Draw soon, at most every `DRAWING_MS`. `shown` is the offer on the screen. */
  schedule(shown: Offer | undefined): void {
    if (this.timer === undefined) {
      this.shown = shown;
      this.timer = setTimeout(() => {
        this.timer = undefined;
        void this.draw();
      }, DRAWING_MS);
    }
  }

  /** Note a call of the editor, which gets what a drawing would show, and return whether it draws. */
  take(document: vscode.TextDocument, position: vscode.Position, isInvoked: boolean): boolean {
    this.latest = { document, version: document.version };
    this.unschedule();
    return isInvoked && this.call.take(document, position);
  }

  /** Expect the call of a drawing no longer. */
  forget(): void {
    this.call.forget();
  }

  dispose(): void {
    this.unschedule();
    this.withoutItems?.dispose();
  }

  private unschedule(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async draw(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const now = editor && firstAt(this.offer(), editor);
    if (!now || this.isCallDue(editor) || (await this.extend(editor, now, firstAt(this.shown, editor)))) {
      return;
    }
    await this.call.make(editor, `${COMMAND}hide`, `${COMMAND}trigger`);
  }

  /**
   * Draw over the suggestion on the screen. Hidden first, it would flicker, and a Tab in between would be the editor's. The
   * editor keeps the shorter text as the first item, so the longer one is the next. Return false if that cannot be: the text
   * is another one, the editor shows no suggestion, or its version never calls twice.
   */
  private async extend(editor: vscode.TextEditor, now: Remainder, before: Remainder | undefined): Promise<boolean> {
    if (!before || !now.text.startsWith(before.text)) {
      return false;
    }
    const { latest } = this;
    const isSame = now.text === before.text && now.replaced === before.replaced;
    this.renew();
    const drawn = this.call.make(editor, COMMAND + (isSame ? "trigger" : "showNext"));
    this.renew(); // for the user's own request for another suggestion
    await drawn;
    return this.latest !== latest || this.isCallDue(editor);
  }

  /** Let the editor call where it did so before. It keeps its items unless there is a provider that it did not call. */
  private renew(): void {
    this.withoutItems?.dispose();
    this.withoutItems = vscode.languages.registerInlineCompletionItemProvider("*", {
      provideInlineCompletionItems: () => [],
    });
  }

  /** Return whether the document changed since the latest call: then the editor calls by itself. */
  private isCallDue({ document }: vscode.TextEditor): boolean {
    return this.latest?.document === document && this.latest.version < document.version;
  }
}

/** Return what remains of the first item of an offer that inserts something at the cursor. */
function firstAt(offer: Offer | undefined, { document, selection }: vscode.TextEditor): Remainder | undefined {
  if (offer?.origin.uri !== document.uri.toString()) {
    return undefined;
  }
  return remaindersOf(offer, document, selection.active).find(({ text }) => text !== "");
}
