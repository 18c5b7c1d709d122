"""What the parse tree says about a change of lines: errors, kinds of nodes, scopes, names without a definition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from pathlib import PurePath

from tree_sitter import Node, Tree

from completion.edits import NextEditRequest, undone
from completion.grammar.parsed_documents import ParsedDocument, load_documents
from completion.next_edit.rewrites import Candidate, RewriteKind
from completion.syntax.brackets import Lexer
from completion.syntax.languages import parsed_row
from completion.syntax.trees import ancestors, error_count

_MAX_OCCURRENCES = 64  # of a name that are looked at for its definition
_WORD = re.compile(r"[^\W\d]\w*")
_FUNCTION_WORDS = ("function", "method", "closure", "lambda")
_SCOPE_WORDS = (*_FUNCTION_WORDS, "class", "impl")
_USING_PARENTS = ("call", "invocation", "argument", "creation", "struct_expr", "jsx_", "scoped_", "nested_", "generic_")
_IMPORTING = ("import", "use_", "scoped_use", "include", "export_specifier")
_DEFINING_FIELDS = ("name", "left", "pattern", "declarator", "alias", "parameter")
_DEFINING_PARENTS = ("parameter", "import", "use_", "dotted_name", "scoped_use")


@dataclass(frozen=True, slots=True)
class ChangeSyntax:
    """Facts about a change.

    Attributes:
        breaks: Whether the document has more syntax errors after it.
        same_kind: Whether the changed node has the type that it has where the change was taught.
        same_scope: Whether both are in the same function or class.
        literal: Whether it is in a comment or string.
        orphan: Whether it takes away a name that was defined in the document before the user's edits and is not now,
            and leaves no such name in its lines, except in comments and strings.
    """

    breaks: bool = False
    same_kind: bool = True
    same_scope: bool = False
    literal: bool = False
    orphan: bool = False


def syntax_of_changes(request: NextEditRequest, changes: Sequence[Candidate]) -> list[ChangeSyntax]:
    """Return the facts about each change, made alone; the defaults for a language without a grammar."""
    lines, language, elsewhere = request.lines, request.language, request.elsewhere
    if parsed_row(language) is None:
        return [ChangeSyntax() for _ in changes]
    before = undone(lines, request.edits)
    document, earlier = _Parsed.of(lines, language), _Parsed.of(before, language)
    gone = _words(set(before) - set(lines))
    names = {name for change in changes for name in change.names | (_words(change.new) & gone)}
    orphans = {name for name in names if _lost(earlier.definitions(name), document.definitions(name))}
    if not elsewhere:
        return [_facts(document, change, orphans, document) for change in changes]
    other, path = _Parsed.of(elsewhere, language), PurePath(request.path)
    near = {path.stem, path.parent.name}
    given = {name for name in orphans if other.has_from(earlier, name, near)}
    unused = orphans & earlier.imported() & other.imported()

    def far(change: Candidate) -> set[str]:
        """Return the names of a change: of a form only what it imports no more, in its uses and not in the import."""
        if RewriteKind.HOLES not in change.kinds:
            return given
        return set() if _is_imported(other.node(change.line, change.column)) else unused

    return [_facts(other, change, far(change), document) for change in changes]


def _words(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}


def _facts(document: _Parsed, change: Candidate, orphans: set[str], edited: _Parsed) -> ChangeSyntax:
    here, there = document.node(change.line, change.column), edited.node(*change.taught_at)
    made = document.after(change)
    changed = [*document.lines[: change.line], *change.new]
    left = {
        match.group()
        for number, line in enumerate(change.new, change.line)
        for match in _WORD.finditer(line)
        if match.group() in orphans and not document.in_literal(changed, number, match.start())
    }
    literal = document.in_literal(document.lines, change.line, change.column)
    return ChangeSyntax(
        breaks=error_count(made) > document.errors,
        same_kind=here.type == there.type,
        same_scope=document is edited and _scope(here) == _scope(there),
        literal=literal,
        orphan=not orphans.isdisjoint(change.names) and not left and not literal,
    )


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A document and its tree.

    Attributes:
        starts: Offset of each line in the document, in bytes, and of the line after the last one.
        lexer: Reads the document once, up to each position.
    """

    lines: Sequence[str]
    document: ParsedDocument
    starts: list[int]
    errors: int
    lexer: Lexer

    @classmethod
    def of(cls, lines: Sequence[str], language: str) -> _Parsed:
        encoded = [line.encode("utf-8", "replace") for line in lines]
        document = load_documents(language).document(b"\n".join(encoded))
        starts = list(accumulate((len(line) + 1 for line in encoded), initial=0))
        return cls(lines, document, starts, error_count(document.tree), Lexer(language))

    def after(self, change: Candidate) -> Tree:
        """Return the tree after a change; only what it touches is parsed again."""
        new = "\n".join(change.new).encode("utf-8", "replace")
        if change.end < len(self.lines) and change.new:  # whole lines with their ends
            new += b"\n"
        end = min(self.starts[change.end], len(self.document.text))
        return self.document.parse_with(self.starts[change.line], end, new)[1]

    def node(self, line: int, column: int) -> Node:
        """Return the innermost node of the character at a position."""
        own = self.lines[line] if line < len(self.lines) else ""
        at, root = len(own[:column].encode("utf-8", "replace")), self.document.tree.root_node
        return root.descendant_for_point_range((line, at), (line, at + 1)) or root

    def in_literal(self, lines: Sequence[str], line: int, column: int) -> bool:
        """Return whether the character at a position of some lines is in a comment or string, not in code within it."""
        above = "".join(f"{each}\n" for each in lines[:line])
        own = lines[line] if line < len(lines) else ""
        return any(self.lexer.scan(above + own[:end]).literal for end in (column, column + 1))

    def defining(self, name: str) -> list[Node]:
        """Return the nodes of what has the name as definitions, imports and parameters have it."""
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        having = ((number, line) for number, line in enumerate(self.lines) if name in line)
        places = ((number, match.start()) for number, line in having for match in pattern.finditer(line))
        nodes = [self.node(*place) for place, _ in zip(places, range(_MAX_OCCURRENCES), strict=False)]
        return [node.parent for node in nodes if node.parent is not None and _defines(node)]

    def own(self, name: str) -> list[Node]:
        """Return the nodes of the definitions that are neither imports nor uses."""
        return [each for each in self.defining(name) if not (_is_imported(each) or _is_use(each))]

    def imported(self) -> set[str]:
        """Return the words of the imports."""
        imports = (each for each in self.document.tree.root_node.children if _is_imported(each))
        return _words(each.text.decode() for each in imports if each.text is not None)

    def has_from(self, other: _Parsed, name: str, near: set[str]) -> bool:
        """Return whether a name is the one that another document defines, as far as both texts tell.

        It is not local there, and has no other definition here. The class that it is of is named here, or it is of none
        and imported here, or one of the words `near` to the other document is; then nothing else may qualify it.
        """
        given = [each for each in other.own(name) if not _is_local(each)]
        here = self.own(name)
        if not given or here:
            return bool(given) and all(_may_be_the_same(each, given) for each in here)
        imported, words, owners = self.imported(), _words(self.lines), set[str]().union(*map(_owners, given))
        if owners or name in imported:
            return not owners or not owners.isdisjoint(words)
        qualified = re.compile(rf"(\w*)(?:\.|->|::){re.escape(name)}\b")
        qualifiers = {found for line in self.lines for found in qualified.findall(line)}
        return qualifiers <= imported and not near.isdisjoint(words)

    def definitions(self, name: str) -> tuple[set[str], set[str]]:
        """Return the kinds of nodes that define a name, and of those within or qualified by another one of the name."""
        parents = self.defining(name)
        own = name.encode()
        inner = [
            each
            for each in parents
            if [child.text for child in each.named_children].count(own) > 1  # a constructor, qualified by its class
            or any(up in parents for up in ancestors(each.parent))
        ]
        return {each.type for each in parents if each not in inner}, {each.type for each in inner}


def _lost(before: tuple[set[str], set[str]], now: tuple[set[str], set[str]]) -> bool:
    """Return whether a name lost its definition: nothing defines it now but what was only a part of it before."""
    outer, inner = before
    return bool(outer) and set.union(*now) <= inner - outer


def _defines(node: Node) -> bool:
    parent = node.parent
    if parent is None or "identifier" not in node.type:
        return False
    if any(word in parent.type for word in _DEFINING_PARENTS):
        return True
    return any(parent.child_by_field_name(name) == node for name in _DEFINING_FIELDS)


def _is_use(node: Node) -> bool:
    """Return whether a node that has a name in the field of a definition only uses it: a call of a method."""
    if node.type == "qualified_identifier":
        return not _defines(node)
    return any(word in node.type for word in _USING_PARENTS) and not _is_imported(node)


def _is_imported(node: Node) -> bool:
    return any(word in each.type for each in ancestors(node) for word in _IMPORTING)


def _may_be_the_same(definition: Node, given: Sequence[Node]) -> bool:
    """Return whether a definition and those of another document may be of one function: some are without its body."""
    around = [[each.type for each in islice(ancestors(node), 4)] for node in (definition, *given)]
    is_declared = all("function_declarator" in types[:2] for types in around)
    return is_declared and not (
        "function_definition" in around[0] and any("function_definition" in types for types in around[1:])
    )


def _owners(definition: Node) -> set[str]:
    """Return the names of the classes around a definition, or those that qualify it."""
    fields = [(definition, ("receiver", "scope"))]
    fields += [(each, ("name", "type")) for each in ancestors(definition.parent) if each.child_by_field_name("body")]
    found = (node.child_by_field_name(name) for node, names in fields for name in names)
    return _words(each.text.decode() for each in found if each is not None and each.text is not None)


def _is_local(definition: Node) -> bool:
    """Return whether a definition is a parameter, or within the body of a function."""
    around = list(ancestors(definition))
    return any("parameter" in each.type for each in around) or any(
        outer.child_by_field_name("body") == inner and any(word in outer.type for word in _FUNCTION_WORDS)
        for inner, outer in pairwise(around)
    )


def _scope(node: Node) -> int:
    """Return the start of the innermost function or class around a node, -1 if there is none."""
    for each in ancestors(node.parent):
        if any(word in each.type for word in _SCOPE_WORDS) and each.child_count > 1:
            return each.start_byte
    return -1
