// The life of a suggestion in the editor: asked for, shown while it grows, narrowed by typing, accepted or put away.
//
// VS Code asks at every key and shows what it is given. A running request is kept here across those questions: each is
// answered from what has arrived, and when more arrives VS Code is made to ask again.

import * as vscode from "vscode";
import { InlineCompletionRequest, type InlineCompletionParams } from "vscode-languageclient";
import type { LanguageClient } from "vscode-languageclient/node";
import {
  type Offer,
  type Origin,
  type PartialCompletion,
  type RawItem,
  answers,
  isSameOffer,
  lastLineTyped,
  readOffer,
  restsOf,
} from "./offer.js";
import { wants } from "./settings.js";
import type { Signals } from "./signals.js";
import { type Spot, isAt, spotOf } from "./spot.js";

const REFRESH_MS = 50; // how often growing text is drawn at the most

interface Asked {
  readonly serial: number;
  readonly origin: Origin;
  readonly askedAt: number;
  readonly token: vscode.CancellationToken;
  lastLine: number; // of what was typed since
  /** Answers the editor's question, once: with the first text that arrives or with nothing. */
  answer: (() => void) | undefined;
}

export class Suggestions implements vscode.Disposable {
  private offer: Offer | undefined;
  private asked: Asked[] = [];
  private serial = 0;
  private refreshed: Spot | undefined; // where we made the editor ask: that question is still to come
  private refreshTimer: NodeJS.Timeout | undefined;
  private tells = false; // the editor itself runs the command of what it shows when that is accepted
  private unanswered = false; // the newest question of the editor got no text
  private readonly subscriptions: vscode.Disposable[] = [];

  constructor(
    private readonly client: () => LanguageClient | undefined,
    private readonly signals: Signals,
    private readonly onLatency: (milliseconds: number) => void,
  ) {
    this.subscriptions.push(
      vscode.workspace.onDidChangeTextDocument((event) => { this.onTextChanged(event); }),
      vscode.window.onDidChangeTextEditorSelection((event) => { this.onCursorMoved(event); }),
    );
  }

  /** Answer the editor's question for suggestions at a position. */
  async provide(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[]> {
    // A question that we caused may never come, as when another editor takes over: it must not swallow the user's next.
    const isInvoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    const isOurs = isInvoked && this.refreshed !== undefined && isAt(this.refreshed, document, position);
    this.refreshed = isInvoked ? undefined : this.refreshed;
    const wantsMore =
      !isOurs &&
      isInvoked &&
      (this.offer === undefined || (this.offer.done && this.offer.items.length === 1));
    const shown = this.itemsAt(document, position);
    if (isOurs || (shown.length > 0 && !wantsMore)) {
      return shown;
    }
    if (!wants(document.languageId)) {
      return [];
    }
    await this.ask(document, position, context, token);
    return token.isCancellationRequested ? [] : this.itemsAt(document, position);
  }

  /** Take over text that is still growing. */
  onPartial(partial: PartialCompletion): void {
    const asked = this.asked.findLast(({ origin }) => answers(partial, origin));
    if (asked) {
      this.take(readOffer(partial.items, asked.origin, asked.serial, partial.done, partial.id), asked);
    }
  }

  /** The engine is ready: keys that were pressed while it was loading its model got no answer. */
  async onReady(): Promise<void> {
    if (this.unanswered && !this.offer && vscode.window.activeTextEditor) {
      this.unanswered = false;
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    }
  }

  /** Put the suggestion away for good. */
  async dismiss(): Promise<void> {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    this.drop("dismissed");
  }

  /** Forget everything, as when the server is restarted. */
  reset(): void {
    for (const asked of this.asked) {
      asked.answer?.();
    }
    this.asked = [];
    this.offer = undefined;
    this.refreshed = undefined;
  }

  dispose(): void {
    clearTimeout(this.refreshTimer);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private itemsAt(document: vscode.TextDocument, position: vscode.Position): vscode.InlineCompletionItem[] {
    const { offer } = this;
    if (offer?.origin.uri !== document.uri.toString()) {
      return [];
    }
    const rests = restsOf(offer, document, position).filter((rest) => rest.text !== "");
    const [first] = rests;
    if (first) {
      this.signals.shown(offer, first.item);
      this.tells = offer.done;
    }
    return rests.map((rest) => {
      const range = new vscode.Range(position, position.translate(0, rest.replaced));
      const item = new vscode.InlineCompletionItem(rest.text, range);
      if (offer.done) {
        const { title, command, arguments: words = [] } = rest.item.command;
        item.command = { title, command, arguments: [...words] };
      }
      return item;
    });
  }

  /** Ask the server; settles when the first text has arrived, when there is none, or when the editor lost interest. */
  private async ask(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<void> {
    this.unanswered = true;
    const client = this.client();
    if (!client?.isRunning()) {
      return;
    }
    const line = document.lineAt(position.line).text;
    const origin: Origin = {
      uri: client.code2ProtocolConverter.asUri(document.uri),
      version: document.version,
      place: { line: position.line, character: position.character },
      head: line.slice(0, position.character),
      tail: line.slice(position.character),
    };
    const asked: Asked = {
      serial: ++this.serial,
      origin,
      askedAt: performance.now(),
      token,
      lastLine: position.line,
      answer: undefined,
    };
    this.asked.push(asked);
    const params = client.code2ProtocolConverter.asInlineCompletionParams(document, position, context);
    await new Promise<void>((resolve) => {
      asked.answer = resolve;
      token.onCancellationRequested(() => { resolve(); });
      void this.send(client, params, asked);
    });
  }

  // The editor's cancellation is not passed on: typing on may continue the running generation, the server decides.
  private async send(client: LanguageClient, params: InlineCompletionParams, asked: Asked): Promise<void> {
    let offer: Offer | undefined;
    try {
      const result = await client.sendRequest(InlineCompletionRequest.type, params);
      const items = (Array.isArray(result) ? result : (result?.items ?? [])) as RawItem[];
      offer = readOffer(items, asked.origin, asked.serial, true);
    } catch (error) {
      client.debug(`inline completion: ${error instanceof Error ? error.message : String(error)}`);
    }
    const isStillWanted = this.asked.includes(asked);
    this.asked = this.asked.filter((other) => other !== asked);
    if (offer && isStillWanted) {
      this.take(offer, asked);
    } else if (this.offer?.serial === asked.serial) {
      this.offer = undefined; // the end has no items: what was streamed is withdrawn
      if (vscode.window.activeTextEditor?.document.uri.toString() === asked.origin.uri) {
        void vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
      }
    }
    asked.answer?.();
  }

  private take(offer: Offer | undefined, asked: Asked): void {
    if (!offer || (this.offer && offer.serial < this.offer.serial)) {
      return;
    }
    this.unanswered = false;
    // Text that only became final stays as it stands: drawing it anew would let a Tab of this moment fall through.
    const before = this.offer;
    this.offer = offer;
    // A question that was withdrawn draws no answer: the editor would go on showing the other completion's.
    const isOther = before !== undefined && before.id !== offer.id;
    const isDrawn = asked.answer !== undefined && !(isOther && asked.token.isCancellationRequested);
    if (asked.answer) {
      this.onLatency(performance.now() - asked.askedAt);
      asked.answer();
      asked.answer = undefined;
    }
    if (!isDrawn && !isSameOffer(offer, before)) {
      this.refresh();
    }
  }

  /** Make the editor ask again, soon. */
  private refresh(): void {
    this.refreshTimer ??= setTimeout(() => {
      this.refreshTimer = undefined;
      void this.refreshNow();
    }, REFRESH_MS);
  }

  private async refreshNow(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || editor.document.uri.toString() !== this.offer?.origin.uri) {
      return;
    }
    if (!restsOf(this.offer, editor.document, editor.selection.active).some((rest) => rest.text !== "")) {
      return;
    }
    this.refreshed = spotOf(editor.document, editor.selection.active);
    // Without hiding first the editor keeps the shorter text that it shows already.
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  }

  /** Whether a request still fits its document: nothing changed but what was typed at its place. */
  private isCurrent(asked: Asked, { document, contentChanges }: vscode.TextDocumentChangeEvent): boolean {
    if (asked.origin.uri !== document.uri.toString()) {
      return true;
    }
    const lastLine = lastLineTyped(asked.origin, asked.lastLine, contentChanges);
    asked.lastLine = lastLine ?? asked.lastLine;
    return lastLine !== undefined;
  }

  private onTextChanged(event: vscode.TextDocumentChangeEvent): void {
    this.asked = this.asked.filter((asked) => this.isCurrent(asked, event));
    const { offer } = this;
    const editor = vscode.window.activeTextEditor;
    const [change] = event.contentChanges;
    if (!offer || !change || editor?.document !== event.document || event.document.uri.toString() !== offer.origin.uri) {
      return;
    }
    const end = event.document.positionAt(change.rangeOffset + change.text.length);
    const rests = restsOf(offer, event.document, end);
    const [first] = rests;
    if (first === undefined) {
      this.drop(undefined); // whether it was rejected or accepted is seen by what happens next
      this.signals.leftBehind(offer, change.text);
    } else if (first.text === "" && offer.done) {
      if (!this.tells && change.text.length > 1) {
        const { command, arguments: words = [] } = first.item.command;
        void vscode.commands.executeCommand(command, ...words);
      }
      this.offer = undefined;
      this.signals.hidden();
    } else if (change.text.length > 1) {
      this.signals.partlyAccepted(first.item, first.typed);
    }
  }

  private onCursorMoved(event: vscode.TextEditorSelectionChangeEvent): void {
    this.signals.cursorMoved(event.textEditor);
    const { offer } = this;
    if (!offer || event.textEditor.document.uri.toString() !== offer.origin.uri) {
      return;
    }
    if (restsOf(offer, event.textEditor.document, event.textEditor.selection.active).length === 0) {
      this.drop("cursorMoved");
    }
  }

  private drop(reason: "dismissed" | "cursorMoved" | undefined): void {
    if (this.offer && reason) {
      this.signals.rejected(this.offer, reason);
    }
    this.signals.hidden();
    this.offer = undefined;
  }
}
