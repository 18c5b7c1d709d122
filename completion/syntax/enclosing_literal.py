"""What a cursor is inside of: a comment or string, by the syntax tree; the code of a string, by its line."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from tree_sitter import Tree

from completion.syntax.brackets import CLOSER_OF, scan
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

_BEGINS_CODE = {
    **dict.fromkeys(["ruby", "crystal", "elixir"], ("#{",)),
    **dict.fromkeys(["kotlin", "groovy", "dart", "scala", "terraform"], ("${",)),
    "shellscript": ("$(", "${"),
    "julia": ("$(",),
    "swift": ("\\(",),
}
"""By language, what begins code in a string; in a backslash's case, it is no escape."""
_WITH_CODE = {"dart": "\"'"}
"""By language, the quotes of strings with code; elsewhere only double ones are."""
_QUOTES = frozenset("\"'")


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


def waiting_closers(line: str, language: str) -> tuple[str, ...]:
    """Return what closes the strings and brackets around the end of a line, innermost last; () outside a string's code.

    The code has strings of its own, as in `"$(cat "$file")"`.
    """
    if not any(begin in line for begin in _BEGINS_CODE.get(language, ())):
        return ()
    waiting, _ = _follow(line, (), language)
    return tuple(waiting) if any(closer in _QUOTES for closer in waiting[:-1]) else ()


def closed_by(text: str, waiting: Sequence[str], language: str) -> str:
    """Return which of the waiting closers a text has, innermost first, without those of what it opens again."""
    after, left = _follow(text, waiting, language)
    return "".join(reversed(waiting[left:])).removesuffix("".join(reversed(after[left:])))


def _follow(text: str, waiting: Sequence[str], language: str) -> tuple[list[str], int]:
    """Return what is waiting after a text, and how many of the first ones were waiting all the time."""
    begins, with_code = _BEGINS_CODE[language], _WITH_CODE.get(language, '"')
    stack, least, position = list(waiting), len(waiting), 0
    while position < len(text):
        character, inside = text[position], stack[-1] if stack else ""
        begin = next((each for each in begins if text.startswith(each, position)), "")
        if begin and inside and inside in with_code:
            stack.append(CLOSER_OF[begin[-1]])
            position += len(begin)
            continue
        if character == "\\":
            position += 2
            continue
        if character == inside:
            stack.pop()
        elif inside not in _QUOTES and (character in _QUOTES or character in CLOSER_OF):
            stack.append(CLOSER_OF.get(character, character))
        least = min(least, len(stack))
        position += 1
    return stack, least
