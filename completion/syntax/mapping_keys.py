"""Finds the keys of the mapping around a line by indentation: YAML, JSON and TOML allow each of them only once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from completion.syntax.indent_style import depth
from completion.syntax.line_roles import is_item
from completion.syntax.table import row_of

_SEPARATOR = re.compile(r"---|\.\.\.|\{\{|\{%|\[")  # of documents, of branches in a template, before a table of TOML
_QUOTES = "\"'"


class _Beside(NamedTuple):
    """The keys at one level, and the line that ends their mapping; None if the lines end before."""

    keys: frozenset[str]
    end: str | None


def has_keys(language: str) -> bool:
    """Return whether documents in a language consist of mappings."""
    return row_of(language).key is not None


def key_of(line: str, language: str) -> str | None:
    """Return the key that a line begins with; None if it has none, or begins an item of a list."""
    pattern, head = row_of(language).key, row_of(language).table
    if head is not None and (table := head.match(line)):
        return table.group()
    found = pattern.match(line) if pattern is not None and not is_item(line) else None
    return None if found is None else found[1].strip(_QUOTES)


def may_become(line: str, keys: frozenset[str]) -> bool:
    """Return whether an unfinished line without a whole key can still become one with one of these keys."""
    begun = line.strip().strip(_QUOTES)
    return any(key.startswith(begun) for key in keys)


def keys_beside(line: str, before: str, own: str, below: str, language: str) -> frozenset[str]:
    """Return the other keys of the mapping that a line is in; nothing in text of several lines.

    Args:
        line: The line, complete or not.
        before: Whole lines before the cursor's.
        own: Whole lines of a text at the cursor, above the line.
        below: Lines below the cursor's.
        language: LSP language identifier, of a language with keys.
    """
    row = row_of(language)
    if row.table is not None and line.startswith("["):
        return _tables(before, row.table) | _tables(own, row.table) | _tables(below, row.table)
    level = depth(line)
    above = _beside(own, level, language, upwards=True)
    if above.end is None:
        further = _beside(before, level, language, upwards=True)
        above = _Beside(above.keys | further.keys, further.end)
    if above.end is not None and row.scalar is not None and row.scalar.search(above.end):
        return frozenset()
    return above.keys | _beside(below, level, language, upwards=False).keys


def forget_texts() -> None:
    """Free what was kept of texts around cursors."""
    _beside.cache_clear()
    _tables.cache_clear()


@lru_cache(maxsize=16)
def _tables(text: str, head: re.Pattern[str]) -> frozenset[str]:
    return frozenset(found.group() for line in text.split("\n") if (found := head.match(line)))


@lru_cache(maxsize=16)  # a document's lines are the same for every token of a text
def _beside(text: str, level: int, language: str, *, upwards: bool) -> _Beside:
    lines: Iterable[str] = text.split("\n")
    keys, mark = set[str](), row_of(language).line_comment
    for line in reversed(list(lines)) if upwards else lines:
        code = line.strip()
        if not code or (mark and code.startswith(mark)):
            continue
        own = depth(line)
        if own < level or (own == level and _SEPARATOR.match(code)):
            if upwards and is_item(line) and own + len(code) - len(code[1:].lstrip()) == level:
                keys.update(_keys(line[:own] + " " + line[own + 1 :], language))
            return _Beside(frozenset(keys), line)
        if own == level:
            keys.update(_keys(line, language))
    return _Beside(frozenset(keys), None)


def _keys(line: str, language: str) -> list[str]:
    key = key_of(line, language)
    return [] if key is None else [key]
