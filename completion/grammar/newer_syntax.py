"""Replaces Python syntax that is newer than the interpreter, so that its parser can check the rest of a text.

The grammar knows the syntax of newer versions, so the user's file can be right although the interpreter of the engine
cannot read it.
"""

from __future__ import annotations

import sys
from functools import cache

from tree_sitter import Language, Query, QueryCursor, Tree

_ROWS = (
    ((3, 12), b"_:", '(type_alias_statement "type" @new)'),
    ((3, 12), b"", "(type_alias_statement left: (type (generic_type (type_parameter) @new)))"),
    ((3, 12), b"", "(function_definition (type_parameter) @new)"),
    ((3, 12), b"", "(class_definition (type_parameter) @new)"),
    ((3, 12), b"{0}", r"""((interpolation) @new (#match? @new "[\"'\\\\#\n]"))"""),  # quotes, backslashes, lines
    ((3, 14), b'""', '((string (string_start) @start) @new (#match? @start "^[rR]?[tT]"))'),
    ((3, 14), b" or ", '(except_clause "," @new . (_ !alias))'),  # without parentheses
    ((3, 15), b"", '(list_comprehension (list_splat "*" @new))'),
    ((3, 15), b"", '(set_comprehension (list_splat "*" @new))'),
    ((3, 15), b"", '(generator_expression (list_splat "*" @new))'),
)
"""The first version with a syntax, what replaces it in older ones, and a query for `@new`, the replaced part."""

_NEWER = [(older, query) for version, older, query in _ROWS if sys.version_info < version]


@cache
def _query(language: Language) -> Query:
    return Query(language, "\n".join(query for _, query in _NEWER))


def without_newer_syntax(tree: Tree, text: bytes, start: int, end: int) -> bytes:
    """Return the text from `start` to `end` in syntax that the interpreter can read; each line keeps its number.

    Args:
        tree: tree-sitter's tree of `text`; its parts with errors stay as they are.
        text: A whole Python file.
        start: Offset in bytes.
        end: Offset in bytes.
    """
    cursor = QueryCursor(_query(tree.language))
    cursor.set_byte_range(start, end)
    found = [(node, _NEWER[row][0]) for row, captures in cursor.matches(tree.root_node) for node in captures["new"]]
    pieces, offset = [], start
    for node, older in sorted(found, key=lambda each: each[0].start_byte):  # outer nodes before those inside them
        if offset <= node.start_byte and node.end_byte <= end:
            newlines = text.count(b"\n", node.start_byte, node.end_byte)
            pieces += [text[offset : node.start_byte], older, b"\\\n" * newlines]
            offset = node.end_byte
    return b"".join([*pieces, text[offset:end]])
