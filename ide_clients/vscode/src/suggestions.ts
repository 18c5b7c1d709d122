// The life of a suggestion in the editor: requested, shown while it grows, narrowed by typing, accepted or dismissed.
//
// VS Code requests items at every key and shows what it gets. A running request to the server outlives these calls: each
// call returns what has arrived so far, and when more text arrives, VS Code is made to call again.

import * as vscode from "vscode";
import { InlineCompletionRequest, type InlineCompletionParams } from "vscode-languageclient";
import type { LanguageClient } from "vscode-languageclient/node";
import { Drawing } from "./drawing.js";
import { reasonOf } from "./errors.js";
import type { Offer, Origin, PartialCompletion, RawItem } from "./offer.js";
import { answers, continuing, isSameOffer, isTyping, lastLineTyped, readOffer, remaindersAfter, remaindersOf } from "./offer.js";
import { OwnCall } from "./ownCall.js";
import { setting } from "./settings.js";
import type { Signals } from "./signals.js";

const HIDE = "editor.action.inlineSuggest.hide";

interface PendingRequest {
  readonly serial: number;
  readonly origin: Origin;
  readonly startedAt: number; // performance.now(), milliseconds
  readonly token: vscode.CancellationToken;
  readonly shown: string; // the text on the screen, if more was requested
  lastLine: number; // the last line that the user typed since
  /** Resolves the editor's call once: when the first text arrives, or when there is none. */
  resolve: (() => void) | undefined;
}

export class Suggestions implements vscode.Disposable {
  private offer: Offer | undefined;
  private pending: PendingRequest[] = [];
  private serial = 0;
  private readonly drawing = new Drawing(() => this.offer);
  private readonly retrying = new OwnCall(); // repeats an automatic request
  private hasCommand = false; // the items on the screen have a command, which the editor runs when one is accepted
  private unanswered = false; // the newest call of the editor got no text
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

  /** Return the items at a position to the editor. */
  async provide(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[]> {
    const { Automatic, Invoke } = vscode.InlineCompletionTriggerKind;
    const isRetry = this.retrying.take(document, position);
    const isInvoked = context.triggerKind === Invoke && !isRetry;
    const isRefresh = this.drawing.take(document, position, isInvoked);
    const wantsMore = isInvoked && !isRefresh && (this.offer === undefined || this.offer.items.length === 1);
    const shown = this.itemsAt(document, position, context);
    if (isRefresh || (shown.length > 0 && !wantsMore)) {
      return shown;
    }
    if (!setting("enabled")) {
      return [];
    }
    const inContext = isRetry ? { ...context, triggerKind: Automatic } : context;
    await this.request(document, position, inContext, token, shown[0]?.insertText as string | undefined);
    return token.isCancellationRequested ? [] : this.itemsAt(document, position, context);
  }

  /** Show text that is still growing. */
  onPartial(partial: PartialCompletion): void {
    const request = this.pending.findLast(({ origin }) => answers(partial, origin));
    const offer = request && readOffer(partial.items, request.origin, request.serial, partial.done);
    if (request && !request.shown.startsWith(offer?.items[0]?.text ?? "")) {
      this.adopt(offer, request);
    }
  }

  /** Request again when the engine is ready: keys that were pressed while the model was loading got no suggestion. */
  async onReady(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (this.unanswered && !this.offer && editor) {
      this.unanswered = false;
      await this.retrying.make(editor, "editor.action.inlineSuggest.trigger");
    }
  }

  /**
   * Dismiss the suggestion. The key for it hides it in the editor first: hiding also focuses the editor, and would close
   * what the user opened while this command was on its way, such as the command palette.
   */
  async dismiss(): Promise<void> {
    this.forgetRequests(); // a reply would bring it back
    this.drop("dismissed");
    await vscode.commands.executeCommand(HIDE);
  }

  /** Remove the suggestion because the user wants none. It counts as neither accepted nor rejected. */
  async silence(): Promise<void> {
    if (this.offer) {
      this.drop(undefined);
      await vscode.commands.executeCommand(HIDE);
    }
  }

  /** Forget the suggestion and all requests, for a restart of the server. */
  reset(): void {
    this.forgetRequests();
    this.offer = undefined;
    this.drawing.forget();
  }

  dispose(): void {
    vscode.Disposable.from(this.drawing, ...this.subscriptions).dispose();
  }

  /** Wait for no reply any longer. */
  private forgetRequests(): void {
    for (const request of this.pending) {
      request.resolve?.();
    }
    this.pending = [];
  }

  private itemsAt(
    document: vscode.TextDocument,
    position: vscode.Position,
    { selectedCompletionInfo: selected }: vscode.InlineCompletionContext,
  ): vscode.InlineCompletionItem[] {
    const { offer } = this;
    if (offer?.origin.uri !== document.uri.toString()) {
      return [];
    }
    const left = remaindersOf(offer, document, position).filter(({ text }) => text !== "");
    const before = document.lineAt(position.line).text.slice(0, position.character);
    const remainders = continuing(left, before, selected && { start: selected.range.start.character, text: selected.text });
    const [first] = remainders;
    if (first) {
      this.signals.shown(offer, first.item);
      this.hasCommand = offer.done;
    }
    return remainders.map((remainder) => {
      const range = new vscode.Range(position, position.translate(0, remainder.replaced));
      const item = new vscode.InlineCompletionItem(remainder.text, range);
      if (offer.done) {
        item.command = remainder.item.command;
      }
      return item;
    });
  }

  /** Send a request. Resolves when the first text arrives, when there is none, or when the editor cancels its call. */
  private async request(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
    shown = "",
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
      position: { line: position.line, character: position.character },
      head: line.slice(0, position.character),
      tail: line.slice(position.character),
    };
    const request: PendingRequest = {
      serial: ++this.serial,
      origin,
      startedAt: performance.now(),
      token,
      shown,
      lastLine: position.line,
      resolve: undefined,
    };
    this.pending.push(request);
    const params = client.code2ProtocolConverter.asInlineCompletionParams(document, position, context);
    await new Promise<void>((resolve) => {
      request.resolve = resolve;
      token.onCancellationRequested(() => { resolve(); });
      void this.send(client, params, request);
    });
  }

  // The editor's cancellation is not sent to the server: more typing may continue the running generation.
  private async send(client: LanguageClient, params: InlineCompletionParams, request: PendingRequest): Promise<void> {
    let offer: Offer | undefined;
    try {
      const { items } = await client.sendRequest<{ items: RawItem[] }>(InlineCompletionRequest.method, params);
      offer = readOffer(items, request.origin, request.serial, true);
    } catch (error) {
      client.debug(`inline completion: ${reasonOf(error)}`);
    }
    const isStillWanted = this.pending.includes(request);
    this.pending = this.pending.filter((other) => other !== request);
    if (offer && isStillWanted) {
      this.adopt(offer, request);
    } else if (this.offer?.serial === request.serial) {
      const newer = this.pending.findLast(({ origin, serial }) => origin.uri === request.origin.uri && serial > request.serial);
      this.offer = newer && { ...this.offer, serial: newer.serial }; // without a newer request, the streamed text disappears
      if (!newer && vscode.window.activeTextEditor?.document.uri.toString() === request.origin.uri) {
        void vscode.commands.executeCommand(HIDE);
      }
    }
    request.resolve?.();
  }

  /** Show the offer of a request, unless a newer one is on the screen. */
  private adopt(offer: Offer | undefined, request: PendingRequest): void {
    if (!offer || (this.offer && offer.serial < this.offer.serial)) {
      return;
    }
    this.unanswered = false;
    // Text that only becomes final is not drawn again: otherwise a Tab in this moment would insert a tab.
    const before = this.offer;
    this.offer = offer;
    // The editor does not draw the result of a cancelled call, and keeps what it shows.
    const isOther = before !== undefined && before.id !== offer.id;
    const isKept = request.shown !== "" && offer.items[0]?.text !== request.shown;
    const isDrawn = request.resolve !== undefined && !(isOther && request.token.isCancellationRequested) && !isKept;
    if (request.resolve && (request.shown === "" || offer.done)) {
      this.onLatency(performance.now() - request.startedAt);
      request.resolve();
      request.resolve = undefined;
    }
    if (!isDrawn && !isSameOffer(offer, before)) {
      this.drawing.schedule(before);
    }
  }

  /** Return whether a request still fits its document: the only change is text that was typed at its position. */
  private isCurrent(request: PendingRequest, { document, contentChanges }: vscode.TextDocumentChangeEvent): boolean {
    if (request.origin.uri !== document.uri.toString()) {
      return true;
    }
    const lastLine = lastLineTyped(request.origin, request.lastLine, contentChanges);
    request.lastLine = lastLine ?? request.lastLine;
    return lastLine !== undefined;
  }

  private onTextChanged(event: vscode.TextDocumentChangeEvent): void {
    this.signals.textChanged(event);
    this.pending = this.pending.filter((request) => this.isCurrent(request, event));
    const { offer } = this;
    const editor = vscode.window.activeTextEditor;
    const [change] = event.contentChanges;
    if (!offer || !change || editor?.document !== event.document || event.document.uri.toString() !== offer.origin.uri) {
      return;
    }
    const [first] = remaindersAfter(offer, event.document, change);
    if (first === undefined) {
      this.drop(undefined); // `signals.replaced` finds out whether it was accepted or rejected
      this.signals.replaced(offer, change.text);
    } else if (first.text === "" && offer.done) {
      if (!this.hasCommand && !isTyping(change.text)) {
        const words: unknown[] = first.item.command.arguments ?? [];
        void vscode.commands.executeCommand(first.item.command.command, ...words);
      }
      this.offer = undefined;
      this.signals.hidden();
    } else if (!isTyping(change.text)) {
      this.signals.partlyAccepted(first.item, first.typed);
    }
  }

  private onCursorMoved(event: vscode.TextEditorSelectionChangeEvent): void {
    this.signals.cursorMoved(event.textEditor);
    const { offer } = this;
    if (!offer || event.textEditor.document.uri.toString() !== offer.origin.uri) {
      return;
    }
    if (remaindersOf(offer, event.textEditor.document, event.textEditor.selection.active).length === 0) {
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
