"""What a cursor is inside of: a comment or a string."""

from __future__ import annotations

from enum import StrEnum

from completion.syntax.brackets import Scan, scan
from completion.syntax.lexicon import lexicon_of


class Literal(StrEnum):
    """What text at the cursor belongs to, other than code. A docstring is a string."""

    COMMENT = "in_comment"
    STRING = "in_string"


def enclosing_literal(before: str, language: str) -> Literal | None:
    """Return what the cursor after `before` is inside; None in code, and where not all literals are known."""
    return literal_at_end(scan(before, language)) if lexicon_of(language).is_complete else None


def literal_at_end(found: Scan) -> Literal | None:
    """Return what the end of a text is inside; None in code, also in code within a string."""
    if found.comment:
        return Literal.COMMENT
    return Literal.STRING if found.string and not found.waiting else None
