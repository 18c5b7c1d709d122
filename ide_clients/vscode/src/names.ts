// Where a name begins that some type, module or package has, and which names a list of completions offers there.

const PLACE = /(?:[\w)\]"']\??\.|->|::|^\s*import\s[^"'{}()]*|^\s*from\s+\S+\s+import\s\(?[^"'()]*)$/;
const BEGUN = /(?<![\w$\u0080-\uffff])[\w$\u0080-\uffff]*$/; // from the start of a word: a long one is read once
const IDENTIFIER = /^[\s.?]*([A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*)/;
const [TEXT, KEYWORD, SNIPPET] = [0, 13, 14]; // `vscode.CompletionItemKind`

/** A completion, as VS Code's API has it. */
export interface Completion {
  readonly label: string | { readonly label: string };
  readonly kind?: number | undefined;
  readonly insertText?: string | { readonly value: string } | undefined;
}

/** Return the start of a line without the name that is begun at its end. */
export function headOf(start: string): string {
  return start.replace(BEGUN, "");
}

/** Return whether what follows the start of a line is a member, or is imported. */
export function isPlace(head: string): boolean {
  return PLACE.test(head);
}

/** Return the names of completions; none if they are of any place: who cannot read unfinished code offers keywords. */
export function namesOf(completions: readonly Completion[]): string[] {
  if (completions.some(({ kind }) => kind === KEYWORD)) {
    return [];
  }
  const names = completions
    .filter(({ kind }) => kind !== TEXT && kind !== SNIPPET)
    .map((one) => IDENTIFIER.exec(insertedBy(one))?.[1] ?? "");
  return [...new Set(names)].filter((name) => name !== "");
}

function insertedBy({ insertText, label }: Completion): string {
  const text = typeof insertText === "string" ? insertText : insertText?.value;
  return text ?? (typeof label === "string" ? label : label.label);
}
