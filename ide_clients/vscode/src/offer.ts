// The suggestions for one request, and what remains of them after the user typed more. Pure functions.

import type { Command, Position } from "vscode-languageclient";

/**
 * A character that may stand after the cursor once `from` characters of a text are typed, and the offset `to` of the same one
 * in the text. From 0 on: the text replaces it. Without `to`: the text does not have it, and it stays.
 */
export interface Closer {
  readonly character: string;
  readonly from: number;
  readonly to?: number;
}

/** A suggestion: the text to insert at the cursor, how many characters after the cursor it replaces, and its closers. */
export interface Item {
  readonly text: string;
  readonly replaced: number;
  readonly closers: readonly Closer[]; // in the order in which they stand after the cursor
  readonly command: Command;
}

/** An item as the server sends it. */
export interface RawItem {
  readonly insertText: string;
  readonly range: { readonly start: Position; readonly end: Position };
  readonly closers: readonly Closer[];
  readonly command: Command;
}

/** Where a request was made: document, version, cursor, and the text before and after the cursor on its line. */
export interface Origin {
  readonly uri: string;
  readonly version: number;
  readonly position: Position;
  readonly head: string;
  readonly tail: string;
}

/** The suggestions for a request. `done` is false while they can still grow. */
export interface Offer {
  readonly id: string;
  readonly serial: number;
  readonly origin: Origin;
  readonly items: readonly Item[];
  readonly done: boolean;
}

/** The notification with text that is still growing. */
export interface PartialCompletion {
  readonly uri: string;
  readonly version: number;
  readonly position: Position;
  readonly items: readonly RawItem[];
  readonly done: boolean;
}

/** A change of a document: the text that replaces a range. */
export interface Change {
  readonly range: { readonly start: Position; readonly end: Position };
  readonly text: string;
}

/** What remains of an item at the cursor: the text to insert, and how many characters after the cursor it replaces. */
export interface Remainder {
  readonly item: Item;
  readonly text: string;
  readonly typed: string;
  readonly replaced: number;
}

/** The part of a document's interface that this module needs. */
export interface TextSource {
  lineAt(line: number): { readonly text: string };
  readonly lineCount: number;
}

const PAIRS = ["()", "[]", "{}", "<>", '""', "''", "``"]; // what the editor inserts when the user types an opener
const MAX_CLOSERS = 3; // that the editor adds at once

/** Read the server's items. Return undefined if there are none. */
export function readOffer(rawItems: readonly RawItem[], origin: Origin, serial: number, done: boolean): Offer | undefined {
  const items = rawItems.map(({ insertText, range, closers, command }) => {
    const replaced = range.end.character - range.start.character;
    return { text: insertText.replaceAll(/\r\n?/g, "\n"), replaced, closers, command };
  });
  const id: unknown = items[0]?.command.arguments?.[0];
  return typeof id === "string" ? { id, serial, origin, items, done } : undefined;
}

/** Return whether streamed text belongs to a request. Text for another version of the document does not. */
export function answers(partial: PartialCompletion, { uri, version, position }: Origin): boolean {
  const isThere = partial.position.line === position.line && partial.position.character === position.character;
  return isThere && partial.uri === uri && partial.version === version;
}

/**
 * Return the last line that the user typed since a request, after more changes. Return undefined if a change is elsewhere:
 * suggestions depend on the text around these lines. `remaindersOf` compares the lines themselves.
 */
export function lastLineTyped(origin: Origin, lastLine: number, changes: readonly Change[]): number | undefined {
  let last = lastLine;
  for (const { range, text } of changes) {
    if (range.start.line < origin.position.line || range.end.line > last) {
      return undefined;
    }
    last += text.split(/\r\n|\r|\n/).length - 1 - (range.end.line - range.start.line);
  }
  return last;
}

/** Return whether two offers show the same text and report the same when they are accepted. */
export function isSameOffer(one: Offer, other: Offer | undefined): boolean {
  const shown = (offer: Offer | undefined) =>
    JSON.stringify([offer?.id, ...(offer?.items ?? []).map((item) => [item.text, item.replaced])]);
  return shown(one) === shown(other);
}

/** Return the text between two positions, lines separated by "\n". Return undefined if the first is after the second. */
function textBetween(document: TextSource, from: Position, to: Position): string | undefined {
  if (to.line < from.line || (to.line === from.line && to.character < from.character) || to.line >= document.lineCount) {
    return undefined;
  }
  const lines: string[] = [];
  for (let line = from.line; line <= to.line; line++) {
    const { text } = document.lineAt(line);
    lines.push(text.slice(line === from.line ? from.character : 0, line === to.line ? to.character : undefined));
  }
  return lines.join("\n");
}

/**
 * Return how many of the characters after the cursor a text contains itself after its first `typed` characters. `standing` is
 * what stands there before the text that the item keeps. Return undefined if it is neither what stood there nor closers.
 */
function containedIn({ closers }: Item, typed: number, standing: string): number | undefined {
  let [left, contained] = [standing, 0];
  for (const { character, from, to = Infinity } of closers.toReversed()) {
    const stoodThere = from === 0; // until it is typed over, which some editors do not do
    if (left.endsWith(character) && from <= typed && (stoodThere || typed <= to)) {
      left = left.slice(0, -character.length);
      contained += to === Infinity ? 0 : character.length;
    } else if (stoodThere && typed <= to) {
      return undefined;
    }
  }
  return left === "" ? contained : undefined;
}

/** Return what remains of each item at the cursor. The list is empty if the user typed something else. */
export function remaindersOf(offer: Offer, document: TextSource, cursor: Position): Remainder[] {
  const { position, head, tail } = offer.origin;
  if (position.line >= document.lineCount || !document.lineAt(position.line).text.startsWith(head)) {
    return [];
  }
  const typed = textBetween(document, position, cursor);
  if (typed === undefined) {
    return [];
  }
  const after = document.lineAt(cursor.line).text.slice(cursor.character);
  return offer.items.flatMap((item) => {
    const kept = tail.slice(item.replaced);
    const text = item.text.slice(typed.length);
    const isAhead = !offer.done && typed.startsWith(item.text); // of a text that grows
    if (!after.endsWith(kept) || !(isAhead || item.text.startsWith(typed))) {
      return [];
    }
    const replaced = isAhead ? 0 : containedIn(item, typed.length, after.slice(0, after.length - kept.length));
    return replaced === undefined ? [] : [{ item, text, typed, replaced }];
  });
}

/**
 * Return the remainders that continue the selected item of the editor's list, which would insert `selected.text` in place
 * of what begins at `selected.start`. The editor shows no others.
 */
export function continuing(
  remainders: readonly Remainder[],
  before: string,
  selected: { readonly start: number; readonly text: string } | undefined,
): Remainder[] {
  return remainders.filter(({ text }) => !selected || (before.slice(selected.start) + text).startsWith(selected.text));
}

/** Return what remains of each item after a change, at a likely cursor: after the new text, or before closers at its end. */
export function remaindersAfter(offer: Offer, document: TextSource, { range: { start }, text }: Change): Remainder[] {
  const lines = text.split(/\r\n|\r|\n/);
  const [line, first] = [start.line + lines.length - 1, lines.length === 1 ? start.character : 0];
  const last = lines.at(-1)?.length ?? 0;
  for (let length = last; length >= Math.max(0, last - MAX_CLOSERS); length--) {
    const remainders = remaindersOf(offer, document, { line, character: first + length });
    if (remainders.length > 0) {
      return remainders;
    }
  }
  return [];
}

/** Return whether new text is typing, not an accepted part: one character, also with its closer, or only blanks. */
export function isTyping(text: string): boolean {
  return text.length <= 1 || text.trim() === "" || PAIRS.includes(text);
}
