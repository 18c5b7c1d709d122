"""Reads a language's row of `languages.toml`: what the code knows of a language is said there, and asked for here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from completion.language_ids import rows

_NAMED = re.compile(r"\(\?&(\w+)\)")


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a language, except its names and literals. `languages.toml` says what each of it is."""

    package: str = ""
    entry: str = "language"
    acceptor: bool = False
    tags: bool = False
    named_literals: bool = False
    may_be: str = ""
    signs: re.Pattern[str] | None = None
    kind: str = ""
    line_comments: tuple[str, ...] = ()
    block_comments: tuple[str, ...] = ()
    lone_closers: str = ""
    indented: bool = False
    clauses: tuple[str, ...] = ()
    opens_with_colon: bool = False
    opening: re.Pattern[str] | None = None
    opening_end: re.Pattern[str] | None = None
    closing: tuple[str, ...] = ()
    continuing: tuple[str, ...] = ()
    values: bool = False
    decorator: re.Pattern[str] | None = None
    preprocessor: str = ""
    environment: re.Pattern[str] | None = None
    statement_end: re.Pattern[str] | None = None
    body_mark: re.Pattern[str] | None = None
    items: bool = False
    keys: bool = False
    last_comma: bool = True
    as_written: bool = False
    recipe: re.Pattern[str] | None = None
    fences: bool = False
    docstrings: bool = False
    dotted_imports: bool = False

    @property
    def line_comment(self) -> str:
        """What usually begins a comment up to the line's end; "" if nothing does."""
        return self.line_comments[0] if self.line_comments else ""

    @property
    def comments(self) -> tuple[str, ...]:
        """What begins a comment."""
        return (*self.line_comments, *self.block_comments[::2])

    @property
    def has_sentences(self) -> bool:
        """Whether documents in the language contain text, in which brackets can be of any meaning, as in `:(`."""
        return bool(self.kind)


_NOTHING = Row()


@cache
def row_of(language: str) -> Row:
    """Return the row of a language; for an unknown one, one that says nothing."""
    raw = rows().get(language, {})
    known = [field for field in fields(Row) if field.name in raw]
    return replace(_NOTHING, **{field.name: _READERS[str(field.type)](raw[field.name]) for field in known})


def is_code(language: str) -> bool:
    """Return whether the literals of a language are known, and documents in it are not mostly natural language."""
    row = rows().get(language, {})
    return row.get("kind") != "text" and not {"line_comments", "block_comments", "strings"}.isdisjoint(row)


def pattern(text: str) -> str:
    """Return a pattern of the table with those that it names."""
    named = rows()["patterns"]
    return _NAMED.sub(lambda found: pattern(named[found[1]]), text)


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(pattern(text), re.MULTILINE)


_READERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "str": str,
    "tuple[str, ...]": lambda words: tuple(words.split()),
    "re.Pattern[str] | None": _compiled,
}
