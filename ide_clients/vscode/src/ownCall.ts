// Makes the editor request items again, and recognises that call, which the editor calls a manual request.

import * as vscode from "vscode";

/** A position in one version of a document. */
interface Spot {
  readonly uri: string;
  readonly version: number;
  readonly position: vscode.Position;
}

export class OwnCall {
  private expected: Spot | undefined; // where the call comes from, until it comes

  /** Run commands of which one makes the editor call at its cursor. */
  async make({ document, selection }: vscode.TextEditor, ...commands: string[]): Promise<void> {
    this.expected = { uri: document.uri.toString(), version: document.version, position: selection.active };
    await Promise.all(commands.map((command) => vscode.commands.executeCommand(command))); // they run in this order
  }

  /**
   * Return whether a call of the editor is this one, and expect it no longer. It may never come, for example if another
   * editor becomes active; then a later manual request must not be taken for it.
   */
  take(document: vscode.TextDocument, position: vscode.Position): boolean {
    const { expected } = this;
    this.expected = undefined;
    const isHere = expected?.uri === document.uri.toString() && expected.version === document.version;
    return isHere && expected.position.isEqual(position);
  }

  /** Expect the call no longer. */
  forget(): void {
    this.expected = undefined;
  }
}
