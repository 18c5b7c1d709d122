"""Tells which texts at the cursor the user's last edits speak for or against.

What someone deletes begins with what they want to change, so the first of the deleted lines is hardly typed again. Of
the others nothing is known. What the last edits would make of any of them is likely to be typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion.ending.context import Context


@dataclass(frozen=True, slots=True)
class ReplacedLines:
    """What was deleted at the cursor. All lines are compared without their blanks, which `without_blanks` removes.

    Attributes:
        deleted: First of the lines that were deleted; "" for none.
        expected: Lines that the last edits would make of them; they start like the cursor's line.
        before: The cursor's line up to the cursor.
        after: The cursor's line from the cursor on.
    """

    deleted: str
    expected: frozenset[str]
    before: str
    after: str

    @classmethod
    def of(cls, deleted: Sequence[str], expected: Sequence[str], context: Context) -> ReplacedLines:
        """Take the lines that are not blank, and of the expected ones those that can still be typed."""
        gone = _lines("\n".join(deleted)) or [""]
        begun = without_blanks(context.line_before)
        new = {line for line in map(without_blanks, expected) if line.startswith(begun) and line != begun}
        return cls(gone[0], frozenset(new.difference(gone)), context.line_before, context.line_after)

    def are_back(self, text: str) -> bool:
        """Return whether the first line that the document would have with a text is the deleted one."""
        return bool(text.strip()) and any(lines[:1] == [self.deleted] for lines in self._lines(text))

    def are_followed(self, text: str) -> bool:
        """Return whether a text makes the cursor's line an expected one."""
        return any(lines[0] in self.expected and len(lines) == 1 for lines in self._lines(text) if lines)

    def may_be_followed(self, text: str) -> bool:
        """Return whether `are_followed` may become true of a text that grows."""
        begun = without_blanks(self.before + text)
        return "\n" not in text and any(line.startswith(begun) for line in self.expected)

    def leave_open(self, text: str) -> bool:
        """Return whether a text that grows could still become one that they speak against, or miss one they speak for.

        Such a text is not shown.
        """
        first, *more = _lines(self.before + text) or [""]
        if self.deleted and (first == self.deleted if more else self.deleted.startswith(first)):
            return True
        begun = without_blanks(self.before + text)
        return not all(line.startswith(begun) for line in self.expected)

    def _lines(self, text: str) -> list[list[str]]:
        """Return the lines of the document with a text that may repeat the rest of the cursor's line."""
        rests = [self.after]
        if self.after and text.rstrip().endswith(self.after.strip()):
            rests.append("")
        return [_lines(self.before + text + rest) for rest in rests]


def without_blanks(text: str) -> str:
    """Return a text without its blanks and line ends."""
    return "".join(text.split())


def _lines(text: str) -> list[str]:
    return [line for line in map(without_blanks, text.split("\n")) if line]
