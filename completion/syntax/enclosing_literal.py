"""What a cursor is inside of: a comment or a string, by the syntax tree."""

from __future__ import annotations

from enum import StrEnum

from tree_sitter import Tree

from completion.syntax.brackets import scan
from completion.syntax.trees import ancestors, parse

_PROBE = "x"
"""A character at the cursor: it belongs to a comment or a string if and only if typed text would."""
_STRINGS = frozenset(
    {
        "string", "template_string", "string_literal", "raw_string_literal", "interpreted_string_literal",
        "char_literal", "character_literal", "rune_literal",
    }
)  # fmt: skip
_CODE_IN_STRING = frozenset({"interpolation", "string_interpolation", "template_substitution", "template_type"})


class Literal(StrEnum):
    """What text at the cursor belongs to, other than code. A docstring is a string."""

    COMMENT = "in_comment"
    STRING = "in_string"


def enclosing_literal(before: str, after: str, language: str) -> Literal | None:
    """Return what the cursor between `before` and `after` is inside; None in code, and without a grammar.

    A string or comment that is not closed yet is parsed as if it ended at the cursor.
    """
    tree = parse(before + _PROBE + after, language)
    if tree is None:
        return None
    cursor = len(before.encode("utf-8", "replace"))
    found = _literal_at(tree, cursor)
    if found is None and tree.root_node.has_error:
        unclosed = scan(before, language)
        closer = unclosed.string or ("*/" if unclosed.comment else "")
        closed = parse(before + _PROBE + closer + after, language) if closer else None
        found = None if closed is None else _literal_at(closed, cursor)
    return found


def _literal_at(tree: Tree, cursor: int) -> Literal | None:
    for node in ancestors(tree.root_node.descendant_for_byte_range(cursor, cursor + 1)):
        if node.type in _CODE_IN_STRING:
            return None
        if "comment" in node.type:
            return Literal.COMMENT
        if node.type in _STRINGS:
            return Literal.STRING
    return None
