// What was thrown, as a sentence for logs and messages.

/** Return what an error says. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
