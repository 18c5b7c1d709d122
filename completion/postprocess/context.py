"""What a filter sees of the document, worked out once for a request, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from completion.request import Mode, Suggestion
from completion.syntax.block_end import BlockEnds
from completion.syntax.brackets import CLOSER_OF, OpenBracket, Scan, open_at_cursor, scan
from completion.syntax.indent_style import IndentStyle

SCAN_BEFORE = 16_000
"""Characters before the cursor that are looked at for open brackets and strings."""
SCAN_STRINGS = 40_000
"""Characters after the cursor that are looked at for the end of a string of several lines."""
SCAN_AFTER = 6_000
"""Characters after the cursor that are looked at for their closers."""


class DropReason(StrEnum):
    """Why a finished suggestion is not shown; telemetry counts these names."""

    MID_WORD = "mid_word"
    EMPTY = "empty"
    BLANK = "blank"
    REPEATS_FOLLOWING = "repeats_following"
    DOUBLED_CLOSER = "doubled_closer"
    UNFINISHED = "unfinished"
    SYNTAX = "syntax"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Dropped:
    """The answer of a filter that leaves nothing."""

    reason: DropReason


@dataclass(frozen=True, slots=True)
class Context:
    """The document around the cursor.

    Attributes:
        prefix: Text before the cursor.
        suffix: Text after the cursor.
        language: LSP language identifier.
        mode: LINE or BLOCK, already decided.
        invoked: The user asked by a key: nothing is held back for where the cursor stands.
        cut_short: Decoding ended at a bound (tokens, bytes, time), not at an end that the text has.
        line_before: The cursor's line up to the cursor.
        line_after: The cursor's line from the cursor on, without its line break.
        following: The lines after the cursor's line.
        before: Brackets and strings that are open at the cursor.
        after: Closers behind the cursor.
        open: Openers before the cursor, each with its closer behind the cursor, innermost last.
        indent: How the document indents.
        block_ends: Where blocks at the cursor end.
    """

    prefix: str
    suffix: str
    language: str
    mode: Mode
    invoked: bool
    cut_short: bool
    line_before: str
    line_after: str
    following: tuple[str, ...]
    before: Scan
    after: Scan
    open: tuple[OpenBracket, ...]
    indent: IndentStyle
    block_ends: BlockEnds

    @classmethod
    def of(
        cls,
        prefix: str,
        suffix: str,
        language: str,
        mode: Mode,
        *,
        invoked: bool = False,
        cut_short: bool = False,
    ) -> Context:
        """Work out everything that the filters need, once for a request."""
        near_before, near_after = prefix[-SCAN_BEFORE:], suffix[:SCAN_AFTER]
        before = scan(near_before, language)
        after = scan(near_after, language, before.string if closes_string(before, suffix, language) else "")
        lines = near_after.split("\n")
        return cls(
            prefix=prefix,
            suffix=suffix,
            language=language,
            mode=mode,
            invoked=invoked,
            cut_short=cut_short,
            line_before=prefix[prefix.rfind("\n") + 1 :],
            line_after=lines[0],
            following=tuple(lines[1:]),
            before=before,
            after=after,
            open=open_at_cursor(before, after, near_before, near_after),
            indent=IndentStyle.of(prefix, suffix),
            block_ends=BlockEnds(prefix, suffix, language),
        )

    def within_comment(self, text: str) -> bool:
        """Whether a text ends on the line of the comment that the cursor stands in."""
        return self.before.comment and "\n" not in text

    def unpaired(self, text: str) -> int:
        """Number of brackets and quotes that have no partner in the document once the text stands at the cursor."""
        on_line = scan(text + self.line_after, self.language, self.before.string)
        found = scan(text + self.suffix[:SCAN_AFTER], self.language, self.before.string)
        waiting = [bracket.character for bracket in self.before.open]
        alone = int(len(on_line.string) == 1)
        for closer in found.unopened:
            if waiting and CLOSER_OF[waiting[-1]] == closer.character:
                waiting.pop()
            else:
                alone += 1
        return alone + len(waiting) + len(found.open)


def closes_string(before: Scan, suffix: str, language: str) -> bool:
    """Whether the string that the cursor stands in ends behind the cursor.

    On a line where the text after the cursor reads as whole code by itself, the string's end is still to be typed.
    """
    if not before.string:
        return False
    if len(before.string) == 3:  # an odd number of such quotes follows where one of them closes this string
        return scan(suffix[:SCAN_STRINGS], language).string == before.string
    line = suffix[:SCAN_AFTER].partition("\n")[0]
    inside, outside = scan(line, language, before.string), scan(line, language)
    return before.string in line and not inside.string and (bool(outside.string) or inside.string_end == len(line))


Filter = Callable[[Suggestion, Context], Suggestion | Dropped]

StableLength = Callable[[str, Context], int]
