"""The one face of every rule about where a text ends, and the outcomes of a decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from completion.ending.context import Context
from completion.request import StopReason


class Ends(NamedTuple):
    """Where a rule ends a text: read to stop decoding, to show what grows, and to finish.

    Attributes:
        maybe: Length of what stays if the text ends here.
        sure: Length of what stays however the text goes on.
        over: Whether `maybe` is the end however the text goes on.
        replaces: Number of characters after the cursor that the text replaces.
    """

    maybe: int
    sure: int
    over: bool = False
    replaces: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of an attempt.

    Attributes:
        length: Number of characters of the text before the end.
        reason: Rule that ended it.
    """

    length: int
    reason: StopReason


Rule = Callable[[str, Context], Ends]
"""Returns the ends of a text at the cursor, which may be unfinished."""


@lru_cache(maxsize=2)  # most rules let all of a text stay
def whole(text: str) -> Ends:
    """Return the ends of a text of which all stays."""
    return Ends(len(text), len(text))


class DropReason(StrEnum):
    """The reason why a finished suggestion is dropped; telemetry counts these names."""

    MID_WORD = "mid_word"
    EMPTY = "empty"
    BLANK = "blank"
    LAST_COMMA = "last_comma"
    INDENTED_AGAIN = "indented_again"
    REPEATS_FOLLOWING = "repeats_following"
    DOUBLED_CLOSER = "doubled_closer"
    UNFINISHED = "unfinished"
    SYNTAX = "syntax"
    UNSAFE = "unsafe"
