"""Detects a document's indentation style."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

TAB_COLUMNS = 4
"""Width of a tab in columns, as models use it."""
WRAP_OPENERS = ("(", "[", "=>", "->")
"""Ends of lines after which the next line goes on with the statement, often indented by more than a level."""
BLOCK_OPENERS = ("{", ":")
"""Ends of lines after which the next line is usually indented by a level."""

_INDENT = re.compile(r"^([ \t]+)(?!\*(?:[\s/]|\Z))\S", re.MULTILINE)  # lines of a block comment are a column deeper
_SAMPLE = 8_000  # characters that are looked at on either side of the cursor
_LEVELS = frozenset({2, 3, 4, 8})  # widths of a level in columns
_MAX_DEEPER = 8  # lines that are deeper than the one above, for each one below an opener; more where words open blocks


@dataclass(frozen=True, slots=True)
class IndentStyle:
    """A document's indentation style.

    Attributes:
        unit: One level of indentation: a tab or spaces; "" if the document is not indented.
        wraps: Columns by which spaces indent a line below one that opens an argument list or ends with an arrow.
    """

    unit: str
    wraps: frozenset[int] = frozenset()

    @classmethod
    def of(cls, prefix: str, suffix: str) -> IndentStyle:
        """Detect the style of the text near the cursor.

        The cursor's line is being typed, so it counts only if no other is indented: in a new file it begins with what
        the editor inserted. That is no level after a line that ends within brackets.
        """
        before, after = prefix[-_SAMPLE:], suffix[:_SAMPLE]
        above, line = before[: before.rfind("\n") + 1], before[before.rfind("\n") + 1 :]
        in_brackets = above.rstrip().endswith(("(", "[", ","))
        around = above + after[after.find("\n") + 1 :]
        wraps = frozenset(_steps_after(WRAP_OPENERS, around))
        return cls(_unit(around) or _unit("" if in_brackets else line + "|"), wraps)


def leading_blanks(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def depth(line: str) -> int:
    """Return the width of a line's leading blanks in columns."""
    width = len(line) - len(line.lstrip())
    return width + (TAB_COLUMNS - 1) * line.count("\t", 0, width)


def line_around(before: str) -> str:
    """Return the nearest line above the cursor's that is indented less; "" if there is none."""
    above, _, own = before.rpartition("\n")
    level = depth(own)
    return next((line for line in reversed(above.split("\n")) if line.strip() and depth(line) < level), "")


def _unit(text: str) -> str:
    indents = [match.group(1) for match in _INDENT.finditer(text)]
    if not indents:
        return ""
    if sum(indent[0] == "\t" for indent in indents) * 2 > len(indents):
        return "\t"
    widths = [len(indent) for indent in indents if "\t" not in indent]
    blocks = _levels(_steps_after(BLOCK_OPENERS, text))
    if blocks and blocks.total() * _MAX_DEEPER >= len(list(_steps_after("", text))):
        return " " * min(blocks, key=lambda step: (-blocks[step], step))
    steps = _levels(abs(width - before) for before, width in zip([0, *widths], widths, strict=False))
    # Continuation lines and nested ends add larger steps: of two steps that are about as frequent, take the smaller.
    most = max(steps.values(), default=0)
    return " " * min((step for step, count in steps.items() if count * 2 >= most), default=0)


def _levels(steps: Iterable[int]) -> Counter[int]:
    """Count the steps that can be a level."""
    return Counter(step for step in steps if step in _LEVELS)


def _steps_after(openers: str | tuple[str, ...], text: str) -> Iterator[int]:
    """Return by how many spaces each line is indented deeper than the line above it, which ends with an opener."""
    for above, below in pairwise(text.split("\n")):
        if above.endswith(openers) and below.strip():
            widths = [len(line) - len(line.lstrip(" ")) for line in (above, below)]
            if widths[1] > widths[0]:
                yield widths[1] - widths[0]
