// The next edit: what the user's last edits imply for other lines, shown as a dim diff. The first Tab jumps to it, also in
// another document, the next one applies it, Escape refuses it for good. A suggestion at the cursor goes first:
// package.json binds the keys.

import * as vscode from "vscode";
import type { LanguageClient, Range } from "vscode-languageclient/node";
import { reasonOf } from "./errors.js";
import { changedText, summaryOf } from "./lines.js";
import { setting } from "./settings.js";

const STATE = "draftline.nextEdit"; // whether an edit is on the screen
const TAB = "draftline.nextEditTab"; // whether Tab jumps to it or applies it
const METHOD = "draftline/nextEdit";
const DIAGNOSTICS = "draftline/diagnostics";
const [MAX_DIAGNOSTICS, MAX_MESSAGE] = [64, 300]; // what the server reads of them
// After a diagnostic that may not be the last one, and after an edit, which is followed by a completion.
const PAUSE_MS = 100;
// After a key. With less, half of a name appears in other lines between two keys; what has appeared once does not again.
const TYPING_PAUSE_MS = 500;
const GHOST = new vscode.ThemeColor("editorGhostText.foreground");

/** An edit as the server sends it: for one version of a document, and for the text that it names. */
interface RawEdit {
  readonly id: string;
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly range: Range;
  readonly text: string;
  readonly oldText: string;
  readonly command: { readonly command: string; readonly arguments?: readonly unknown[] };
}

/** An edit on the screen, in the editor in front; a hint there if it is of another document. */
interface Shown {
  readonly editor: vscode.TextEditor;
  readonly document: vscode.TextDocument;
  readonly range: vscode.Range;
  readonly raw: RawEdit;
}

export class NextEdits implements vscode.Disposable {
  private shown: Shown | undefined;
  private running: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  private telling: NodeJS.Timeout | undefined;
  private told = ""; // the diagnostics that the server got last
  private isApplying = false;
  private isFollowing = false; // the cursor is where Tab has brought it
  private passed = ""; // the edit that was on the screen when the user typed elsewhere; not shown again by itself
  private readonly old = vscode.window.createTextEditorDecorationType({ textDecoration: "line-through", opacity: "0.6" });
  private readonly added = vscode.window.createTextEditorDecorationType({});
  private readonly subscriptions = vscode.Disposable.from(
    vscode.workspace.onDidChangeTextDocument((event) => { this.onChange(event); }),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => { this.onDiagnostics(uris); }),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      if (!editor || editor !== this.shown?.editor) { // not after a jump
        this.hide();
      }
      this.onDiagnostics(editor ? [editor.document.uri] : []); // those that changed in the background
    }),
    vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
      const { Keyboard, Mouse } = vscode.TextEditorSelectionChangeKind;
      this.isFollowing &&= kind !== Keyboard && kind !== Mouse; // an extension has moved it: this one, by a jump
      this.draw();
    }),
    vscode.window.onDidChangeTextEditorVisibleRanges(() => { this.draw(); }),
  );

  constructor(private readonly client: () => LanguageClient | undefined) {}

  /** Request the next edit and show it. */
  async request(kind: vscode.InlineCompletionTriggerKind): Promise<void> {
    if (kind === vscode.InlineCompletionTriggerKind.Invoke) {
      this.tellDiagnostics(); // what a tool has just reported counts, too
    }
    this.hide();
    const [client, editor] = [this.client(), vscode.window.activeTextEditor];
    if (!client?.isRunning() || !editor) {
      return;
    }
    const { document } = editor;
    const running = new vscode.CancellationTokenSource();
    this.running = running;
    const uri = client.code2ProtocolConverter.asUri(document.uri);
    // The protocol's numbers are the editor's and one more.
    const params = { textDocument: { uri, version: document.version }, context: { triggerKind: kind + 1 } };
    try {
      const { edits } = await client.sendRequest<{ edits: RawEdit[] }>(METHOD, params, running.token);
      const [raw] = edits;
      const isPassed = kind === vscode.InlineCompletionTriggerKind.Automatic && raw && nameOf(raw) === this.passed;
      const named = raw && client.protocol2CodeConverter.asUri(raw.textDocument.uri).toString();
      const target = vscode.workspace.textDocuments.find((each) => each.uri.toString() === named);
      if (raw && target && !isPassed && this.running === running && editor === vscode.window.activeTextEditor) {
        await this.show({ editor, document: target, range: client.protocol2CodeConverter.asRange(raw.range), raw });
      }
    } catch (error) {
      if (!running.token.isCancellationRequested) {
        client.debug(`next edit: ${reasonOf(error)}`);
      }
    } finally {
      running.dispose();
    }
  }

  /** Jump to the edit. If the cursor is there, apply it; one undo takes it back. */
  async accept(): Promise<void> {
    const { shown } = this;
    if (!shown || !isCurrent(shown)) {
      this.hide();
      return;
    }
    const { editor, document, range, raw } = shown;
    this.isFollowing = true;
    if (editor.document !== document) {
      this.hide();
      const selection = new vscode.Selection(range.start, range.start);
      await this.show({ ...shown, editor: await vscode.window.showTextDocument(document, { selection }) });
      return;
    }
    if (editor.selection.active.line !== range.start.line) {
      editor.selection = new vscode.Selection(range.start, range.start);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      return;
    }
    this.hide();
    this.isApplying = true;
    let isApplied = false;
    try {
      isApplied = await editor.edit((builder) => { builder.replace(range, raw.text); });
    } finally {
      this.isApplying = false;
    }
    if (isApplied) {
      await this.tell(raw.command.command, raw.command.arguments ?? []);
    }
  }

  /** Refuse the edit: it never comes back. */
  async refuse(): Promise<void> {
    const { shown } = this;
    this.hide();
    if (shown) {
      await this.tell("draftline.nextEditRefused", [shown.raw.id]);
    }
  }

  /** Remove the edit from the screen and stop the request for one. */
  hide(): void {
    clearTimeout(this.timer);
    this.running?.cancel();
    this.running = undefined;
    const { shown } = this;
    this.shown = undefined;
    if (shown) {
      shown.editor.setDecorations(this.old, []);
      shown.editor.setDecorations(this.added, []);
      void setContext(STATE, false);
      void setContext(TAB, false);
    }
  }

  dispose(): void {
    this.hide();
    clearTimeout(this.telling);
    this.subscriptions.dispose();
    this.old.dispose();
    this.added.dispose();
  }

  /** Run a command about an edit that left the screen, then request the next one. */
  private async tell(command: string, words: readonly unknown[]): Promise<void> {
    await vscode.commands.executeCommand(command, ...words);
    this.soon();
  }

  /** Request the next edit after a pause: a completion that comes after a request for next edits would end it. */
  private soon(pauseMs = PAUSE_MS): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { void this.request(vscode.InlineCompletionTriggerKind.Automatic); }, pauseMs);
  }

  private async show(shown: Shown): Promise<void> {
    if (isCurrent(shown)) {
      this.shown = shown;
      void setContext(TAB, this.takesTab(shown)); // no wait between the two: the edit may be hidden meanwhile
      await setContext(STATE, true); // before the colours: who sees them can press the keys
      this.draw();
    }
  }

  /** Return whether Tab is the edit's key at the cursor: in its first line, after another edit, or where it indents none. */
  private takesTab({ editor, document, range }: Shown): boolean {
    const { line, character } = editor.selection.active;
    const indentation = editor.document.lineAt(line).firstNonWhitespaceCharacterIndex;
    const isThere = editor.document === document && line === range.start.line;
    return this.isFollowing || isThere || character > indentation;
  }

  private draw(): void {
    if (!this.shown) {
      return;
    }
    const { editor, document, range } = this.shown;
    void setContext(TAB, this.takesTab(this.shown));
    const isVisible = editor.document === document
      && editor.visibleRanges.some((part) => part.start.line <= range.start.line && range.start.line <= part.end.line);
    const { old, added } = isVisible ? diffOf(this.shown) : { old: [], added: [hintOf(this.shown)] };
    editor.setDecorations(this.old, old);
    editor.setDecorations(this.added, added);
  }

  private onChange({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0 || document !== vscode.window.activeTextEditor?.document || this.isApplying) {
      return;
    }
    this.isFollowing = false;
    this.passed = this.shown ? nameOf(this.shown.raw) : this.passed;
    this.hide();
    this.soon(TYPING_PAUSE_MS);
  }

  private onDiagnostics(uris: readonly vscode.Uri[]): void {
    const here = vscode.window.activeTextEditor?.document.uri.toString();
    if (uris.some((uri) => uri.toString() === here)) {
      clearTimeout(this.telling);
      this.telling = setTimeout(() => { this.tellDiagnostics(); }, PAUSE_MS);
    }
  }

  /** Tell the server what other tools report about the document in front, and request the edit that this may imply. */
  private tellDiagnostics(): void {
    const [client, document] = [this.client(), vscode.window.activeTextEditor?.document];
    if (!client?.isRunning() || !document || setting("nextEdit") === "off") {
      return;
    }
    const diagnostics = vscode.languages.getDiagnostics(document.uri)
      .filter(({ severity }) => severity <= vscode.DiagnosticSeverity.Warning)
      .slice(0, MAX_DIAGNOSTICS)
      .map(({ range, severity, message }) => {
        const at = { line: range.start.line, character: 0 }; // the server reads no columns
        // The protocol's numbers are the editor's and one more.
        return { range: { start: at, end: at }, severity: severity + 1, message: message.slice(0, MAX_MESSAGE) };
      });
    const params = { uri: client.code2ProtocolConverter.asUri(document.uri), version: document.version, diagnostics };
    const before = this.told;
    this.told = JSON.stringify(params);
    if (this.told === before) {
      return;
    }
    void client.sendNotification(DIAGNOSTICS, params);
    if (diagnostics.length > 0 && !this.shown) {
      this.soon();
    }
  }
}

/** Return what stays the same of an edit while its line moves. */
function nameOf({ textDocument, oldText, text }: RawEdit): string {
  return [textDocument.uri, oldText, text].join("\0");
}

/** Return whether the document has the version and the text that an edit names. */
function isCurrent({ document, range, raw }: Shown): boolean {
  return document.version === raw.textDocument.version && document.getText(range) === raw.oldText;
}

/** Return the ranges that the edit removes, and its new text after them: in each line, or after the last one. */
function diffOf({ range, raw }: Shown): { old: vscode.Range[]; added: vscode.DecorationOptions[] } {
  const [before, after] = [raw.oldText.split(/\r?\n/), raw.text.split(/\r?\n/)];
  if (before.length !== after.length) {
    return { old: [range], added: [textAfter(range.end, ` ${after.map((line) => line.trim()).join(" ⏎ ")}`)] };
  }
  const changes = before.map((line, row) => ({ line: range.start.line + row, ...changedText(line, after[row] ?? "") }));
  return {
    old: changes.map(({ line, start, end }) => new vscode.Range(line, start, line, end)),
    added: changes.map(({ line, end, text }) => textAfter(new vscode.Position(line, end), text)),
  };
}

/** Return a hint at the cursor for an edit that is off the screen. */
function hintOf({ editor, document, range, raw }: Shown): vscode.DecorationOptions {
  const { line } = editor.selection.active;
  const summary = summaryOf(raw.oldText.split(/\r?\n/), raw.text.split(/\r?\n/));
  const place = editor.document === document ? "line " : `${vscode.workspace.asRelativePath(document.uri)}:`;
  return textAfter(editor.document.lineAt(line).range.end, `  → ${place}${range.start.line + 1}: ${summary}`);
}

function textAfter(position: vscode.Position, contentText: string): vscode.DecorationOptions {
  return { range: new vscode.Range(position, position), renderOptions: { after: { contentText, color: GHOST } } };
}

function setContext(key: string, value: boolean): Thenable<unknown> {
  return vscode.commands.executeCommand("setContext", key, value);
}
