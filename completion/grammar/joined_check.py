"""The joined parse: checks that the document with its completion has no more errors than without it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tree_sitter import Node, Tree

from completion.grammar.newer_syntax import without_newer_syntax
from completion.grammar.parsed_documents import ParsedDocument, load_documents
from completion.syntax.brackets import goes_on
from completion.syntax.languages import LANGUAGES
from completion.syntax.trees import error_count

_MAX_COMPILED_BYTES = 200_000  # of the part around the completion that Python's compiler reads
_KEPT_CHECKS = 4  # of requests, each of which asks several questions
_FUNCTION = "function_definition"
_BLOCKS = frozenset({_FUNCTION, "class_definition", "decorated_definition"})


@dataclass(slots=True)
class _Joined:
    """A parsed document with a completion.

    Attributes:
        errors: Number of tree-sitter's ERROR and MISSING nodes.
        is_sound: Whether there is no error, not even one without a node, such as Go's missing line end.
        passes: Verdict of the language's own parser; None until it is needed.
    """

    middle: bytes
    replaced: int
    text: bytes
    tree: Tree
    errors: int
    is_sound: bool
    passes: bool | None = None


class JoinedCheck:
    """Parses prefix + middle + suffix and compares its errors with those of the document."""

    def __init__(self, document: ParsedDocument, start: int, end: int) -> None:
        """Prepare the check without parsing.

        Args:
            document: The document without the completion.
            start: Offset in bytes where the completion begins.
            end: Offset of the cursor in bytes; the healed run is between `start` and `end`.
        """
        self._document, self._start, self._end = document, start, end
        self._last: _Joined | None = None

    @cached_property
    def errors_before(self) -> int:
        """Number of errors in the document without the completion.

        Before code on the cursor's line, the word at the cursor may be an error that the completion mends, such as `i`
        in `A i => b`. So there are none if the document is sound without that word.
        """
        errors = error_count(self._document.tree)
        if errors and self._start < self._end and self._goes_on():
            _, tree = self._document.parse_with(self._start, self._end, b"")
            return errors if tree.root_node.has_error else 0
        return errors

    def _goes_on(self) -> bool:
        """Return whether code follows the cursor on its line."""
        return goes_on(self._document.text[self._end :].partition(b"\n")[0].decode("utf-8", "replace"))

    def blind(self) -> bool:
        """Return whether the cursor is in or after a part of the document that tree-sitter does not understand.

        C's grammar, for example, has no `#ifdef` in a list. Any text there changes the number of errors.
        """
        node = self._document.tree.root_node.descendant_for_byte_range(max(0, self._end - 1), self._end)
        while node is not None and not node.is_error:
            node = node.parent
        return node is not None

    def sound(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle` in place of `replaced` bytes after the cursor."""
        return self._join(middle, replaced).is_sound and self._passes_joined(middle, replaced)

    def mends(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle`, fewer than without it, or as many, but elsewhere."""
        joined = self._join(middle, replaced)
        mended = joined.errors < self.errors_before or (
            joined.errors == self.errors_before and not self._breaks(joined) and self._is_clean(joined)
        )
        return mended and self._passes_joined(middle, replaced)

    def adds_errors(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has more errors with `middle` than without it."""
        joined = self._join(middle, replaced)
        added = self._breaks(joined) or (joined.errors > 0 and joined.errors > self.errors_before)
        return added or not self._passes_joined(middle, replaced)

    def _breaks(self, joined: _Joined) -> bool:
        """Return whether the document is sound without the completion and has an error with it."""
        return not joined.is_sound and not self._document.tree.root_node.has_error

    def _is_clean(self, joined: _Joined) -> bool:
        """Return whether no error is in the completion or touches it."""
        start, end = self._start, self._start + len(joined.middle)
        waiting = [joined.tree.root_node] if joined.errors else []
        while waiting:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                return False
            if node.has_error:
                waiting += (each for each in node.children if each.start_byte <= end and each.end_byte >= start)
        return True

    def _join(self, middle: bytes, replaced: int) -> _Joined:
        """Return the document with `middle`; the last result is cached."""
        if self._last is None or self._last.middle != middle or self._last.replaced != replaced:
            text, tree = self._document.parse_with(self._start, self._end + replaced, middle)
            errors = error_count(tree)
            # what is missing can be the end of the file's last line (after C's `#include`), which compilers do not need
            is_sound = errors == 0 and not (tree.root_node.has_error and text.endswith(b"\n"))
            self._last = _Joined(middle, replaced, text, tree, errors, is_sound)
        return self._last

    def _passes_joined(self, middle: bytes, replaced: int) -> bool:
        joined = self._join(middle, replaced)
        if joined.passes is None:
            joined.passes = self._passes(joined.tree, joined.text, middle)
        return joined.passes

    def _passes(self, tree: Tree, text: bytes, middle: bytes) -> bool:  # noqa: ARG002  for a language's own parser
        """Return the verdict of the language's own parser on the completion."""
        return True


class PythonJoinedCheck(JoinedCheck):
    """The joined check for Python, which also uses Python's own compiler: it finds more errors than the grammar."""

    def _passes(self, tree: Tree, text: bytes, middle: bytes) -> bool:
        """Return whether Python's compiler finds no error before the first one of the document without the completion.

        It names one error only, and may name it on a later line than the one that causes it.
        """
        start, end = self._start, self._start + len(middle)
        first, last = _block_around(tree.root_node, start, end)
        first = text.rfind(b"\n", 0, first) + 1
        if last - first > _MAX_COMPILED_BYTES:
            return True
        line = _first_error(tree, text, first, last)
        begin = text.count(b"\n", first, start) + 1
        if line is None or line < begin:
            return True
        if line <= begin + middle.count(b"\n"):
            return False
        without, grown = self._document, len(text) - len(self._document.text)
        own = _first_error(without.tree, without.text, first, last - grown)
        added = text.count(b"\n", first, last) - without.text.count(b"\n", first, last - grown)
        return own is not None and (own < begin or line >= own + added)


@lru_cache(maxsize=_KEPT_CHECKS)
def _check(language: str, text: bytes, start: int, end: int) -> JoinedCheck:
    check = PythonJoinedCheck if LANGUAGES[language].indented else JoinedCheck
    return check(load_documents(language).document(text), start, end)


def ask(
    question: Callable[..., bool], language: str, text: bytes, start: int, end: int, *arguments: bytes | int
) -> bool:
    """Return what a method of `JoinedCheck` returns for a document."""
    return question(_check(language, text, start, end), *arguments)


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
        line = error_line(wrapper + without_newer_syntax(tree, text, first, last))
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
