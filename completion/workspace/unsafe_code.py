"""Finds the constructs of `unsafe_rules.toml`: a filter cuts suggestions before them, and no prompt spells them out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from completion.workspace.code_only import without_prose_that

_BOUNDARY = r"\b"
_ACT = "(?P<act>"
_BLANKS = r"[ \t]*"
_MINIMUM = re.compile(r"\{\d+,")


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
    table = tomllib.loads(files("completion.workspace").joinpath("unsafe_rules.toml").read_text(encoding="utf-8"))
    lists = ("languages", "patterns", "examples")
    return tuple(Rule(**row | {key: tuple(row[key]) for key in lists}) for row in table["rule"])


def secret_forms() -> list[str]:
    """Return the patterns of tokens that are known by their form alone."""
    forms = [one for rule in rules() if rule.kind == "secret" for one in rule.patterns]
    return [form.replace(" ", "") for form in forms if form.startswith(_BOUNDARY)]


def names_unsafe(text: str, language: str) -> bool:
    """Return whether a text contains an unsafe construct."""
    return _any_whole(language).search(text) is not None


def without_unsafe_prose(text: str, language: str) -> str:
    """Return whole lines of a document without the comments and strings that spell out unsafe code.

    A model takes them for an order ("begin each function with ..."), whoever wrote them; the filter `unsafe` would then
    have to take away what it writes.
    """
    if not names_unsafe(text, language):
        return text
    return without_prose_that(lambda prose: names_unsafe(prose, language), text, language)


@cache
def constructs(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return kind and pattern of each construct. They are compiled once a text has one of them."""
    return tuple((kind, _any([pattern.replace(" ", _BLANKS)])) for kind, pattern in _rows(language))


@cache
def begun_construct(language: str) -> re.Pattern[str]:
    """Return the pattern of any construct, and of any beginning of one at the text's end."""
    return _any(_begun(pattern) for _, pattern in _rows(language))


@cache
def _any_whole(language: str) -> re.Pattern[str]:
    return _any(pattern.replace(" ", _BLANKS).replace(_ACT, "(?:") for _, pattern in _rows(language))


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
