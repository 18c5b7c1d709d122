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
