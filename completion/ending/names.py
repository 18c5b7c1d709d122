"""Finds what a line says though it is said once only, and nearby: a key of its mapping, a name's value, a jump."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from completion.ending.context import Context
from completion.ending.rest_of_line import only_closers
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import announces, defines_name, is_clause, is_item
from completion.syntax.table import row_of

_NAME = re.compile(
    r"[ \t]*(?P<declares>[^=(\"'#]*?)(?P<name>[$@]?\w[\w.$>-]*)[ \t]*(?::(?!=)[^=]*)?(?<![-=!<>+*/%&|^.])"
    r"(?::=|=)(?![=>~])(?P<value>.*)"
)
_JUMP = re.compile(r"[ \t]*(?:return|break|continue|raise|throw)\b(?!.*\b(?:if|unless|when)\b(?!.*\belse\b))")
_LABEL = re.compile(r"[ \t]*(?:case|default|when)\b.*|.*:|[ \t]*[#)}\]].*")  # control gets there from elsewhere
_WORDS = re.compile(r"[\w \t]*")

_KEY = re.compile(
    r"""[ \t]*(?:("(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*(?:=|:(?!=))"""
    r"""|([^\s:#"'{}\[\]<&*!|>%@`,?=-][^:#=\n]*?)[ \t]*(?:=|:(?=\s|\Z)))"""
)
_TABLE = re.compile(r"^\[[A-Za-z_][^\[\],\n]*\](?=[ \t]*(?:#.*)?\r?$)", re.MULTILINE)  # a key of the whole document
_SEPARATOR = re.compile(r"---|\.\.\.|\{\{|\{%|\[")  # of documents, of branches in a template, before a table
_SCALAR = re.compile(r"(?:^|[\s:-])[|>][-+\d]*[ \t]*(?:#.*)?\Z")  # what begins text of several lines
_OTHER = re.compile(r"[\s{}\[\],]*\Z|[ \t]*(?:#|//|- |\[|---|\{\{|\{%)")  # lines that have no key beside those with one
_MOST = 200  # lines at either side of the cursor that tell whether a document consists of keys


class Line(NamedTuple):
    """A line of a text as it would stand in the document, its offset in the text, and its tokens."""

    whole: str
    offset: int
    tokens: tuple[str, ...]


def is_said(text: str, line: Line, context: Context) -> bool:
    """Return whether a line has a key that its mapping has, gives the next line's name a value, or leaves before it."""
    if context.before.string or not only_closers(context):
        return False
    if _consists_of_keys(context):
        key, typed = _key_of(line.whole), "" if line.offset else context.line_before
        return key is not None and _key_of(typed) is None and key in _beside(text, line, context)
    below, typed_name = context.line_below, not line.offset and _NAME.match(context.line_before)
    if depth(line.whole) != depth(below) or context.before.comment or typed_name:
        return False
    if _JUMP.match(line.whole):
        is_last = not text[line.offset :].rstrip().partition("\n")[2]
        return is_last and _is_reached(below, context)
    ours, theirs = _NAME.match(line.whole), _NAME.match(below)
    if ours is None or theirs is None or ours["name"] != theirs["name"]:
        return False
    read = re.compile(rf"(?<!\w){re.escape(ours['name'])}(?!\w)")
    return not read.search(theirs["value"]) and not read.search(text, line.offset + len(line.whole))


def may_be_said(text: str, line: Line, context: Context) -> bool:
    """Return whether `is_said` may become true of an unfinished line."""
    if context.before.string or not only_closers(context):
        return False
    if _consists_of_keys(context):
        begun = line.whole.strip().strip("\"'")
        return _key_of(line.whole) is None and any(key.startswith(begun) for key in _beside(text, line, context))
    is_open = _WORDS.fullmatch(line.whole) and (_NAME.match(context.line_below) or _JUMP.match(line.whole))
    return bool(is_open) and depth(line.whole) == depth(context.line_below)


def _is_reached(below: str, context: Context) -> bool:
    """Return whether only the line above leads to a line below: neither it nor what a comment is of begins apart."""
    lines = (line for line in context.following if line.strip())
    code = next((line for line in lines if not announces(line, context.language)), "")
    begins_apart = is_clause(code, context.language) or defines_name(code) or _LABEL.fullmatch(code)
    return code.strip() != "" and depth(code) == depth(below) and not begins_apart


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


def _beside(text: str, line: Line, context: Context) -> frozenset[str]:
    """Return the other keys of the mapping that a line is in; nothing in text of several lines."""
    typed = context.line_before + text[: line.offset] if line.offset else ""
    above = context.near[: len(context.near) - len(context.line_before)] + typed
    below, mark = "\n".join(context.following), row_of(context.language).line_comment
    if line.whole.startswith("["):
        return frozenset(_TABLE.findall(f"{above}\n{below}"))
    keys, end = _level(above, depth(line.whole), mark, upwards=True)
    return frozenset() if _SCALAR.search(end) else keys | _level(below, depth(line.whole), mark, upwards=False)[0]


@lru_cache(maxsize=8)  # a document's lines are the same for every token of a line
def _level(text: str, level: int, mark: str, *, upwards: bool) -> tuple[frozenset[str], str]:
    """Return the keys at one level, and the line that ends their mapping; "" if nothing does."""
    lines, end = text.split("\n"), ""
    keys = set[str | None]()
    for line in reversed(lines) if upwards else lines:
        code = line.strip()
        if not code or (mark and code.startswith(mark)):
            continue
        own = depth(line)
        if own < level or (own == level and _SEPARATOR.match(code)):
            if upwards and is_item(line) and own + len(code) - len(code[1:].lstrip()) == level:
                keys.add(_key_of(line[:own] + " " + line[own + 1 :]))
            end = line
            break
        if own == level:
            keys.add(_key_of(line))
    return frozenset(filter(None, keys)), end
