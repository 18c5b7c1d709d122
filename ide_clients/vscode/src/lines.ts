// Compares the lines before and after an edit. Pure functions.

/** The lines that an edit changes: from `start` on, `removed` old lines become the `added` ones. */
export interface ChangedLines {
  readonly start: number;
  readonly removed: number;
  readonly added: readonly string[];
}

/** Return what lies between the first and the last line that differ. */
export function changedLines(before: readonly string[], after: readonly string[]): ChangedLines {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) {
    start++;
  }
  let same = 0;
  while (same < shorter - start && before[before.length - 1 - same] === after[after.length - 1 - same]) {
    same++;
  }
  return { start, removed: before.length - same - start, added: after.slice(start, after.length - same) };
}

/** Return the lines of a text. A line end after the last line begins no further one. */
export function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** Return the text beside each of some rows: a line each, and beside the last row all further lines. */
export function linesBeside(lines: readonly string[], rows: number): string[] {
  const trimmed = lines.map((line) => line.trim());
  return [...trimmed.slice(0, rows - 1), trimmed.slice(rows - 1).join(" ⏎ ")];
}

/** Return what an edit does, in a few words: the first line that it writes, or that it deletes a line. */
export function summaryOf(before: readonly string[], after: readonly string[]): string {
  const { start, added: [first = ""] } = changedLines(before, after);
  return first.trim() || `delete ${(before[start] ?? "").trim()}`;
}

/** Return where a line differs from its new version, and the new text there. Words stay whole. */
export function changedText(before: string, after: string): { start: number; end: number; text: string } {
  const changed = changedLines(before.split(""), after.split(""));
  let { start } = changed;
  let same = before.length - start - changed.removed;
  const splitsWord = (text: string, at: number) => /^[\w\u0080-\uffff]{2}$/.test(text.slice(at - 1, at + 1));
  while (start > 0 && (splitsWord(before, start) || splitsWord(after, start))) {
    start--;
  }
  while (same > 0 && (splitsWord(before, before.length - same) || splitsWord(after, after.length - same))) {
    same--;
  }
  return { start, end: before.length - same, text: after.slice(start, after.length - same) };
}
