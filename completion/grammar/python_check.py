"""What Python's own compiler says of a completion: it finds more errors than the grammar.

Syntax that is newer than the interpreter is replaced, so that its parser can check the rest of a text: the grammar
knows it, so the user's file can be right although the interpreter of the engine cannot read it.
"""

from __future__ import annotations

import ast
import sys
import warnings
from functools import cache

from tree_sitter import Language, Node, Query, QueryCursor, Tree

_MAX_COMPILED_BYTES = 200_000  # of the part around the completion that Python's compiler reads
_FUNCTION = "function_definition"
_BLOCKS = frozenset({_FUNCTION, "class_definition", "decorated_definition"})
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


def _without_newer_syntax(tree: Tree, text: bytes, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to `end` in syntax that the interpreter can read.

    Each line keeps its number. Parts of the tree with errors stay as they are.
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


def python_passes(tree: Tree, text: bytes, without: tuple[Tree, bytes], start: int, end: int) -> bool:
    """Return whether Python's compiler finds no error before the first one of the document without the completion.

    It names one error only, and may name it on a later line than the one that causes it. The completion is between the
    bytes `start` and `end` of the text.
    """
    first, last = _block_around(tree.root_node, start, end)
    first = text.rfind(b"\n", 0, first) + 1
    if last - first > _MAX_COMPILED_BYTES:
        return True
    line = _first_error(tree, text, first, last)
    begin = text.count(b"\n", first, start) + 1
    if line is None or line < begin:
        return True
    if line <= begin + text.count(b"\n", start, end):
        return False
    last_without = last - len(text) + len(without[1])
    own = _first_error(*without, first, last_without)
    added = text.count(b"\n", first, last) - without[1].count(b"\n", first, last_without)
    return own is not None and (own < begin or line >= own + added)


def _block_around(root: Node, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the innermost sound definition around the range that is in no function; else of all.

    The names of an enclosing function belong to a function in it.
    """
    node, found = root, (root.start_byte, root.end_byte)
    while True:
        inner = next((c for c in node.children if c.start_byte < start and c.end_byte > end), None)
        if inner is None:
            return found
        if inner.type in _BLOCKS and not inner.has_error:
            found = (inner.start_byte, inner.end_byte)
        if inner.type == _FUNCTION:
            return found
        node = inner


def _first_error(tree: Tree, text: bytes, first: int, last: int) -> int | None:
    """Return the line of the first error in a part of a text that starts a line, counted from 1; None without one."""
    wrapper = b"if 1:\n" if text[first : first + 1] in (b" ", b"\t") else b""
    line = error_line(wrapper + text[first:last])
    if line is not None:
        line = error_line(wrapper + _without_newer_syntax(tree, text, first, last))
    return line if line is None else line - len(wrapper[:1])


def error_line(source: bytes) -> int | None:
    """Return the line, counted from 1, of the first error that Python's compiler finds; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<text>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)  # as cells may have
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):  # NUL bytes; nesting deeper than the parser's stack
        return 0
    return None
