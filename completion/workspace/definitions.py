"""What a file defines and imports, read off its syntax: no build, no import, broken code included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from completion.syntax.trees import parse
from completion.workspace.outlines import outline, text_of, whole_lines

LONGEST_OUTLINE = 400
"""Characters of one definition's outline; a longer one is cut after a whole line."""

_CONTAINERS = frozenset(
    {
        "export_statement", "decorated_definition", "namespace_definition", "template_declaration", "mod_item",
        "linkage_specification", "declaration_list", "preproc_ifdef", "preproc_if", "ambient_declaration",
        "type_declaration", "const_declaration", "var_declaration", "preproc_else", "internal_module", "module",
        "statement_block", "if_statement", "try_statement", "block",
    }
)  # fmt: skip
_DEFINITIONS = frozenset(
    {
        "function_definition", "class_definition", "function_declaration", "generator_function_declaration",
        "class_declaration", "abstract_class_declaration", "interface_declaration", "type_alias_declaration",
        "enum_declaration", "record_declaration", "function_item", "struct_item", "enum_item", "trait_item",
        "impl_item",
        "type_item", "const_item", "static_item", "macro_definition", "method_declaration", "type_spec", "const_spec",
        "var_spec", "struct_specifier", "class_specifier", "enum_specifier", "type_definition", "preproc_def",
        "preproc_function_def", "variable_declarator", "assignment", "function_signature", "declaration",
    }
)  # fmt: skip
_WRAPPERS = frozenset({"lexical_declaration", "variable_declaration", "expression_statement"})
_IMPORTS = frozenset(
    {"import_statement", "import_from_statement", "use_declaration", "import_declaration", "preproc_include"}
)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_MOST_CONTAINERS = 100  # around a definition


@dataclass(frozen=True, slots=True)
class Definition:
    """One name that a file defines at its outermost level, and how it is used: its signature and its members'."""

    name: str
    outline: str


def definitions(text: str, language: str) -> tuple[Definition, ...]:
    """Definitions of a file in order; none for a language without a grammar.

    A type and its implementation, or overloads of a function, share a name and become one outline.
    """
    tree = parse(text, language)
    if tree is None:
        return ()
    outlines: dict[str, str] = {}
    for node in _walk(tree.root_node):
        name = _name(node)
        if name is None or len(outlines.get(name, "")) > LONGEST_OUTLINE:
            continue
        if "require(" not in text_of(node)[:LONGEST_OUTLINE]:
            outlines[name] = "\n".join(filter(None, (outlines.get(name), outline(node))))
    return tuple(Definition(name, whole_lines(whole, LONGEST_OUTLINE)) for name, whole in outlines.items())


@dataclass(frozen=True, slots=True)
class Imports:
    """What a text's import statements bring.

    Attributes:
        names: Every word of them: names, aliases, modules and parts of paths.
        modules: Those of statements that name a module and nothing in it, as `import * as a from "./b"` or `import a`.
    """

    names: frozenset[str]
    modules: frozenset[str]


def imports(text: str, language: str) -> Imports:
    """The words of the import statements at the outermost level of a text."""
    statements = import_statements(text, language)
    whole = [line for line in statements if "{" not in line and not line.startswith("from ")]
    return Imports(
        *(frozenset(word for line in lines for word in _WORD.findall(line)) for lines in (statements, whole))
    )


def import_statements(text: str, language: str) -> list[str]:
    """The import statements at the outermost level of a text, in order; none for a language without a grammar."""
    tree = parse(text, language)
    if tree is None:
        return []
    statements = ((node, text_of(node)) for node in tree.root_node.named_children)
    return [
        content.rstrip()
        for node, content in statements
        if node.type in _IMPORTS or (node.type in _WRAPPERS and "require(" in content)
    ]


def _walk(node: Node, depth: int = 0) -> Iterator[Node]:
    for child in node.named_children if depth < _MOST_CONTAINERS else ():
        if child.type in _DEFINITIONS:
            yield child
        elif child.type in _WRAPPERS:
            yield from (inner for inner in child.named_children if inner.type in _DEFINITIONS)
        elif child.type in _CONTAINERS and not _is_for_tests(child):
            yield from _walk(child, depth + 1)


def _is_for_tests(node: Node) -> bool:
    """Whether a Rust module is compiled for tests only: no other file uses what it defines."""
    attribute = node.prev_named_sibling
    return attribute is not None and attribute.type == "attribute_item" and "cfg(test)" in text_of(attribute)


def _name(node: Node) -> str | None:
    """The name that a definition gives; for an implementation block, the type's."""
    for field in ("name", "type", "left", "declarator"):
        inner = node.child_by_field_name(field)
        if field == "type" and node.type != "impl_item":
            continue
        while inner is not None and (deeper := inner.child_by_field_name("declarator")) is not None:
            inner = deeper
        if inner is not None and (match := _WORD.match(text_of(inner))):
            return match.group()
    return None
