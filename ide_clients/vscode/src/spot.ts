// A position in one version of a document, to recognise another request of the editor there.

import type * as vscode from "vscode";

/** A position in one version of a document. */
export interface Spot {
  readonly uri: string;
  readonly version: number;
  readonly position: vscode.Position;
}

/** Return a position in the current version of a document. */
export function spotOf(document: vscode.TextDocument, position: vscode.Position): Spot {
  return { uri: document.uri.toString(), version: document.version, position };
}

/** Return whether a document still has the version of the spot, and the position is the same. */
export function isAt(spot: Spot, document: vscode.TextDocument, position: vscode.Position): boolean {
  return spot.uri === document.uri.toString() && spot.version === document.version && spot.position.isEqual(position);
}
