"""Cuts a suggestion before code that runs a shell, executes what it fetches, disables verification or writes a secret.

A hostile repository can steer the model with its comments and names. `unsafe_rules.toml` lists the harmful constructs
that the model can then write. A suggestion ends before such a construct, unless the user's own text permits it:

- The user began to write it: its decisive part starts before the cursor, on the cursor's line. After `verify=`, the
  word `False` is the user's choice. After `curl ADDRESS`, a pipe into a shell is not.
- Code shortly before the cursor has a construct of the same kind, so the program already does the same. Comments and
  sentences in strings do not count, because injections are written in them. A secret is never repeated.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from completion.postprocess.context import Context, Dropped, DropReason
from completion.request import Suggestion
from completion.syntax.brackets import SCAN_BEFORE
from completion.workspace.code_only import code_by_marks

NEAR_LINES = 60
"""Number of lines before the cursor's line whose code can permit a construct of the same kind: about one screen."""
LINE_CHARACTERS = 500
"""Maximum number of characters before the cursor that are searched; it bounds the time of a search."""

_BOUNDARY = r"\b"
_ACT = "(?P<act>"
_BLANKS = r"[ \t]*"
_MINIMUM = re.compile(r"\{\d+,")
_WORD_REVERSED = re.compile(r"[\w$-]*[\"'`]?")


@dataclass(frozen=True, slots=True)
class Rule:
    """A construct that a suggestion must not write unless the user's text permits it.

    Attributes:
        kind: "shell", "fetch", "verification" or "secret".
        languages: LSP language identifiers; empty for every language.
        patterns: Patterns in the form that unsafe_rules.toml describes.
        reason: What the construct does.
        source: CWE number, and a public rule set with the same rule.
        examples: Code that the rule matches.
    """

    kind: str
    languages: tuple[str, ...]
    patterns: tuple[str, ...]
    reason: str
    source: str
    examples: tuple[str, ...]


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules."""
    table = tomllib.loads(files("completion.postprocess").joinpath("unsafe_rules.toml").read_text(encoding="utf-8"))
    lists = ("languages", "patterns", "examples")
    return tuple(Rule(**row | {key: tuple(row[key]) for key in lists}) for row in table["rule"])


def unsafe(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Cut before the first unsafe construct that the user's own text does not permit."""
    cut = _first_unsafe(suggestion.text, context)
    if cut is None:
        return suggestion
    kept = suggestion.text[:cut]
    return replace(suggestion, text=kept) if kept.strip() else Dropped(DropReason.UNSAFE)


def names_unsafe(text: str, language: str) -> bool:
    """Return whether a text contains an unsafe construct."""
    return _searches(language).any_whole.search(text) is not None


def stable_length(text: str, context: Context) -> int:
    """Return the length of the part of an unfinished text before anything that is or can become unsafe."""
    cut = _first_unsafe(text, context)
    line = text if cut is None else text[:cut]
    start = line.rfind("\n") + 1
    before = "" if start else context.line_before[-LINE_CHARACTERS:]
    line = before + line[start:]
    last_word = _word_start(line, len(line))
    found = _searches(context.language).any_begun.search(line, 0, last_word)
    return max(0, start + (_word_start(line, found.start()) if found else last_word) - len(before))


def _first_unsafe(text: str, context: Context) -> int | None:
    """Return the offset of the first construct that is not permitted; 0 if it begins before the cursor."""
    before = context.line_before[-LINE_CHARACTERS:]
    whole, cursor = before + text, len(before)
    if not _searches(context.language).any_whole.search(whole):
        return None
    permitted = _permitted_kinds(context)
    starts = [
        _word_start(whole, match.start())
        for kind, pattern in _whole(context.language)
        if kind not in permitted
        for match in pattern.finditer(whole)
        if match.end() > cursor and _act(match) >= cursor
    ]
    return max(0, min(starts) - cursor) if starts else None


def _act(match: re.Match[str]) -> int:
    """Return the offset of the decisive part of a construct."""
    return match.start("act" if "act" in match.re.groupindex else 0)


def _word_start(text: str, offset: int) -> int:
    """Return the start of the word, including its quote, that contains or ends at `offset`."""
    word = _WORD_REVERSED.match(text[max(0, offset - LINE_CHARACTERS) : offset][::-1])
    return offset - (word.end() if word else 0)


def _permitted_kinds(context: Context) -> set[str]:
    """Return the kinds of constructs in the code shortly before the cursor's line."""
    above = context.prefix[-SCAN_BEFORE : len(context.prefix) - len(context.line_before)]
    near = "\n".join(code_by_marks(above, context.language).split("\n")[-NEAR_LINES - 1 :])
    return {kind for kind, pattern in _whole(context.language) if kind != "secret" and pattern.search(near)}


@dataclass(frozen=True, slots=True)
class _Searches:
    """The compiled rules of a language.

    Attributes:
        any_whole: Matches any whole construct.
        any_begun: Matches any whole construct, and any beginning of one at the text's end.
    """

    any_whole: re.Pattern[str]
    any_begun: re.Pattern[str]


@cache
def _searches(language: str) -> _Searches:
    patterns = [pattern for _, pattern in _rows(language)]
    return _Searches(
        _any(pattern.replace(" ", _BLANKS).replace(_ACT, "(?:") for pattern in patterns), _any(map(_begun, patterns))
    )


@cache
def _whole(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return kind and pattern of each construct. They are compiled once a text has one of them."""
    return tuple((kind, _any([pattern.replace(" ", _BLANKS)])) for kind, pattern in _rows(language))


def _rows(language: str) -> list[tuple[str, str]]:
    """Return kind and pattern of each construct as the rules have it."""
    return [
        (rule.kind, one)
        for rule in rules()
        if language in rule.languages or not rule.languages
        for one in rule.patterns
    ]


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return one pattern for all; it tests for the beginning of a word only once, which skips most offsets quickly."""
    words: list[str] = []
    others: list[str] = []
    for pattern in patterns:
        (words if pattern.startswith(_BOUNDARY) else others).append(pattern.removeprefix(_BOUNDARY))
    at_word = [rf"\b(?=\w)(?:{'|'.join(words)})"] if words else []
    return re.compile("|".join([*at_word, *others]))


def _begun(pattern: str) -> str:
    """Return a pattern that matches each expression of `pattern`, followed by the next one or the text's end."""
    *expressions, nested = _MINIMUM.sub("{0,", pattern.replace(_ACT, "(?:")).split(" ")
    for expression in reversed(expressions):
        nested = rf"{expression}{_BLANKS}(?:{nested}|\Z)"
    return nested
