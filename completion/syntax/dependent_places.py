"""Places that depend on an edit by the grammar: lists of the same name, and what stands before a name or function.

Where a definition got a parameter, its calls need an argument, and the other way round. Where a word was added before a
definition (`async`), one may be needed before its calls (`await`), and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node, Point

from completion.edits import LineEdit
from completion.syntax.edited_nodes import LineChange, Parsed
from completion.syntax.trees import ancestors

MAX_PLACES = 8
"""Maximum number of places that depend on one edit: a name with more of them has more than one meaning."""
_RECEIVERS = frozenset({"self", "cls", "this"})  # parameters that calls of a method do not pass
_CONSTRUCTORS = frozenset({"__init__", "constructor", "new"})  # names that calls replace by that of the class
_CLASSES = ("class", "impl", "struct")
_FUNCTIONS = ("function", "method", "arrow", "lambda", "closure")
_OPTIONAL = ("default", "optional", "variadic", "splat", "spread", "rest")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class _List:
    """A list in brackets with the name before it.

    Attributes:
        defines: Whether it has the parameters of a definition.
        receiver: Number of elements that calls do not pass.
        owner: The definition or call.
    """

    head: str
    defines: bool
    receiver: int
    node: Node
    owner: Node
    elements: tuple[Node, ...]

    def texts(self) -> list[str]:
        return [_text(node) for node in self.elements]


def dependent_places(
    lines: Sequence[str], edits: Sequence[LineEdit], language: str, gap: str
) -> list[tuple[int, LineChange]]:
    """Return what depends on the edits, each change with the index of its edit; nothing for a language without grammar.

    Args:
        lines: Lines of the document after the edits.
        edits: The edits, the latest last.
        language: LSP language identifier.
        gap: What stands in the changed lines for text that is to be written.
    """
    document = Parsed.of(lines, language)
    lists, found = list[_List](), list[tuple[int, LineChange]]()
    for index, edit in enumerate(edits if document else ()):
        if not edit.new or document is None:
            continue
        now = range(edit.line, edit.line + len(edit.new))
        earlier = document.after(LineChange(now.start, len(now), edit.old, 0, (0, 0), frozenset()))
        before = list(_lists(earlier.root_node, range(edit.line, edit.line + max(1, len(edit.old)))))
        changes = list(_to_mark(lines, edit, document.tree.root_node))
        for each in _lists(document.tree.root_node, now):
            same = [old for old in before if (old.head, old.defines) == (each.head, each.defines)]
            got = _got(each, same)
            has_keyword = each.defines and any(_keywords(each.owner) > _keywords(old.owner) for old in same)
            if got is None and not has_keyword:
                continue
            lists = lists or list(_lists(document.tree.root_node, range(len(lines))))
            others = [other for other in lists if _is_other_side(other, each, now)]
            changes += _extended(lines, each, got, others, gap) if got is not None else ()
            changes += [_prefixed(lines, other.owner, each.node.start_point, gap) for other in others if has_keyword]
        found += [(index, change) for change in changes if len(changes) <= MAX_PLACES]
    return found


def _is_other_side(other: _List, edited: _List, rows: range) -> bool:
    """Return whether a list is of the calls of an edited definition, or of the definition of an edited call."""
    return other.head == edited.head and other.defines != edited.defines and other.node.start_point.row not in rows


def _got(grown: _List, before: Sequence[_List]) -> int | None:
    """Return the number of the element that calls or definitions need because a list got it; None if there is none."""
    texts = grown.texts()
    for at in range(len(texts)):
        if any(texts[:at] + texts[at + 1 :] == old.texts() for old in before):
            return None if grown.defines and _is_optional(grown.elements[at]) else at
    return None


def _extended(lines: Sequence[str], grown: _List, at: int, others: Sequence[_List], gap: str) -> Iterator[LineChange]:
    """Yield the changes of the lists that have as many elements as one had before it got the one with the number `at`.

    The name of a parameter stands for the argument where the function of the call has such a name.
    """
    name = _name(grown.elements[at]) if grown.defines else ""
    for other in others:
        if len(other.elements) - other.receiver == len(grown.elements) - grown.receiver - 1:
            function = next((each for each in ancestors(other.owner) if _is_function(each)), None)
            is_known = function is not None and name in _WORD.findall(_text(function))
            yield _with_element(lines, other, at + other.receiver - grown.receiver, name if is_known else gap, grown)


def _is_optional(parameter: Node) -> bool:
    marks = {child.type for child in parameter.children}
    return any(word in parameter.type for word in _OPTIONAL) or not marks.isdisjoint({"=", "?", "..."})


def _name(parameter: Node) -> str:
    fields = (parameter.child_by_field_name(name) for name in ("declarator", "name", "pattern"))
    named = next((each for each in fields if each is not None), parameter)
    return next(iter(_WORD.findall(_text(named))), "")


def _with_element(lines: Sequence[str], other: _List, at: int, text: str, grown: _List) -> LineChange:
    """Return the change that puts an element into a list: on a line of its own if the one before it has one."""
    after = other.elements[at - 1] if at else None
    row, column = _place(lines, (after or other.node.children[0]).end_point)
    line, taught_at = lines[row], tuple(grown.node.start_point)
    indent = line[: len(line) - len(line.lstrip())]
    if after is None:
        new = [line[:column] + text + (", " if other.elements else "") + line[column:]]
    elif after.start_point.row > other.node.start_point.row and line.strip() == _text(after) + line[column:].strip():
        new = [line[:column] + ",", indent + text + line[column:]]
    else:
        new = [line[:column] + ", " + text + line[column:]]
    return LineChange(row, 1, tuple(new), column, (taught_at[0], taught_at[1]), frozenset())


def _to_mark(lines: Sequence[str], edit: LineEdit, root: Node) -> Iterator[LineChange]:
    """Yield the changes that give a function the keyword with which those begin that have a word added in it."""
    came = {word for line in edit.new for word in _WORD.findall(line)}
    came -= {word for line in edit.old for word in _WORD.findall(line)}
    functions: list[tuple[Node, frozenset[str], frozenset[str]]] = []
    for number, line in enumerate(edit.new, edit.line):
        for word in (each for each in _WORD.finditer(line) if each.group() in came):
            at = (number, len(line[: word.start()].encode("utf-8", "replace")))
            node = root.descendant_for_point_range(at, at)
            own = next((each for each in ancestors(node) if _is_function(each)), None)
            if node is None or node.is_named or own is None or own.start_point.row >= edit.line:
                continue
            came.discard(word.group())
            functions = functions or [
                (each, frozenset(_WORD.findall(_text(each))), _keywords(each))
                for each in _nodes(root, range(len(lines)))
                if _is_function(each)
            ]
            common = [marks for each, words, marks in functions if each != own and word.group() in words]
            others = [marks for each, words, marks in functions if each != own and word.group() not in words]
            own_marks = frozenset.intersection(*common).difference(_keywords(own), *others) if common else frozenset()
            yield from (_prefixed(lines, own, at, mark) for mark in own_marks if len(own_marks) == 1)


def _keywords(node: Node) -> frozenset[str]:
    """Return the keywords that are parts of a definition or function itself."""
    return frozenset(each.type for each in node.children if not each.is_named and _WORD.fullmatch(each.type))


def _prefixed(lines: Sequence[str], node: Node, taught_at: Sequence[int], gap: str) -> LineChange:
    """Return the change that puts a word before a call or function, after its modifiers."""
    first = next((each for each in node.children if not re.search("modifier|decorator|annotation", each.type)), node)
    row, column = _place(lines, first.start_point)
    new = lines[row][:column] + gap + " " + lines[row][column:]
    return LineChange(row, 1, (new,), column, (taught_at[0], taught_at[1]), frozenset())


def _is_function(node: Node) -> bool:
    return any(word in node.type for word in _FUNCTIONS) and node.child_by_field_name("body") is not None


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _place(lines: Sequence[str], point: Point) -> tuple[int, int]:
    """Return line and column of a point, whose column is in bytes."""
    row, column = point
    return row, len(lines[row].encode("utf-8", "replace")[:column].decode("utf-8", "replace"))


def _nodes(root: Node, rows: range) -> Iterator[Node]:
    """Yield the nodes that have a part in some lines, in their order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.end_point.row >= rows.start and node.start_point.row < rows.stop:
            waiting += reversed(node.children)
            yield node


def _lists(root: Node, rows: range) -> Iterator[_List]:
    return (found for node in _nodes(root, rows) if (found := _list(node)))


def _list(node: Node) -> _List | None:
    """Return the list that a node is, if it is one after a name."""
    head, owner, is_definition = node.prev_named_sibling, node.parent, "param" in node.type
    is_list = (is_definition or "arg" in node.type) and [child.type for child in node.children[:1]] == ["("]
    if not is_list or head is None or owner is None:
        return None
    if "type" in head.type and head.children and head.prev_named_sibling is not None:  # type parameters
        head = head.prev_named_sibling
    while head.children and head.end_byte == head.children[-1].end_byte:
        head = head.children[-1]
    name = _text(head)
    if "identifier" not in head.type:
        return None
    if name in _CONSTRUCTORS:
        name = _class_around(node) if is_definition else _text(head.prev_named_sibling or head)
    while owner.type.endswith("declarator") and owner.parent is not None:
        owner = owner.parent
    elements = tuple(child for child in node.named_children if "comment" not in child.type)
    first = _text(elements[0]).strip("&*").removeprefix("mut ").partition(":")[0].strip() if elements else ""
    return _List(name, is_definition, int(is_definition and first in _RECEIVERS), node, owner, elements)


def _class_around(node: Node) -> str:
    for each in ancestors(node):
        name = each.child_by_field_name("name") or each.child_by_field_name("type")
        if name is not None and any(word in each.type for word in _CLASSES):
            return _text(name)
    return ""
