"""What is likely to be typed where the user has deleted lines: the rules of next edits, applied to these lines."""

from __future__ import annotations

from completion.edits import edits_of
from completion.ending.context import Context
from completion.ending.replaced_lines import ReplacedLines
from completion.next_edit.candidates import candidates
from completion.syntax.parsing import IN_PROCESS, Parsing


def replaced_lines(history: str, context: Context, parsing: Parsing = IN_PROCESS) -> ReplacedLines:
    """Return the lines that were deleted at the cursor, and what the edits before imply for them.

    Args:
        history: A request's `history` whose last hunk is what was deleted at the cursor; "" for nothing.
        context: The document around the cursor.
        parsing: Tells whether the request was cancelled.

    Raises:
        CancelledError: The token that `parsing` watches was cancelled.
    """
    edits = edits_of(history)
    if not edits or edits[-1].new:
        return ReplacedLines.of((), (), context)
    deleted = edits.pop().old
    taught = candidates(deleted, [edit for edit in edits if edit.old and edit.new], parsing.raise_if_cancelled)
    return ReplacedLines.of(deleted, [line for found in taught if not found.is_part for line in found.new], context)
