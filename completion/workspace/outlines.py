"""How one definition is shown to the model: its signature and what other files can use of it, without bodies."""

from __future__ import annotations

import re

from tree_sitter import Node

_LONGEST_MEMBER = 200  # characters; also of a type that is shown whole because nothing in it can be used from outside
_PRIVATE = re.compile(r"(?:(?:static|async|readonly|final|get|set)\s+)*(?:private\b|#\w|def _(?!_)|_(?!_)\w*\s*[:=])")
_LOOSE = re.compile(r"(?<=[(\[]) | (?=[)\]])|,(?= ?[)\]])")
_COMMENT_START = re.compile(r"^[ \t]*(?://[^\n]*\n|/\*)", re.MULTILINE)
_COMMENT_END = re.compile(r"\*/[ \t]*\n")


def outline(node: Node) -> str:
    """A definition without the bodies of its functions; "" for an implementation block that shows nothing.

    Args:
        node: Any definition of `completion.workspace.definitions`.
    """
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value")
        inner = value.child_by_field_name("body") if value is not None else None
        if inner is not None and inner.type == "statement_block":
            return _one_line(_head(node, inner))
        return _without_comment_lines(text_of(node))
    if _is_function(node):
        return _one_line(_head(node, body))
    members = _members(node, body)
    if not members and node.type == "impl_item":
        return ""
    if not members and len(text_of(node)) <= _LONGEST_MEMBER:
        return _without_comment_lines(text_of(node))
    return "\n".join([_one_line(_head(node, body)), *members])


def whole_lines(text: str, length: int) -> str:
    """As many whole lines of a text as fit into so many characters; a first line that is longer is cut."""
    if len(text) <= length:
        return text
    cut = text.rfind("\n", 0, length)
    return text[: cut if cut > 0 else length]


def text_of(node: Node) -> str:
    """A node's text."""
    return (node.text or b"").decode("utf-8", "replace")


def _without_comment_lines(text: str) -> str:
    """The text without lines that are comments; one pass, also where many comments begin and none ends."""
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
    """The text before a body."""
    data = node.text or b""
    return (data if body is None else data[: body.start_byte - node.start_byte]).decode("utf-8", "replace")


def _one_line(text: str) -> str:
    return _LOOSE.sub("", " ".join(text.split()))


def _is_function(node: Node) -> bool:
    return node.type.startswith(("function", "method", "generator_function"))


def _members(owner: Node, body: Node) -> list[str]:
    """Signatures and fields of a class, struct, trait or interface, but for those that only it can use."""
    if body.type == "ordered_field_declaration_list":  # of a tuple struct, which is short
        return []
    inherent = owner.type == "impl_item" and owner.child_by_field_name("trait") is None
    hidden_by_default = inherent or owner.type == "struct_item"  # in Rust
    lines = []
    for child in body.named_children:
        member = child.named_children[-1] if child.type == "decorated_definition" and child.named_children else child
        if "comment" in member.type or member.type == "attribute_item" or _is_docstring(member):
            continue
        if hidden_by_default and not any(part.type == "visibility_modifier" for part in member.named_children):
            continue
        inner = None if member.type == "enum_variant" else member.child_by_field_name("body")
        line = _one_line(_head(member, inner))
        if not _PRIVATE.match(line) and len(line) <= _LONGEST_MEMBER:
            lines.append("    " + line)
    return lines


def _is_docstring(member: Node) -> bool:
    return member.type == "expression_statement" and any(child.type == "string" for child in member.named_children)
