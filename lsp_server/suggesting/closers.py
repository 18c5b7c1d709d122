"""Closers: which characters after the cursor a text contains itself, and which the editor may add while it is typed."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from completion.syntax.brackets import CLOSERS as BRACKET_CLOSERS
from completion.syntax.brackets import scan
from completion.syntax.lexer import CLOSER_OF

CLOSERS = frozenset(")]}>\"'`")
"""Characters that editors insert after the cursor when the user types their opener."""

MAX_CLOSERS = 3
"""Maximum number of closers that an editor adds at one key, or that are typed over while as many others are added."""

_QUOTES = ('"""', "'''", '"', "'", "`")
_CLOSER_OF = CLOSER_OF | {"<": ">"} | {quotes: quotes for quotes in _QUOTES}
_DELIMITER = re.compile(r"""\\["'`\\]|\"""|'''|[()\[\]{}<>"'`]""")


class Closer(NamedTuple):
    """A character that may stand after the cursor while a text is typed.

    Attributes:
        character: The character.
        start: Number of characters of the text from which on the editor may have added it; 0 if it stood there before.
        end: Offset in the text of what it stands for; None if the text has no such character, and it stays.
    """

    character: str
    start: int
    end: int | None


def closers_while_typing(text: str, replaced: str) -> list[Closer]:
    """Return the characters that may stand after the cursor while a text is typed, in the order in which they do.

    These are the ones that the text replaces, and a closer for each opener in it. More than the editor adds do no harm.
    """
    places = _places_of_all(text, replaced)
    closers = [Closer(character, 0, place) for character, place in zip(replaced, places, strict=True)]
    waiting: dict[str, list[int]] = defaultdict(list)
    for found in _DELIMITER.finditer(text):
        delimiter, at = found.group(), found.start()
        if at in places or delimiter.startswith("\\"):
            continue
        if opens := waiting[delimiter]:
            opened = opens.pop()
            closers += (Closer(character, opened, at + index) for index, character in enumerate(delimiter))
        if closer := _CLOSER_OF.get(delimiter):  # a quote that closes may open for the editor
            waiting[closer].append(found.end())
            closers += (Closer(delimiter[0], at + 1, at + 1) for _ in delimiter[2:])  # the second of three quotes
    closers.sort(key=lambda closer: closer.end or 0)
    unclosed = sorted(((start, closer) for closer, opens in waiting.items() for start in opens), reverse=True)
    return [*closers, *(Closer(character, start, None) for start, closer in unclosed for character in closer)]


def _places_of_all(text: str, replaced: str) -> list[int]:
    """Return the offset in a text of each of the characters that it replaces; its end for one that it does not have."""
    known, places, at = places_of(text, replaced), list[int](), 0
    for character, place in zip(replaced, known + [len(text)] * (len(replaced) - len(known)), strict=True):
        nearer = text.find(character, at, place)  # as after brackets in a string
        places.append(place if nearer < 0 or text.startswith(character, place) else nearer)
        at = places[-1] + 1
    return places


def places_of(text: str, after: str) -> list[int]:
    """Return the offset in a text at the cursor of each of the characters after it that it contains itself.

    These are closers whose opener is before the cursor, in their order, and the punctuation that follows them.
    """
    string = string_around(after)
    found = scan(text, "", string)
    if string and not text[: found.string_end].endswith(string):
        return []
    at = found.string_end
    places = [*range(at - len(string), at)]
    unopened = iter(found.unopened)
    for count, character in enumerate(after[len(string) :], len(string) + 1):
        if character in BRACKET_CLOSERS:
            closer = next(unopened, None)
            if closer is None or closer.character != character:
                break
            at = closer.offset + 1
        elif text.startswith(character, at) or (character == ">" and ">" in text[at:]):
            at = text.index(character, at) + 1
        else:
            continue
        places += [at - 1] * (count - len(places))
    return places


def string_around(after: str) -> str:
    """Return the delimiter after the cursor, of the string around it; "" if there is none."""
    return next((quotes for quotes in _QUOTES if after.startswith(quotes)), "")
