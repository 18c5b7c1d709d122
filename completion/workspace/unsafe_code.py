"""Finds the constructs of `unsafe_rules.toml`: a filter cuts suggestions before them, and no prompt spells them out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tree_sitter import Query, QueryCursor

from completion.syntax.brackets import scan
from completion.syntax.languages import parsed_row, tree_sitter_language
from completion.syntax.trees import parse
from completion.workspace.code_only import without_prose_that

CALL_CHARACTERS = 2_000
"""Maximum length of a call that is parsed, in characters; it bounds the time of a search."""

_BOUNDARY = r"\b"
_ACT = "(?P<act>"
_BLANKS = r"[ \t]*+"  # possessive: a gap after it does not try each of them again
_MINIMUM = re.compile(r"\{\d+,")


@dataclass(frozen=True, slots=True)
class Rule:
    """A construct that a suggestion must not write unless the user's text permits it.

    Attributes:
        kind: What a construct of the user's own permits others of; "shell", "sql" and so on.
        languages: LSP language identifiers; empty for every language.
        patterns: Patterns in the form that unsafe_rules.toml describes.
        query: tree-sitter query that decides on a call that a pattern finds; "" if the pattern decides.
    """

    kind: str
    languages: tuple[str, ...]
    patterns: tuple[str, ...]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call on which a query decides.

    Attributes:
        kind: Kind of its rule.
        head: Its text up to its first bracket.
        start: Offset of its start.
        act: Offset of its decisive part; None if it is safe, or not known yet.
        is_open: Whether the text ends inside its arguments.
    """

    kind: str
    head: str
    start: int
    act: int | None
    is_open: bool


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules."""
    table = tomllib.loads(files("completion.workspace").joinpath("unsafe_rules.toml").read_text(encoding="utf-8"))
    return tuple(
        Rule(row["kind"], tuple(row["languages"]), tuple(row["patterns"]), row.get("query", ""))
        for row in table["rule"]
    )


def secret_forms() -> list[str]:
    """Return the patterns of tokens that are known by their form alone."""
    forms = [one for rule in rules() if rule.kind == "secret" for one in rule.patterns]
    return [form.replace(" ", "") for form in forms if form.startswith(_BOUNDARY)]


def names_unsafe(text: str, language: str) -> bool:
    """Return whether a text contains an unsafe construct."""
    return _any_whole(language).search(text) is not None


def calls(text: str, language: str, start: int = 0) -> Iterator[Call]:
    """Yield the calls in a piece of code that end after `start`, each with what its own syntax tree decides."""
    heads = _any_head(language)
    for kind, pattern, query in _queries(language) if heads and heads.search(text) else ():
        for match in pattern.finditer(text):
            rest = text[match.end() : match.start() + CALL_CHARACTERS]
            closers = scan(rest, language).unopened
            if closers and match.end() + closers[0].offset < start:
                continue
            code = match[0] + rest[: closers[0].offset + 1] if closers else ""
            act = _decisive_part(code, len(match[0]), query, language) if closers else None
            yield Call(kind, match[0], match.start(), None if act is None else match.start() + act, not closers)


def _decisive_part(call: str, arguments: int, query: Query, language: str) -> int | None:
    """Return the offset of the first node that a query captures as `unsafe`; None if it captures one as `safe`.

    All arguments together stand for the whole call.
    """
    tree = parse(call, language)
    found = QueryCursor(query).captures(tree.root_node) if tree else {}
    if "safe" in found or "unsafe" not in found:
        return None
    start = min(node.start_byte for node in found["unsafe"])
    offset = len(call.encode("utf-8", "replace")[:start].decode("utf-8", "replace"))
    return offset if offset >= arguments else 0


@cache
def _queries(language: str) -> tuple[tuple[str, re.Pattern[str], Query], ...]:
    found = _call_rules(language)
    row = parsed_row(language) if found else None
    grammar = tree_sitter_language(row.package, row.entry) if row else None
    return tuple(
        (rule.kind, _any(one.replace(" ", _BLANKS) for one in rule.patterns), Query(grammar, rule.query))
        for rule in found
        if grammar
    )


@cache
def _any_head(language: str) -> re.Pattern[str] | None:
    """Return one pattern for the heads of all calls."""
    found = [one.replace(" ", _BLANKS) for rule in _call_rules(language) for one in rule.patterns]
    return _any(found) if found else None


def _call_rules(language: str) -> list[Rule]:
    return [rule for rule in rules() if rule.query and language in rule.languages and parsed_row(language)]


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
    """Return the pattern of any construct, and of any beginning of one at the text's end.

    On calls a query decides, so that only their beginnings count.
    """
    heads = (one.rpartition(" ")[0] for rule in _call_rules(language) for one in rule.patterns)
    return _any([*(_begun(pattern) for _, pattern in _rows(language)), *(_begun(head + r" \Z") for head in heads)])


@cache
def _any_whole(language: str) -> re.Pattern[str]:
    return _any(pattern.replace(" ", _BLANKS).replace(_ACT, "(?:") for _, pattern in _rows(language))


def _rows(language: str) -> list[tuple[str, str]]:
    """Return kind and pattern of each construct as the rules have it."""
    return [
        (rule.kind, one)
        for rule in rules()
        if not rule.query and (language in rule.languages or not rule.languages)
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
