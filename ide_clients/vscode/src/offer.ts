// What the server offers at a place in a document, and what of it is left after the user typed on. Pure functions.

/** A place in a line, in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly character: number;
}

/** The command that tells the server that an item was accepted. */
export interface AcceptCommand {
  readonly title: string;
  readonly command: string;
  readonly arguments?: readonly unknown[];
}

/** One text that belongs at the place, and how many characters after the place it replaces. */
export interface Item {
  readonly text: string;
  readonly replaced: number;
  readonly command: AcceptCommand;
}

/** An item as it comes over the wire. */
export interface RawItem {
  readonly insertText: string | { readonly value: string };
  readonly range?: { readonly start: Place; readonly end: Place };
  readonly command?: AcceptCommand;
}

/** Where a request was made: the document's version, the cursor, and the text of the cursor's line around it. */
export interface Origin {
  readonly uri: string;
  readonly version: number;
  readonly place: Place;
  readonly head: string;
  readonly tail: string;
}

/** What the server offers for a request. `done` is false while text may still grow. */
export interface Offer {
  readonly id: string;
  readonly serial: number;
  readonly origin: Origin;
  readonly items: readonly Item[];
  readonly done: boolean;
}

/** The notification that carries text which is still growing. */
export interface PartialCompletion {
  readonly id: string;
  readonly uri: string;
  readonly version: number;
  readonly position: Place;
  readonly items: readonly RawItem[];
  readonly done: boolean;
}

/** A change of a document: the text that takes the place of a range. */
export interface Change {
  readonly range: { readonly start: Place; readonly end: Place };
  readonly text: string;
}

/** What is left of an item at the cursor: the text to insert, and how many characters after the cursor it replaces. */
export interface Rest {
  readonly item: Item;
  readonly text: string;
  readonly typed: string;
  readonly replaced: number;
}

/** The document as far as this module needs it. */
export interface TextSource {
  lineAt(line: number): { readonly text: string };
  readonly lineCount: number;
}

const CLOSERS = /^[)\]}>"'`]*$/;
const ACCEPTED = "draftline.accepted";

function readItem(raw: RawItem, origin: Origin, id: string, index: number): Item | undefined {
  const insertText = typeof raw.insertText === "string" ? raw.insertText : raw.insertText.value;
  const text = insertText.replaceAll(/\r\n?/g, "\n");
  const command = raw.command ?? { title: "", command: ACCEPTED, arguments: [id, index] };
  if (!raw.range) {
    return { text, replaced: 0, command };
  }
  const { start, end } = raw.range;
  if (start.line !== origin.place.line || end.line !== origin.place.line) {
    return undefined;
  }
  // The part of the range before the cursor must be what the text starts with, else it is no insertion.
  const before = origin.head.slice(start.character);
  if (!text.startsWith(before)) {
    return undefined;
  }
  return { text: text.slice(before.length), replaced: Math.max(0, end.character - origin.place.character), command };
}

/** Read the server's items; undefined if none of them can be shown. */
export function readOffer(
  rawItems: readonly RawItem[],
  origin: Origin,
  serial: number,
  done: boolean,
  id?: string,
): Offer | undefined {
  const first: unknown = rawItems[0]?.command?.arguments?.[0];
  const known = id ?? (typeof first === "string" ? first : "");
  const items = rawItems.map((raw, index) => readItem(raw, origin, known, index)).filter((item) => item !== undefined);
  return items.length > 0 ? { id: known, serial, origin, items, done } : undefined;
}

/** Whether streamed text answers the request that was made there; one for another version of the document does not. */
export function answers(partial: PartialCompletion, { uri, version, place }: Origin): boolean {
  const isThere = partial.position.line === place.line && partial.position.character === place.character;
  return isThere && partial.uri === uri && partial.version === version;
}

/**
 * The last line of what was typed since a request, after more changes; undefined if a change lies elsewhere. What is
 * offered is made for the text around those lines, `restsOf` compares the lines themselves.
 */
export function lastLineTyped(origin: Origin, lastLine: number, changes: readonly Change[]): number | undefined {
  let last = lastLine;
  for (const { range, text } of changes) {
    if (range.start.line < origin.place.line || range.end.line > last) {
      return undefined;
    }
    last += text.split(/\r\n|\r|\n/).length - 1 - (range.end.line - range.start.line);
  }
  return last;
}

/** Whether drawing one would change nothing of the other: neither its texts nor what accepting it tells the server. */
export function isSameOffer(one: Offer, other: Offer | undefined): boolean {
  const shown = (offer: Offer | undefined) =>
    JSON.stringify([offer?.id, ...(offer?.items ?? []).map((item) => [item.text, item.replaced])]);
  return shown(one) === shown(other);
}

/** The text between two places, its lines joined by "\n"; undefined if the first is not before the second. */
function textBetween(document: TextSource, from: Place, to: Place): string | undefined {
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

/** What is left of each item of an offer at the cursor; empty if something else was typed. */
export function restsOf(offer: Offer, document: TextSource, cursor: Place): Rest[] {
  const { place, head, tail } = offer.origin;
  if (place.line >= document.lineCount || !document.lineAt(place.line).text.startsWith(head)) {
    return [];
  }
  const typed = textBetween(document, place, cursor);
  const tailNow = document.lineAt(cursor.line).text.slice(cursor.character);
  const added = tailNow.length - tail.length;
  // An editor that closes brackets by itself may have put closers after the cursor since the request.
  if (typed === undefined || added < 0 || !tailNow.endsWith(tail) || !CLOSERS.test(tailNow.slice(0, added))) {
    return [];
  }
  return offer.items
    .filter((item) => item.text.startsWith(typed) || (!offer.done && typed.startsWith(item.text)))
    .map((item) => ({ item, text: item.text.slice(typed.length), typed, replaced: added + item.replaced }));
}
