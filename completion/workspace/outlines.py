"""The outline of a definition for the prompt: its signature and public members without bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

_MAX_MEMBER_CHARACTERS = 200  # maximum characters of a member, and of a type without public members that is shown whole
_PRIVATE = re.compile(r"(?:(?:static|async|readonly|final|get|set)\s+)*(?:private\b|#\w|def _(?!_)|_(?!_)\w*\s*[:=])")
_CALLED_AS = re.compile(r"@(?:[\w.]*property|staticmethod|classmethod)$")  # decorators that change how a method is used
_SETTER = re.compile(r"\.(?:setter|deleter)$")  # of a property that the outline has
_OPEN_DECORATORS = re.compile(r"(?:\n *@[\w.]+)+$")
_LOOSE = re.compile(r"(?<=[(\[]) | (?=[)\]])|,(?= ?[)\]])")
_COMMENT_START = re.compile(r"^[ \t]*(?://[^\n]*\n|/\*)", re.MULTILINE)
_COMMENT_END = re.compile(r"\*/[ \t]*\n")


def outline(node: Node) -> str:
    """Return a definition without its functions' bodies; "" for an implementation block without public members."""
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value")
        inner = value.child_by_field_name("body") if value is not None else None
        if inner is not None and inner.type == "statement_block":
            return _one_line(_head(node, inner))
        return _without_comment_lines(text_of(node))
    if node.type.startswith(("function", "method", "generator_function", "subroutine")):
        return _one_line(_head(node, body))
    members = _members(node, body)
    if not members and node.type == "impl_item":
        return ""
    if not members and len(text_of(node)) <= _MAX_MEMBER_CHARACTERS:
        return _without_comment_lines(text_of(node))
    return "\n".join([_one_line(_head(node, body)), *members])


def whole_lines(text: str, length: int) -> str:
    """Return the whole lines of a text that fit into `length` characters, without decorators at their end.

    A longer first line is cut.
    """
    if len(text) <= length:
        return text
    cut = text.rfind("\n", 0, length)
    return _OPEN_DECORATORS.sub("", text[:cut]) if cut > 0 else text[:length]


def text_of(node: Node) -> str:
    """Return a node's text."""
    return (node.text or b"").decode("utf-8", "replace")


def _without_comment_lines(text: str) -> str:
    """Return the text without comment lines, in linear time even if many comments begin and none ends."""
    kept: list[str] = []
    copied, last_end = 0, text.rfind("*/")
    for start in _COMMENT_START.finditer(text):
        end = start if start.group().endswith("\n") else None
        if start.start() >= copied and end is None and start.end() <= last_end:
            end = _COMMENT_END.search(text, start.end())
            last_end = last_end if end else 0
        if end is not None and start.start() >= copied:
            kept.append(text[copied : start.start()])
            copied = end.end()
    return "".join([*kept, text[copied:]])


def _head(node: Node, body: Node | None) -> str:
    """Return a node's text before its body."""
    data = node.text or b""
    return (data if body is None else data[: body.start_byte - node.start_byte]).decode("utf-8", "replace")


def _one_line(text: str) -> str:
    return _LOOSE.sub("", " ".join(text.split()))


def _members(owner: Node, body: Node) -> list[str]:
    """Return the signatures and fields of a class, struct, trait or interface, without private ones."""
    if body.type == "ordered_field_declaration_list":  # of a tuple struct, which is short
        return []
    lines = []
    for member, mark in _marked_members(owner, body):
        inner = None if member.type == "enum_variant" else member.child_by_field_name("body")
        line = "" if _is_remark(member) else _one_line(_head(member, inner))
        if line and not _PRIVATE.match(line) and len(line) <= _MAX_MEMBER_CHARACTERS:
            lines.append("    " + mark + line)
    return lines


def _marked_members(owner: Node, body: Node) -> Iterator[tuple[Node, str]]:
    """Yield the members that are not hidden by a label or by default, each with the text that its line begins with."""
    access = "private" if owner.type == "class_specifier" else "public"  # of C++, which has labels
    for child in body.named_children:
        if child.type == "access_specifier":
            access = text_of(child)
        elif child.type == "enum_body_declarations":  # of Java, after the constants
            yield from ((each, "") for each in child.named_children if each.type != "constructor_declaration")
        elif child.type == "decorated_definition":
            *decorators, member = child.named_children
            marks = [text_of(each) for each in decorators]
            if not any(_SETTER.search(mark) for mark in marks):
                yield member, "".join(f"{mark}\n    " for mark in marks if _CALLED_AS.match(mark))
        elif access != "private" and not _is_hidden_by_default(owner, child):
            yield child, "protected: " if access == "protected" else ""


def _is_hidden_by_default(owner: Node, member: Node) -> bool:
    """Return whether Rust hides a member because it is not marked as public."""
    inherent = owner.type == "impl_item" and owner.child_by_field_name("trait") is None
    if not inherent and owner.type not in ("struct_item", "union_item"):
        return False
    return not any(part.type == "visibility_modifier" for part in member.named_children)


def _is_remark(member: Node) -> bool:
    """Return whether a part of a body is a comment, an attribute of the next member or a docstring."""
    if member.type == "expression_statement":
        return any(child.type == "string" for child in member.named_children)
    return "comment" in member.type or member.type == "attribute_item"
