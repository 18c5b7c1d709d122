// The suggestions for one request, and what remains of them after the user typed more. Pure functions.

/** A position in a document; the character counts UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** The command that reports an accepted item to the server. */
export interface AcceptCommand {
  readonly title: string;
  readonly command: string;
  readonly arguments?: readonly unknown[];
}

/** A suggestion: the text to insert at the cursor, and the number of characters after the cursor that it replaces. */
export interface Item {
  readonly text: string;
  readonly replaced: number;
  readonly command: AcceptCommand;
}

/** An item as the server sends it. */
export interface RawItem {
  readonly insertText: string | { readonly value: string };
  readonly range?: { readonly start: Position; readonly end: Position };
  readonly command?: AcceptCommand;
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
  readonly id: string;
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

const CLOSERS = /^[)\]}>"'`]*$/;
const OPENERS: Record<string, string | undefined> = { ")": "(", "]": "[", "}": "{" };
const QUOTES = "\"'`";
const PAIRS = ["()", "[]", "{}", "<>", '""', "''", "``"]; // what the editor inserts when the user types an opener
const MAX_CLOSERS = 3; // that the editor adds at once
const ACCEPTED = "draftline.accepted";

function readItem(raw: RawItem, origin: Origin, id: string, index: number): Item | undefined {
  const insertText = typeof raw.insertText === "string" ? raw.insertText : raw.insertText.value;
  const text = insertText.replaceAll(/\r\n?/g, "\n");
  const command = raw.command ?? { title: "", command: ACCEPTED, arguments: [id, index] };
  if (!raw.range) {
    return { text, replaced: 0, command };
  }
  const { start, end } = raw.range;
  if (start.line !== origin.position.line || end.line !== origin.position.line) {
    return undefined;
  }
  // The text must start with the part of the range before the cursor. Otherwise it does not insert text.
  const before = origin.head.slice(start.character);
  if (!text.startsWith(before)) {
    return undefined;
  }
  return { text: text.slice(before.length), replaced: Math.max(0, end.character - origin.position.character), command };
}

/** Read the server's items. Return undefined if none of them can be shown. */
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
 * Return how often a text has a closer that it does not open. Each quote counts that is not escaped: it can end a string from
 * before the text.
 */
function unopened(text: string, closer: string): number {
  let [open, found] = [0, 0];
  for (const character of QUOTES.includes(closer) ? text.replaceAll(/\\./gs, "") : text) {
    if (character === OPENERS[closer]) {
      open++;
    } else if (character === closer && open > 0) {
      open--;
    } else if (character === closer) {
      found++;
    }
  }
  return found;
}

/**
 * Return how many closers the user typed over, and how many the editor added after the cursor since the request. Both changed
 * where a string was closed and a call opened: `"|")` becomes `", (|))`. Return undefined if the text changed in another way.
 */
function closerChanges(tail: string, now: string, typed: string): { over: number; added: number } | undefined {
  const fewest = Math.max(0, tail.length - now.length);
  for (let over = fewest; over <= Math.max(fewest, MAX_CLOSERS); over++) {
    const added = now.length - tail.length + over;
    const [before, after] = [tail.slice(0, over), now.slice(0, added)];
    const isTyped = before.split("").every((one) => unopened(typed, one) >= before.split(one).length - 1);
    if (tail.slice(over) === now.slice(added) && CLOSERS.test(before + after) && isTyped) {
      return { over, added };
    }
  }
  return undefined;
}

/**
 * Return how many of the closers that the editor added a text contains itself. It may be only the start of a suggestion. Of an
 * even number of quotes, none closes a string from before the text.
 */
function ownClosers(text: string, added: string): number {
  const isOwn = (closer: string, index: number) => {
    const found = unopened(text, closer);
    return (QUOTES.includes(closer) ? found % 2 : found) >= added.slice(0, index + 1).split(closer).length - 1;
  };
  const first = added.split("").findIndex((closer, index) => !isOwn(closer, index));
  return first < 0 ? added.length : first;
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
  const changes = closerChanges(tail, after, typed);
  if (changes === undefined) {
    return [];
  }
  const { over, added } = changes;
  return offer.items
    .filter((item) => item.text.startsWith(typed) || (!offer.done && typed.startsWith(item.text)))
    .map((item) => {
      const text = item.text.slice(typed.length);
      const own = ownClosers(text, after.slice(0, added));
      return { item, text, typed, replaced: own < added ? own : item.replaced - over + own };
    })
    .filter(({ replaced }) => replaced >= 0);
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
  for (let length = text.length; length >= 0; length--) {
    const lines = text.slice(0, length).split(/\r\n|\r|\n/);
    const line = start.line + lines.length - 1;
    const character = (lines.length === 1 ? start.character : 0) + (lines.at(-1)?.length ?? 0);
    const remainders = remaindersOf(offer, document, { line, character });
    const isLast = text.length - length === MAX_CLOSERS || !CLOSERS.test(text.slice(length - 1, length));
    if (remainders.length > 0 || isLast) {
      return remainders;
    }
  }
  return [];
}

/** Return whether new text is typing, not an accepted part: one character, also with its closer, or only blanks. */
export function isTyping(text: string): boolean {
  return text.length <= 1 || text.trim() === "" || PAIRS.includes(text);
}
