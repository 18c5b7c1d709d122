"""How a document indents its lines."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

TAB_COLUMNS = 4
"""How many columns of blanks a model means by a tab."""

_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SAMPLE = 8_000


@dataclass(frozen=True, slots=True)
class IndentStyle:
    """A document's own indentation.

    Attributes:
        unit: One level: a tab, or some spaces; "" where the document shows none.
    """

    unit: str

    @classmethod
    def of(cls, prefix: str, suffix: str) -> IndentStyle:
        """Read the style off the text near the cursor."""
        before, after = prefix[-_SAMPLE:], suffix[:_SAMPLE]
        text = before[: before.rfind("\n") + 1] + after[after.find("\n") + 1 :]  # the cursor's line is in flux
        return cls(_unit(text))


def columns(blanks: str) -> int:
    """Width of leading blanks, a tab counted as TAB_COLUMNS."""
    return len(blanks) + (TAB_COLUMNS - 1) * blanks.count("\t")


def depth(line: str) -> int:
    """Width of a line's leading blanks."""
    return columns(line[: len(line) - len(line.lstrip())])


def _unit(text: str) -> str:
    indents = [match.group(1) for match in _INDENT.finditer(text)]
    if not indents:
        return ""
    if sum(indent[0] == "\t" for indent in indents) * 2 > len(indents):
        return "\t"
    widths = [len(indent) for indent in indents if "\t" not in indent]
    steps = Counter(
        abs(width - before)
        for before, width in zip([0, *widths], widths, strict=False)
        if abs(width - before) in (2, 3, 4, 8)
    )
    # Where two steps are about as frequent, continuation lines and nested ends blur the picture: the smaller one is it.
    most = max(steps.values(), default=0)
    return " " * min((step for step, count in steps.items() if count * 2 >= most), default=0)
