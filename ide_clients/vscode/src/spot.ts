// A place in one version of a document, to recognise it when the editor asks there again.

import type * as vscode from "vscode";

/** A place in one version of a document. */
export interface Spot {
  readonly uri: string;
  readonly version: number;
  readonly place: vscode.Position;
}

export function spotOf(document: vscode.TextDocument, place: vscode.Position): Spot {
  return { uri: document.uri.toString(), version: document.version, place };
}

export function isAt(spot: Spot, document: vscode.TextDocument, place: vscode.Position): boolean {
  return spot.uri === document.uri.toString() && spot.version === document.version && spot.place.isEqual(place);
}
