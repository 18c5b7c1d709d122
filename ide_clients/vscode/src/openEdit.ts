// Remembers over a restart of the editor where an edit is that was neither accepted nor rejected. The editor restores the text
// of a changed document with the old and the new lines, but nothing of the extension. Only a hash of the lines is stored.

import { createHash } from "node:crypto";
import type * as vscode from "vscode";

const KEY = "draftline.openEdit";

/** Where an edit is in its document: `removed` old lines from line `first` on, and the `inserted` lines below them. */
export interface Place {
  readonly first: number;
  readonly removed: number;
  readonly inserted: number;
}

interface Stored extends Place {
  readonly hash: string;
}

export class OpenEdit {
  constructor(private readonly state: vscode.Memento) {}

  /** Store where an edit is; undefined if there is none any more. */
  store(document: vscode.TextDocument, place: Place | undefined): void {
    const { first = 0, removed = 0, inserted = 0 } = place ?? {};
    const stored: Stored = { first, removed, inserted, hash: hashOf(document, { first, removed, inserted }) };
    void this.state.update(KEY, inserted > 0 ? stored : undefined);
  }

  /** Return the stored edit if it is in this editor's document: that has changed, and its lines are there. */
  shownIn(editor: vscode.TextEditor): (Place & { editor: vscode.TextEditor; added: string[] }) | undefined {
    const { document } = editor;
    const stored = this.state.get<Stored>(KEY);
    const isThere = stored && document.isDirty && stored.hash === hashOf(document, stored);
    return isThere ? { ...stored, editor, added: [] } : undefined;
  }
}

function hashOf(document: vscode.TextDocument, { first, removed, inserted }: Place): string {
  const lines = Array.from({ length: removed + inserted }, (_, line) =>
    first + line < document.lineCount ? document.lineAt(first + line).text : "",
  );
  return createHash("sha256").update([document.uri.toString(), ...lines].join("\n")).digest("hex");
}
