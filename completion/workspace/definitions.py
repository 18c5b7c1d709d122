"""Finds a file's definitions and imports by its syntax. Needs no build, and accepts broken code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node, Query, QueryCursor

from completion.language_ids import language_of, rows
from completion.syntax.languages import tags_query
from completion.syntax.table import row_of
from completion.syntax.trees import parse
from completion.workspace.outlines import outline, text_of, whole_lines

MAX_OUTLINE_CHARACTERS = 400
"""Maximum number of characters in a definition's outline; a longer one is cut after a whole line."""

_CONTAINERS, _DEFINITIONS, _WRAPPERS, _IMPORTS = (
    frozenset(rows()["words"][kind].split()) for kind in ("containers", "definitions", "wrappers", "imports")
)
_PATTERNS = frozenset({"pattern_list", "tuple_pattern", "list_pattern"})
_BARE_DECLARATORS = frozenset({"parenthesized_declarator", "reference_declarator"})  # without a named field
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_QUOTED_PATH = re.compile(r"""["'`<]([^"'`<>\s]+)["'`>]""")
_PACKAGES = re.compile(r"\b\w+\.(?=\w)")  # in a dotted name, only the last part names the file
_TAG, _MODULE = "definition.", "definition.module"  # names of captures in tags queries
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
    query = tags_query(language)
    for node, defined in _walk(tree.root_node) if query is None else _tagged(query, tree.root_node):
        names = [name for name in defined if len(outlines.get(name, "")) <= MAX_OUTLINE_CHARACTERS]
        if names and (query is not None or "require(" not in text_of(node)[:MAX_OUTLINE_CHARACTERS]):
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


def _tagged(query: Query, root: Node) -> Iterator[tuple[Node, list[str]]]:
    """Yield what a grammar's own query calls a definition, with its name, unless it is within another one.

    What is within a module counts, and not the module. Of a qualified name, only the last part counts.
    """
    found = list[tuple[Node, str, list[str]]]()
    for _, captures in QueryCursor(query).matches(root):
        kind = next((each for each in captures if each.startswith(_TAG)), "")
        if kind and "name" in captures:
            found.append((captures[kind][0], kind, _WORD.findall(text_of(captures["name"][0]))[-1:]))
    end = 0
    for node, kind, names in sorted(found, key=lambda each: (each[0].start_byte, -each[0].end_byte)):
        if node.start_byte >= end and kind != _MODULE:
            end = node.end_byte
            yield node, names


def _walk(node: Node, depth: int = 0) -> Iterator[tuple[Node, list[str]]]:
    for child in node.named_children if depth < _MAX_CONTAINERS else ():
        if child.type in _DEFINITIONS:
            yield child, _names(child)
        elif child.type in _WRAPPERS:
            yield from ((inner, _names(inner)) for inner in child.named_children if inner.type in _DEFINITIONS)
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
