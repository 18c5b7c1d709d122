"""Finds a key that the mapping around a line has already, by indentation: documents of keys have each only once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from completion.ending.context import Context
from completion.ending.rest_of_line import only_closers
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import is_item
from completion.syntax.table import row_of

_KEY = re.compile(
    r"""[ \t]*(?:("(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*(?:=|:(?!=))"""
    r"""|([^\s:#"'{}\[\]<&*!|>%@`,?=-][^:#=\n]*?)[ \t]*(?:=|:(?=\s|\Z)))"""
)
_TABLE = re.compile(r"\[[A-Za-z_][^\[\],\n]*\](?=[ \t]*(?:#.*)?\r?\Z)")  # a key of the whole document
_SEPARATOR = re.compile(r"---|\.\.\.|\{\{|\{%|\[")  # of documents, of branches in a template, before a table
_SCALAR = re.compile(r"(?:^|[\s:-])[|>][-+\d]*[ \t]*(?:#.*)?\Z")  # what begins text of several lines
_OTHER = re.compile(r"[\s{}\[\],]*\Z|[ \t]*(?:#|//|- |\[|---|\{\{|\{%)")  # lines that have no key beside those with one
_MOST = 200  # lines at either side of the cursor that tell whether a document consists of keys


def repeats_key(text: str, line: str, offset: int, context: Context) -> bool:
    """Return whether a line of a text has a key that its mapping has already, which the user has not typed."""
    key = _key_of(line)
    is_typed = not offset and _key_of(context.line_before) is not None
    return key is not None and not is_typed and key in _beside(text, line, offset, context)


def may_repeat_key(text: str, line: str, offset: int, context: Context) -> bool:
    """Return whether an unfinished line without a key may become one that its mapping has already."""
    if _key_of(line) is not None:
        return False
    begun = line.strip().strip("\"'")
    return any(key.startswith(begun) for key in _beside(text, line, offset, context))


def has_keys(context: Context) -> bool:
    """Return whether a cursor is in a document of keys, in no string and not before one."""
    return not context.before.string and only_closers(context) and _consists_of_keys(context)


@lru_cache(maxsize=2)
def _consists_of_keys(context: Context) -> bool:
    """Return whether nearly all lines around a cursor have keys, apart from brackets, comments and items of lists."""
    around = (*context.near.split("\n")[-_MOST - 1 : -1], *context.following[:_MOST])
    lines = [line for line in around if _OTHER.match(line) is None]
    keyed = sum(_key_of(line) is not None and not line.rstrip().endswith((";", "):")) for line in lines)
    return keyed > 0.9 * len(lines)


def _key_of(line: str) -> str | None:
    """Return the key that a line begins with; None if it has none, or begins an item of a list."""
    if table := _TABLE.match(line):
        return table.group()
    found = None if is_item(line) else _KEY.match(line)
    return None if found is None else (found[1] or found[2]).strip("\"'")


def _beside(text: str, line: str, offset: int, context: Context) -> frozenset[str]:
    """Return the other keys of the mapping that a line is in; nothing in text of several lines."""
    before = context.near[: len(context.near) - len(context.line_before)]
    own = context.line_before + text[:offset] if offset else ""
    below, mark = "\n".join(context.following), row_of(context.language).line_comment
    if line.startswith("["):
        return _tables(before) | _tables(own) | _tables(below)
    level = depth(line)
    keys, end = _level(own, level, mark, upwards=True)
    if end is None:
        further, end = _level(before, level, mark, upwards=True)
        keys |= further
    if end is not None and _SCALAR.search(end):
        return frozenset()
    return keys | _level(below, level, mark, upwards=False)[0]


@lru_cache(maxsize=16)
def _tables(text: str) -> frozenset[str]:
    return frozenset(found.group() for line in text.split("\n") if (found := _TABLE.match(line)))


@lru_cache(maxsize=16)  # a document's lines are the same for every token of a text
def _level(text: str, level: int, mark: str, *, upwards: bool) -> tuple[frozenset[str], str | None]:
    """Return the keys at one level, and the line that ends their mapping; None if the lines end before."""
    lines: Iterable[str] = text.split("\n")
    keys = set[str | None]()
    for line in reversed(list(lines)) if upwards else lines:
        code = line.strip()
        if not code or (mark and code.startswith(mark)):
            continue
        own = depth(line)
        if own < level or (own == level and _SEPARATOR.match(code)):
            if upwards and is_item(line) and own + len(code) - len(code[1:].lstrip()) == level:
                keys.add(_key_of(line[:own] + " " + line[own + 1 :]))
            return frozenset(filter(None, keys)), line
        if own == level:
            keys.add(_key_of(line))
    return frozenset(filter(None, keys)), None
