// Draws a suggestion that changed while the editor shows it. The editor calls for items, and is made to do so again.

import * as vscode from "vscode";
import { type Offer, growsFrom } from "./offer.js";
import { OwnCall } from "./ownCall.js";

const DRAWING_MS = 50; // minimum time between two drawings
const COMMAND = "editor.action.inlineSuggest.";

export class Drawing implements vscode.Disposable {
  private readonly call = new OwnCall();
  private timer: NodeJS.Timeout | undefined;
  private shown: Offer | undefined; // when the drawing was scheduled
  private withoutItems: vscode.Disposable | undefined;

  /** `editorWith` returns the editor if it can show something of an offer at its cursor. */
  constructor(
    private readonly offer: () => Offer | undefined,
    private readonly editorWith: (offer: Offer) => vscode.TextEditor | undefined,
  ) {}

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

  /** Return whether a call of the editor draws. */
  take(document: vscode.TextDocument, position: vscode.Position): boolean {
    return this.call.take(document, position);
  }

  /** Expect the call of a drawing no longer. */
  forget(): void {
    this.call.forget();
  }

  /** Let the editor call where it did so before. It keeps its items unless there is a provider that it did not call. */
  renew(): void {
    this.withoutItems?.dispose();
    this.withoutItems = vscode.languages.registerInlineCompletionItemProvider("*", {
      provideInlineCompletionItems: () => [],
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.withoutItems?.dispose();
  }

  private async draw(): Promise<void> {
    const offer = this.offer();
    const editor = offer && this.editorWith(offer);
    if (editor && !(growsFrom(offer, this.shown) && (await this.extend(editor, offer)))) {
      await this.call.make(editor, `${COMMAND}hide`, `${COMMAND}trigger`);
    }
  }

  /**
   * Draw over the suggestion on the screen. Hidden first, it would flicker, and a Tab in between would be the editor's. The
   * editor keeps the shorter text as the first item, so the longer one is the next. Return false if the editor did not call:
   * it shows no suggestion, or has a version that never calls twice.
   */
  private async extend(editor: vscode.TextEditor, offer: Offer): Promise<boolean> {
    const isLonger = offer.items[0]?.text !== this.shown?.items[0]?.text;
    this.renew();
    const isDrawn = this.call.make(editor, COMMAND + (isLonger ? "showNext" : "trigger"));
    this.renew(); // for the user's own request for another suggestion
    return await isDrawn;
  }
}
