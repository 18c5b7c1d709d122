"""The final joined parse: a completion must not leave the document with more errors than it had."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from functools import cached_property

_MAX_AST_BYTES = 200_000


class JoinedCheck:
    """Parses prefix + middle + suffix and compares."""

    def __init__(
        self, count_errors: Callable[[bytes], int], before: bytes, after: bytes, *, healed: bytes = b""
    ) -> None:
        """Prepare; nothing is parsed until asked.

        Args:
            count_errors: Syntax errors of a text.
            before: Text before the completion.
            after: Text after it.
            healed: The end of the document's prefix that is part of the completion and not of `before`.
        """
        self._count_errors = count_errors
        self._before, self._after, self._healed = before, after, healed

    @cached_property
    def errors_before(self) -> int:
        """Errors of the document as it was."""
        return self._count_errors(self._before + self._healed + self._after)

    def adds_errors(self, middle: bytes) -> bool:
        """Whether the document has more errors with `middle` than it had."""
        return self._count_errors(self._before + middle + self._after) > self.errors_before


class PythonJoinedCheck(JoinedCheck):
    """For Python its own parser is asked as well: it knows more than the grammar."""

    def adds_errors(self, middle: bytes) -> bool:
        """Whether the grammar finds more errors, or Python's parser finds its first one in the completion."""
        return super().adds_errors(middle) or self._breaks_here(middle)

    def _breaks_here(self, middle: bytes) -> bool:
        """An error elsewhere is the document's own: only one on the completion's lines counts."""
        text = self._before + middle + self._after
        if len(text) > _MAX_AST_BYTES:
            return False
        line = error_line(text)
        first = self._before.count(b"\n") + 1
        return line is not None and first <= line <= first + middle.count(b"\n")


def error_line(source: bytes) -> int | None:
    """The line, counted from 1, of the first error that Python's parser finds; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):  # NUL bytes; nesting deeper than the parser's own stack
        return 0
    return None
