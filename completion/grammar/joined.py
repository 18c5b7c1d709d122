"""The joined parse: checks that the document with its completion has no more errors than without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import islice

from tree_sitter import Tree

from completion.errors import ParseLimitError
from completion.grammar.parsed_documents import ParsedDocument, load_documents
from completion.grammar.python_check import python_passes
from completion.syntax.brackets import goes_on
from completion.syntax.parsing import Parsing
from completion.syntax.table import row_of
from completion.syntax.trees import errors_of

MAX_JOINED_PARSES = 8
"""Maximum number of cuts of one finished completion that are parsed in the document."""
_GROWTH_BYTES = 16  # growth of a line until the document is parsed again
_KEPT_CHECKS = 4  # of requests, each of which asks several questions


class Verdict(IntEnum):
    """What a completion does to the errors of its document. Each value includes those below it."""

    ADDS_ERRORS = 0
    ADDS_NONE = 1
    """There are no more errors than without it."""
    MENDS = 2
    """There are fewer errors than without it, or as many, but elsewhere."""
    SOUND = 3
    """There is no error, not even one without a node, such as Go's missing line end."""


@dataclass(frozen=True)
class JoinedCheck:
    """Parses prefix + middle + suffix and compares its errors with those of the document.

    A completion begins at `start`, and replaces the healed run up to the cursor at `end`, in bytes. Python's own
    compiler is asked, too, if it `has_compiler`.
    """

    document: ParsedDocument
    start: int
    end: int
    has_compiler: bool = False

    @cached_property
    def errors_before(self) -> int:
        """Number of errors in the document without the completion.

        Before code on the cursor's line, the word at the cursor may be an error that the completion mends, such as `i`
        in `A i => b`. So there are none if the document is sound without that word.
        """
        errors = len(errors_of(self.document.tree))
        if errors and self.start < self.end and self._goes_on():
            _, tree = self.document.parse_with(self.start, self.end, b"")
            return errors if tree.root_node.has_error else 0
        return errors

    def _goes_on(self) -> bool:
        """Return whether code follows the cursor on its line."""
        return goes_on(self.document.text[self.end :].partition(b"\n")[0].decode("utf-8", "replace"))

    def verdict(self, middle: bytes, replaced: int = 0) -> Verdict:
        """Return the verdict on the document with `middle` in place of `replaced` bytes after the cursor."""
        text, tree = self.document.parse_with(self.start, self.end + replaced, middle)
        found, end = self._by_grammar(text, tree, len(middle)), self.start + len(middle)
        without = self.document.tree, self.document.text
        if found and self.has_compiler and not python_passes(tree, text, without, self.start, end):
            return Verdict.ADDS_ERRORS
        return found

    def _by_grammar(self, text: bytes, tree: Tree, length: int) -> Verdict:
        """Return tree-sitter's verdict on a document with a completion of so many bytes."""
        errors, end = errors_of(tree), self.start + length
        # what is missing can be the end of the file's last line (after C's `#include`), which compilers do not need
        if not errors and not (tree.root_node.has_error and text.endswith(b"\n")):
            return Verdict.SOUND
        if not self.document.tree.root_node.has_error or len(errors) > self.errors_before:
            return Verdict.ADDS_ERRORS
        is_elsewhere = all(node.start_byte > end or node.end_byte < self.start for node in errors)
        return Verdict.MENDS if is_elsewhere or len(errors) < self.errors_before else Verdict.ADDS_NONE


@lru_cache(maxsize=_KEPT_CHECKS)
def _check(language: str, text: bytes, start: int, end: int) -> JoinedCheck:
    return JoinedCheck(load_documents(language).document(text), start, end, has_compiler=row_of(language).indented)


def _verdict(language: str, text: bytes, start: int, end: int, middle: bytes, replaced: int) -> Verdict:
    return _check(language, text, start, end).verdict(middle, replaced)


@dataclass(slots=True)
class JoinedDocument:
    """Runs `JoinedCheck` for one document; after parsing exceeds a bound, every completion is sound.

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
    _last: tuple[bytes, int, Verdict] | None = None

    @property
    def healed_bytes(self) -> int:
        """Length of the healed run."""
        return self.end - self.start

    def verdict(self, middle: bytes, replaced: int = 0) -> Verdict:
        """Return the verdict on the document with a completion; the last one is cached."""
        if not self.is_beyond_limit and (self._last is None or self._last[:2] != (middle, replaced)):
            try:
                found = self.parsing(_verdict, self.language, self.text, self.start, self.end, middle, replaced)
                self._last = middle, replaced, found
            except ParseLimitError:
                self.is_beyond_limit = True
        return Verdict.SOUND if self.is_beyond_limit or self._last is None else self._last[2]

    def first_sound(self, cuts: Iterable[int], middle: bytes, replaced: int = 0) -> int:
        """Return the first of some cuts of `middle` that adds no errors; 0 if none of those that are parsed does."""
        tried = islice(cuts, MAX_JOINED_PARSES)
        return next((cut for cut in tried if self.verdict(middle[:cut], replaced)), 0)

    def growing_cut(self, middle: bytes, known: int, is_joined: Callable[[], bool]) -> int:
        """Return the length of `middle`, or its last line end after `known`, if that adds no errors; else `known`.

        To save time, the document is parsed only the first time, at a new line, and after `_GROWTH_BYTES` more bytes.
        If that finds an error, `is_joined` says whether the document is sound with the text and what may be missing.
        """
        if len(middle) < self.tried + _GROWTH_BYTES and b"\n" not in middle[max(0, self.tried) :]:
            return known
        self.tried = len(middle)
        if self.verdict(middle) or is_joined():
            return max(known, len(middle))
        return self.first_sound((end for end in line_ends(middle)[1:2] if end > known), middle) or known


def line_ends(middle: bytes) -> list[int]:
    """Return the whole length, then the ends of the earlier lines, the longest first."""
    ends = [match.start() for match in re.finditer(rb"\r?\n", middle)]
    return sorted({len(middle), *ends} - {0}, reverse=True)
