"""Finds a file's definitions and imports by its syntax. Needs no build, and accepts broken code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from completion.language_ids import language_of
from completion.syntax.table import row_of
from completion.syntax.trees import parse
from completion.workspace.outlines import outline, text_of, whole_lines

MAX_OUTLINE_CHARACTERS = 400
"""Maximum number of characters in a definition's outline; a longer one is cut after a whole line."""

_CONTAINERS = frozenset(
    {
        "export_statement", "decorated_definition", "namespace_definition", "template_declaration", "mod_item",
        "linkage_specification", "declaration_list", "preproc_ifdef", "preproc_if", "ambient_declaration",
        "type_declaration", "const_declaration", "var_declaration", "var_spec_list", "preproc_else", "internal_module",
        "module", "statement_block", "if_statement", "try_statement", "block",
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
        "type_alias_statement", "type_alias", "alias_declaration", "concept_definition", "union_item",
        "union_specifier", "annotation_type_declaration",
    }
)  # fmt: skip
_WRAPPERS = frozenset({"lexical_declaration", "variable_declaration", "expression_statement"})
_IMPORTS = frozenset(
    {"import_statement", "import_from_statement", "use_declaration", "import_declaration", "preproc_include"}
)
_PATTERNS = frozenset({"pattern_list", "tuple_pattern", "list_pattern"})
_BARE_DECLARATORS = frozenset({"parenthesized_declarator", "reference_declarator"})  # without a named field
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_QUOTED_PATH = re.compile(r"""["'`<]([^"'`<>\s]+)["'`>]""")
_PACKAGES = re.compile(r"\b\w+\.(?=\w)")  # in a dotted name, only the last part names the file
_MAX_CONTAINERS = 100  # maximum number of nodes around a definition


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines at its outermost level, with the outline of its signature and members."""

    name: str
    outline: str


def definitions(text: str, language: str) -> tuple[Definition, ...]:
    """Return the definitions of a file in order; none for a language without a grammar.

    Definitions with the same name, such as a type and its implementation or overloads, become one outline.
    """
    tree = parse(text, language)
    if tree is None:
        return ()
    outlines: dict[str, str] = {}
    for node in _walk(tree.root_node):
        names = [name for name in _names(node) if len(outlines.get(name, "")) <= MAX_OUTLINE_CHARACTERS]
        if names and "require(" not in text_of(node)[:MAX_OUTLINE_CHARACTERS]:
            shown = outline(node)[: MAX_OUTLINE_CHARACTERS + 1]  # enough to see that it is too long
            outlines |= {name: "\n".join(filter(None, (outlines.get(name), shown))) for name in names}
    return tuple(Definition(name, whole_lines(whole, MAX_OUTLINE_CHARACTERS)) for name, whole in outlines.items())


@dataclass(frozen=True, slots=True)
class Imports:
    """The words of a text's import statements.

    Attributes:
        names: All words: names, aliases, modules and parts of paths.
        files: Possible names of imported files and folders: the last parts of quoted paths, and words outside quotes.
        modules: The files of statements that import a whole module, such as `import * as a from "./b"` or `import a`.
    """

    names: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()


def imports(text: str, language: str) -> Imports:
    """Return the words of the import statements at the outermost level of a text."""
    statements = import_statements(text, language)
    whole = [line for line in statements if "{" not in line and not line.startswith("from ")]
    return Imports(
        frozenset(word for line in statements for word in _WORD.findall(line)),
        *(frozenset(name for line in lines for name in _file_names(line, language)) for lines in (statements, whole)),
    )


def _file_names(statement: str, language: str) -> Iterator[str]:
    """Yield the last part of each quoted path, with and without a known ending, and the words outside quotes."""
    for path in _QUOTED_PATH.findall(statement):
        name = posixpath.basename(path.rstrip("/"))
        yield name
        if language_of(name):
            yield posixpath.splitext(name)[0]
    unquoted = _QUOTED_PATH.sub(" ", statement)
    yield from _WORD.findall(_PACKAGES.sub("", unquoted) if row_of(language).dotted_imports else unquoted)


def import_statements(text: str, language: str) -> list[str]:
    """Return the import statements at the outermost level of a text, in order; none without a grammar."""
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
    for child in node.named_children if depth < _MAX_CONTAINERS else ():
        if child.type in _DEFINITIONS:
            yield child
        elif child.type in _WRAPPERS:
            yield from (inner for inner in child.named_children if inner.type in _DEFINITIONS)
        elif child.type in _CONTAINERS and not _is_for_tests(child):
            yield from _walk(child, depth + 1)


def _is_for_tests(node: Node) -> bool:
    """Return whether a Rust module is compiled only for tests, so that no other file uses its definitions."""
    attribute = node.prev_named_sibling
    return attribute is not None and attribute.type == "attribute_item" and "cfg(test)" in text_of(attribute)


def _names(node: Node) -> list[str]:
    """Return the names that a definition defines; for an implementation block, the name of the type."""
    for field in ("name", "type", "left", "declarator"):
        if field == "type" and node.type != "impl_item":
            continue
        targets = [_innermost(each) for each in node.children_by_field_name(field)]
        parts = [part for each in targets for part in (each.named_children if each.type in _PATTERNS else [each])]
        names = [match.group() for part in parts if (match := _WORD.match(text_of(part)))]
        if names:
            return list(dict.fromkeys(names))
    return []


def _innermost(declarator: Node) -> Node:
    """Return the name inside the declarators of C and C++, such as `*name[2]`; any other node as it is."""
    while True:
        deeper = declarator.child_by_field_name("declarator")
        if deeper is None and declarator.type in _BARE_DECLARATORS and declarator.named_children:
            deeper = declarator.named_children[-1]
        if deeper is None:
            return declarator
        declarator = deeper
