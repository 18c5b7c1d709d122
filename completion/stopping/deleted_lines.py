"""Tells whether a text at the cursor would bring back what the user has just deleted there."""

from __future__ import annotations

from dataclasses import dataclass

from completion.postprocess import Context


@dataclass(frozen=True, slots=True)
class DeletedLines:
    """The lines that the user has deleted at the cursor.

    Attributes:
        lines: The lines. All lines are compared without blanks.
        before: The cursor's line up to the cursor.
        after: The cursor's line from the cursor on.
    """

    lines: frozenset[str]
    before: str
    after: str

    @classmethod
    def of(cls, history: str, context: Context) -> DeletedLines:
        """Take the lines from the last hunk of a request's `history`, if that hunk only deletes."""
        hunk = history.rpartition("@@\n")[2].split("\n")
        deletes = not any(line.startswith("+") for line in hunk)
        lines = _folded_lines("\n".join(line.removeprefix("-") for line in hunk)) if deletes else ()
        return cls(frozenset(lines), context.line_before, context.line_after)

    def are(self, text: str) -> bool:
        """Return whether a text is not empty, and all lines that the document would have with it are deleted ones.

        The text may repeat the rest of the cursor's line, which then is no part of those lines.
        """
        rests = (self.after, "") if text.rstrip().endswith(self.after.strip()) else (self.after,)
        return bool(text.strip()) and any(
            all(line in self.lines for line in _folded_lines(self.before + text + rest)) for rest in rests
        )

    def start_with(self, text: str) -> bool:
        """Return whether a text that may still grow could become such a text."""
        above, _, growing = (self.before + text).rpartition("\n")
        may_grow = any(line.startswith("".join(growing.split())) for line in self.lines)
        return may_grow and all(line in self.lines for line in _folded_lines(above))


def _folded_lines(text: str) -> list[str]:
    """Return the lines that are not blank, without their blanks."""
    return [folded for line in text.split("\n") if (folded := "".join(line.split()))]
