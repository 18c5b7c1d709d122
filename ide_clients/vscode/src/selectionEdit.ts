// Edits whole lines by an instruction. The new lines appear below the old ones, coloured as in a diff. Accepting removes
// the old lines, rejecting the new ones; one undo takes back what was accepted. A document that is saved automatically
// would be saved with the new lines. There they are drawn beside the old ones and get into the document when accepted.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { reasonOf } from "./errors.js";
import { type ChangedLines, changedLines, linesBeside, linesOf } from "./lines.js";
import type { OpenEdit, Place } from "./openEdit.js";

const STATE = "draftline.edit"; // "generating", "shown" or ""
const SHOWN_MS = 5000; // how long the status bar shows a sentence

/** An edit on the screen: `removed` old lines from line `first` on, and the `added` lines. */
interface Shown extends Place {
  editor: vscode.TextEditor; // a new one when its tab comes back to the front
  first: number;
  readonly added: readonly string[]; // `inserted` of these are in the document: all or none
}

/** A growing text, as the server sends it. */
export interface PartialEdit {
  readonly id: string;
  readonly text: string;
}

export class SelectionEdits implements vscode.Disposable {
  private shown: Shown | undefined;
  private running: vscode.CancellationTokenSource | undefined;
  private progress: vscode.Disposable | undefined;
  private serial = 0;
  private isOwnChange = false;
  private readonly old = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.removedLineBackground"),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
  });
  private readonly beside = vscode.window.createTextEditorDecorationType({});
  private readonly subscriptions = vscode.Disposable.from(
    vscode.workspace.onDidChangeTextDocument((event) => { this.onChange(event); }),
    vscode.workspace.onWillSaveTextDocument((event) => { this.onSave(event); }),
    vscode.window.onDidChangeActiveTextEditor((editor) => { void this.onEditor(editor); }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (document === this.shown?.editor.document) {
        this.forget();
      }
    }),
  );

  constructor(private readonly client: () => LanguageClient | undefined, private readonly open: OpenEdit) {
    void this.onEditor(vscode.window.activeTextEditor);
  }

  /** Ask for an instruction and edit the selected lines. */
  async start(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const instruction = editor && (await vscode.window.showInputBox({ prompt: "How should the selected lines change?" }));
    if (!editor || instruction === undefined || instruction.trim() === "") {
      return;
    }
    await this.reject();
    const { document, selection } = editor;
    const isLineStart = selection.end.character === 0 && selection.end.line > selection.start.line;
    const [first, end] = [selection.start.line, selection.end.line + (isLineStart ? 0 : 1)];
    const text = await this.edited(document, new vscode.Range(first, 0, end, 0), instruction);
    if (text !== undefined) {
      const before = Array.from({ length: end - first }, (_, line) => document.lineAt(first + line).text);
      await this.show(document, first, changedLines(before, linesOf(text)));
    }
  }

  /** Show how many lines of a growing text there are. */
  onPartial(partial: PartialEdit): void {
    if (this.running && partial.id === String(this.serial)) {
      const count = linesOf(partial.text).length;
      const before = this.progress;
      this.progress = vscode.window.setStatusBarMessage(`draftline edits: ${count} lines, Escape cancels`);
      before?.dispose();
    }
  }

  /** Remove the old lines, and insert the new ones unless they are there. */
  async accept(): Promise<void> {
    const shown = this.forget();
    if (shown) {
      const isAlone = shown.inserted === 0;
      await this.change(shown.editor, (builder) => { acceptIn(builder, shown); }, isAlone, true);
    }
  }

  /** Remove the new lines, or cancel the edit while it is generated. */
  async reject(): Promise<void> {
    this.running?.cancel();
    const shown = this.forget();
    if (shown && shown.inserted > 0) {
      const lines = wholeLines(shown.editor.document, shown.first + shown.removed, shown.inserted);
      await this.change(shown.editor, (builder) => { builder.delete(lines); }, false, true);
    }
  }

  dispose(): void {
    this.running?.cancel();
    this.subscriptions.dispose();
    vscode.Disposable.from(this.old, this.added, this.beside).dispose();
  }

  /** Return the edited text. Return undefined if there is none, and say why. */
  private async edited(document: vscode.TextDocument, range: vscode.Range, instruction: string): Promise<string | undefined> {
    const client = this.client();
    if (!client?.isRunning()) {
      tell("the server does not run");
      return undefined;
    }
    this.serial++;
    const [running, version] = [new vscode.CancellationTokenSource(), document.version];
    this.running = running;
    void setState("generating");
    try {
      const converter = client.code2ProtocolConverter;
      const params = {
        id: String(this.serial),
        uri: converter.asUri(document.uri),
        version,
        range: converter.asRange(range),
        instruction,
      };
      const { text, reason } = await client.sendRequest<{ text: string; reason: string }>("draftline/edit", params, running.token);
      if (reason !== "" || document.version !== version) {
        tell(reason || "the document changed");
        return undefined;
      }
      return text;
    } catch (error) {
      if (!running.token.isCancellationRequested) {
        tell(reasonOf(error));
      }
      return undefined;
    } finally {
      if (this.running === running) {
        this.running = undefined;
        this.progress?.dispose();
        void setState("");
      }
      running.dispose();
    }
  }

  private async show(document: vscode.TextDocument, line: number, { start, removed, added }: ChangedLines): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document !== document || (removed === 0 && added.length === 0)) {
      tell(editor?.document === document ? "the model changes nothing" : "the edited file is not in front");
      return;
    }
    const isSavedAutomatically = vscode.workspace.getConfiguration("files", document).get("autoSave") !== "off";
    const inserted = isSavedAutomatically ? 0 : added.length;
    const shown = { editor, first: line + start, removed, added, inserted };
    const isThere = inserted === 0 || (await this.change(editor, (builder) => { insertIn(builder, shown); }, true, false));
    if (isThere) {
      this.shown = shown;
      this.open.store(document, shown);
      await this.onEditor(editor);
    }
  }

  /** Draw the edit in an editor of its document that came to the front. In another one, leave the keys alone. */
  private async onEditor(editor: vscode.TextEditor | undefined): Promise<void> {
    this.shown ??= editor && this.open.shownIn(editor);
    if (this.shown && editor?.document === this.shown.editor.document) {
      this.shown.editor = editor;
      await setState("shown"); // before the colours: who sees them can press the keys
      this.draw();
    } else if (this.shown) {
      await setState("");
    }
  }

  private draw(): void {
    if (this.shown) {
      const { editor, first, removed, inserted } = this.shown;
      const lines = (from: number, count: number) => (count > 0 ? [new vscode.Range(from, 0, from + count - 1, 0)] : []);
      editor.setDecorations(this.old, lines(first, removed));
      editor.setDecorations(this.added, lines(first + removed, inserted));
      editor.setDecorations(this.beside, inserted > 0 ? [] : besideOld(this.shown));
    }
  }

  /** Change the document; without a stop between two changes, one undo takes back both. */
  private async change(
    editor: vscode.TextEditor,
    build: (builder: vscode.TextEditorEdit) => void,
    undoStopBefore: boolean,
    undoStopAfter: boolean,
  ): Promise<boolean> {
    this.isOwnChange = true;
    try {
      return await editor.edit(build, { undoStopBefore, undoStopAfter });
    } finally {
      this.isOwnChange = false;
    }
  }

  /** Follow changes above the edit. A change inside it leaves the lines to the user. */
  private onChange({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    for (const { range, text } of contentChanges) {
      const shown = this.shown;
      if (this.isOwnChange || document !== shown?.editor.document) {
        return;
      }
      if (range.end.line < shown.first) {
        shown.first += text.split("\n").length - 1 - (range.end.line - range.start.line);
        this.open.store(document, shown);
      } else if (range.start.line < shown.first + shown.removed + shown.inserted) {
        this.forget();
      }
    }
  }

  /** Save without the new lines, which are not accepted. */
  private onSave(event: vscode.TextDocumentWillSaveEvent): void {
    if (event.document === this.shown?.editor.document && this.shown.inserted > 0) {
      const { first, removed, inserted } = this.shown;
      this.forget();
      event.waitUntil(Promise.resolve([vscode.TextEdit.delete(wholeLines(event.document, first + removed, inserted))]));
    }
  }

  private forget(): Shown | undefined {
    const shown = this.shown;
    this.shown = undefined;
    if (shown) {
      this.open.store(shown.editor.document, undefined);
      for (const decoration of [this.old, this.added, this.beside]) {
        shown.editor.setDecorations(decoration, []);
      }
      void setState("");
    }
    return shown;
  }
}

/** Insert the new lines below the old ones. */
function insertIn(builder: vscode.TextEditorEdit, { editor: { document }, first, removed, added }: Shown): void {
  const below = first + removed;
  const eol = eolOf(document);
  if (below < document.lineCount) {
    builder.insert(new vscode.Position(below, 0), added.join(eol) + eol);
  } else {
    builder.insert(document.lineAt(document.lineCount - 1).range.end, eol + added.join(eol));
  }
}

/** Remove the old lines, and insert the new ones in their place unless they are in the document. */
function acceptIn(builder: vscode.TextEditorEdit, shown: Shown): void {
  const { editor: { document }, first, removed, added, inserted } = shown;
  if (removed === 0 && inserted === 0) {
    insertIn(builder, shown);
  } else if (inserted === 0 && added.length > 0) {
    const end = document.lineAt(first + removed - 1).range.end;
    builder.replace(new vscode.Range(new vscode.Position(first, 0), end), added.join(eolOf(document)));
  } else if (removed > 0) {
    builder.delete(wholeLines(document, first, removed));
  }
}

/** Return what draws the new lines beside the old ones, or after the line above if there are none. */
function besideOld({ editor: { document }, first, removed, added }: Shown): vscode.DecorationOptions[] {
  const row = removed > 0 ? first : Math.max(first - 1, 0);
  const hoverMessage = new vscode.MarkdownString().appendCodeblock(added.join("\n"), document.languageId);
  // Opaque: the colour of an inserted line would mix with that of the removed line behind it.
  const color = new vscode.ThemeColor("gitDecoration.addedResourceForeground");
  const backgroundColor = new vscode.ThemeColor("editor.background");
  return linesBeside(added, Math.max(removed, 1)).map((contentText, index) => ({
    range: document.lineAt(row + index).range,
    hoverMessage,
    renderOptions: { after: { contentText, color, backgroundColor, margin: "0 0 0 2em" } },
  }));
}

function eolOf(document: vscode.TextDocument): string {
  return document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
}

/** Return the range of whole lines with one of the line ends around them. */
function wholeLines(document: vscode.TextDocument, from: number, count: number): vscode.Range {
  if (from + count < document.lineCount || from === 0) {
    return new vscode.Range(from, 0, from + count, 0);
  }
  return new vscode.Range(document.lineAt(from - 1).range.end, document.lineAt(document.lineCount - 1).range.end);
}

function setState(state: "generating" | "shown" | ""): Thenable<unknown> {
  return vscode.commands.executeCommand("setContext", STATE, state);
}

function tell(sentence: string): void {
  vscode.window.setStatusBarMessage(`draftline: ${sentence}`, SHOWN_MS);
}
