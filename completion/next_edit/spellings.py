"""Names in all their spellings, and texts in which one name stands for another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_SUBWORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MIN_PART = 3  # characters of a name that may be a part of a longer one
_SPELLINGS: tuple[Callable[[list[str]], str], ...] = (
    "_".join,
    lambda parts: "".join(map(str.capitalize, parts)),
    lambda parts: parts[0] + "".join(map(str.capitalize, parts[1:])),
    lambda parts: "_".join(parts).upper(),
    "-".join,
)


def spellings(old: str, new: str) -> dict[str, str]:
    """Return what becomes of a name in each spelling: with underscores or hyphens, in camel or upper case."""
    ours, theirs = ([part.lower() for part in _SUBWORD.findall(name)] or [name] for name in (old, new))
    return {spell(ours): spell(theirs) for spell in _SPELLINGS} | {old: new}


def pattern_of(names: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of names: as whole words or, unless they are short, as parts of longer ones."""
    return re.compile("|".join(map(_bounded, sorted(names, key=len, reverse=True))))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names in place of those that it has."""
    return pattern_of(names).sub(lambda found: names[found.group()], text)


def _bounded(name: str) -> str:
    if len(name) < _MIN_PART:
        return rf"(?<!\w){re.escape(name)}(?!\w)"
    letters = "A-Z" if name.isupper() else "a-z"
    before = "" if name[0].isupper() and not name.isupper() else letters
    return rf"(?<![{before}0-9]){re.escape(name)}(?![{letters}0-9])"
