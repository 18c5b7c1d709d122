"""The joined parse: checks that the document with its completion has no more errors than without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from tree_sitter import Node, Tree

from completion.errors import ParseLimitError
from completion.grammar.parsed_documents import ParsedDocument, load_documents
from completion.grammar.python_check import python_passes
from completion.syntax.brackets import goes_on
from completion.syntax.parsing import Parsing
from completion.syntax.table import row_of
from completion.syntax.trees import ancestors, errors_of

MAX_JOINED_PARSES = 8
"""Maximum number of cuts of one finished completion that are parsed in the document."""
_MAX_GROWING_PARSES = 2  # the same after one token of an unfinished completion; a later one tries again
_GROWTH_BYTES = 16  # growth of a line until the document is parsed again
_KEPT_CHECKS = 4  # of requests, each of which asks several questions


@dataclass(slots=True)
class _Joined:
    """A parsed document with a completion.

    Attributes:
        errors: tree-sitter's ERROR and MISSING nodes.
        is_sound: Whether there is no error, not even one without a node, such as Go's missing line end.
        passes: Verdict of the language's own parser; None until it is needed.
    """

    middle: bytes
    replaced: int
    text: bytes
    tree: Tree
    errors: list[Node]
    is_sound: bool
    passes: bool | None = None


class JoinedCheck:
    """Parses prefix + middle + suffix and compares its errors with those of the document."""

    def __init__(self, document: ParsedDocument, start: int, end: int, *, has_compiler: bool = False) -> None:
        """Prepare the check without parsing.

        Args:
            document: The document without the completion.
            start: Offset in bytes where the completion begins.
            end: Offset of the cursor in bytes; the healed run is between `start` and `end`.
            has_compiler: Whether Python's own compiler is asked, too.
        """
        self._document, self._start, self._end, self._has_compiler = document, start, end, has_compiler
        self._last: _Joined | None = None

    @cached_property
    def errors_before(self) -> int:
        """Number of errors in the document without the completion.

        Before code on the cursor's line, the word at the cursor may be an error that the completion mends, such as `i`
        in `A i => b`. So there are none if the document is sound without that word.
        """
        errors = len(errors_of(self._document.tree))
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
        return any(each.is_error for each in ancestors(node))

    def sound(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle` in place of `replaced` bytes after the cursor."""
        return self._join(middle, replaced).is_sound and self._passes_joined(middle, replaced)

    def mends(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no error with `middle`, fewer than without it, or as many, but elsewhere."""
        joined = self._join(middle, replaced)
        mended = len(joined.errors) < self.errors_before or (
            len(joined.errors) == self.errors_before and not self._breaks(joined) and self._is_clean(joined)
        )
        return mended and self._passes_joined(middle, replaced)

    def adds_none(self, middle: bytes, replaced: int = 0) -> bool:
        """Return whether the document has no more errors with `middle` than without it."""
        joined = self._join(middle, replaced)
        added = self._breaks(joined) or len(joined.errors) > self.errors_before
        return not added and self._passes_joined(middle, replaced)

    def _breaks(self, joined: _Joined) -> bool:
        """Return whether the document is sound without the completion and has an error with it."""
        return not joined.is_sound and not self._document.tree.root_node.has_error

    def _is_clean(self, joined: _Joined) -> bool:
        """Return whether no error is in the completion or touches it."""
        end = self._start + len(joined.middle)
        return all(node.start_byte > end or node.end_byte < self._start for node in joined.errors)

    def _join(self, middle: bytes, replaced: int) -> _Joined:
        """Return the document with `middle`; the last result is cached."""
        if self._last is None or self._last.middle != middle or self._last.replaced != replaced:
            text, tree = self._document.parse_with(self._start, self._end + replaced, middle)
            errors = errors_of(tree)
            # what is missing can be the end of the file's last line (after C's `#include`), which compilers do not need
            is_sound = not errors and not (tree.root_node.has_error and text.endswith(b"\n"))
            self._last = _Joined(middle, replaced, text, tree, errors, is_sound)
        return self._last

    def _passes_joined(self, middle: bytes, replaced: int) -> bool:
        """Return the verdict of the language's own parser, if there is one."""
        joined, without = self._join(middle, replaced), (self._document.tree, self._document.text)
        if joined.passes is None:
            end = self._start + len(middle)
            joined.passes = not self._has_compiler or python_passes(joined.tree, joined.text, without, self._start, end)
        return joined.passes


@lru_cache(maxsize=_KEPT_CHECKS)
def _check(language: str, text: bytes, start: int, end: int) -> JoinedCheck:
    return JoinedCheck(load_documents(language).document(text), start, end, has_compiler=row_of(language).indented)


def _ask(
    question: Callable[..., bool], language: str, text: bytes, start: int, end: int, *arguments: bytes | int
) -> bool:
    """Return what a method of `JoinedCheck` returns for a document."""
    return question(_check(language, text, start, end), *arguments)


@dataclass(slots=True)
class JoinedDocument:
    """Runs `JoinedCheck` for one document; after parsing exceeds a bound, every completion passes.

    Attributes:
        parsing: Runs the functions that parse.
        language: LSP identifier of a language with a grammar.
        text: The whole document without the completion.
        start: Offset in bytes where the completion begins.
        end: Offset of the cursor in bytes; the healed run is between `start` and `end`.
        tried: Length of the last unfinished completion that was parsed; far below zero before the first.
        is_beyond_limit: Whether parsing exceeded a bound.
    """

    parsing: Parsing
    language: str
    text: bytes
    start: int
    end: int
    tried: int = -1_000_000
    is_beyond_limit: bool = False

    @property
    def healed_bytes(self) -> int:
        """Length of the healed run."""
        return self.end - self.start

    def passes(self, question: Callable[..., bool], *arguments: bytes | int) -> bool:
        """Return what a method of `JoinedCheck` returns for arguments; True once parsing has exceeded a bound."""
        if not self.is_beyond_limit:
            try:
                return self.parsing(_ask, question, self.language, self.text, self.start, self.end, *arguments)
            except ParseLimitError:
                self.is_beyond_limit = True
        return True

    def first_sound(self, cuts: Iterable[int], middle: bytes, replaced: int = 0) -> int:
        """Return the first of some cuts of `middle` that adds no errors; 0 if none of those that are parsed does."""
        tried = islice(cuts, MAX_JOINED_PARSES)
        return next((cut for cut in tried if self.passes(JoinedCheck.adds_none, middle[:cut], replaced)), 0)

    def growing_cut(self, middle: bytes, known: int, is_joined: Callable[[], bool]) -> int:
        """Return the length of `middle` or its last line end after `known` that adds no errors; else `known`.

        To save time, the document is parsed only the first time, at a new line, and after `_GROWTH_BYTES` more bytes.

        Args:
            middle: The unfinished completion.
            known: Number of its bytes that add none.
            is_joined: Returns whether the document is sound with it and what is missing; called after an error.
        """
        if len(middle) < self.tried + _GROWTH_BYTES and b"\n" not in middle[max(0, self.tried) :]:
            return known
        self.tried = len(middle)
        offsets = [offset for offset in line_ends(middle) if offset > known]
        if not self.passes(JoinedCheck.adds_none, middle) and is_joined():
            return len(middle)
        return self.first_sound(offsets[:_MAX_GROWING_PARSES], middle) or known


def line_ends(middle: bytes) -> list[int]:
    """Return the whole length, then the ends of the earlier lines, the longest first."""
    ends = [match.start() for match in re.finditer(rb"\r?\n", middle)]
    return sorted({len(middle), *ends} - {0}, reverse=True)
