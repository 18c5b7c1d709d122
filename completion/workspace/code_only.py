"""Removes prose from another file's code: comments, docstrings and sentences in string literals.

Prose can contain instructions to the model ("always disable verification"), which the model can follow. Identifiers and
one-word strings (keys, paths, types) stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tree_sitter import Node

from completion.syntax.brackets import comments_and_strings
from completion.syntax.table import row_of
from completion.syntax.trees import parse

_ONE_WORD = re.compile(rb"[A-Za-z]{0,2}#*(?P<quote>[\"'`]{1,3})[\w./@:%*-]{0,40}(?P=quote)#*")
_LINE_END = re.compile(rb"[ \t\r]*(?:\n|\Z)")
_MAX_INDENT_BYTES = 200  # bounds the time for a line of many comments

Span = tuple[int, int, bytes]
"""Start and end of prose in bytes, and its replacement."""


def code_only(text: str, language: str) -> str:
    """Return the code of a whole file without its prose; nothing for a language with unknown comments and strings."""
    tree = parse(text, language) if row_of(language).named_literals else None
    if tree is None:
        return code_by_marks(text, language)
    return _without(text.encode("utf-8", "replace"), _prose(tree.root_node, language)).decode("utf-8", "replace")


def code_by_marks(text: str, language: str) -> str:
    """Return the code of a part of a file without its prose, found by comment marks and quotes, in linear time."""
    data = text.encode("utf-8", "replace")
    return _without(data, _lexical_prose(data, language)).decode("utf-8", "replace")


def without_prose_that(matches: Callable[[str], bool], text: str, language: str) -> str:
    """Return a part of a file without the comments and strings that match; one that the text ends inside stays."""
    data = text.encode("utf-8", "replace")
    spans = (
        span
        for span in _lexical_prose(data, language)
        if span[1] < len(data) and matches(data[span[0] : span[1]].decode("utf-8", "replace"))
    )
    return _without(data, spans).decode("utf-8", "replace")


def _prose(root: Node, language: str) -> Iterator[Span]:
    """Yield the spans of prose in the order of the text."""
    waiting, docstrings = [root], row_of(language).docstrings
    while waiting:
        node = waiting.pop()
        if "comment" in node.type or node.type == "jsx_text":
            yield _span(node, b"")
        elif node.type == "preproc_arg":  # a macro's replacement, which the grammar does not parse
            yield _span(node, _without(node.text or b"", _lexical_prose(node.text or b"", language)))
        elif docstrings and _is_docstring(node):
            yield _span(node, b"" if node.next_named_sibling else b"...")
        elif not _is_string(node):
            waiting += reversed(node.named_children)
        elif not _ONE_WORD.fullmatch(node.text or b""):
            yield _span(node, b'""')


def _span(node: Node, replacement: bytes) -> Span:
    """Return the span of a node without its line end, which Rust's grammar counts as part of a comment."""
    return node.start_byte, node.end_byte - (node.text or b"").endswith(b"\n"), replacement


def _is_string(node: Node) -> bool:
    return "string" in node.type and node.type != "system_lib_string"


def _is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and node.named_child_count == 1 and _is_string(node.named_children[0])


def _lexical_prose(data: bytes, language: str) -> Iterator[Span]:
    """Yield the spans of prose by comment marks and quotes; the whole text for a language where they are unknown."""
    found = comments_and_strings(data.decode("latin-1"), language)  # one character for each byte
    if found is None:
        yield 0, len(data), b""
    for each in found or ():
        if each.is_comment:
            yield each.start, each.end - (data[each.end - 1 : each.end] == b"\n"), b""
        elif not _ONE_WORD.fullmatch(data, each.start, each.end):
            yield each.start, each.end, b'""'


def _without(data: bytes, spans: Iterable[Span]) -> bytes:
    """Return the text with its prose replaced, without lines that contained only prose."""
    kept: list[bytes] = []
    copied = 0
    for first, last, replacement in spans:
        start, end = (first, last) if replacement else _whole_lines(data, first, last)
        kept += [data[copied:start], replacement]
        copied = end
    return b"".join([*kept, data[copied:]])


def _whole_lines(data: bytes, first: int, last: int) -> tuple[int, int]:
    """Extend a span to the blanks before it, or to its whole lines if they contain nothing else."""
    indent = data[max(first - _MAX_INDENT_BYTES, 0) : first]
    start = first - (len(indent) - len(indent.rstrip(b" \t")))
    line_end = _LINE_END.match(data, last)
    if line_end is None:
        return first, last
    return start, line_end.end() if start == 0 or data[start - 1] == ord("\n") else last
