"""Text that llama.vim shows of an answer: the part that does not repeat the document.

Source: autoload/llama.vim of ggml-org/llama.vim, January 2026.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from benchmarks.typing.llama_context import LocalContext


def presentable(content: str, context: LocalContext, lines: Sequence[str], row: int) -> str:
    """Return the shown text of an answer, "" if it repeats the document; `s:fim_render` of the plugin.

    Args:
        content: Text from the server.
        context: Context of the cursor where the answer is shown.
        lines: Lines of the document.
        row: Line of the cursor.
    """
    shown = content.rstrip("\n").split("\n")
    line, below = lines[row], list(lines[row + 1 :])
    if not line.strip(" \t"):  # the answer begins at the start of the line and has its own indentation
        lead = len(shown[0]) - len(shown[0].lstrip(" \t"))
        if lead < len(line):
            return ""
        shown[0] = shown[0][len(line) :]
    repeats_below = len(shown) > 1 and not shown[0] and shown[1:] == below[: len(shown) - 1]
    if repeats_below or shown == [context.line_suffix]:
        return ""
    next_lines = list(itertools.dropwhile(lambda text: not text.strip(), below))
    if next_lines and context.middle + shown[0] == next_lines[0] and _goes_on(shown[1:], next_lines[1:]):
        return ""
    return "\n".join(shown)


def without_blank_end(content: str) -> str:
    """Return the text without a blank last line, as the server does when it does not stream."""
    head, newline, last = content.rpartition("\n")
    return head if newline and not last.strip() else content


def _goes_on(shown: Sequence[str], below: Sequence[str]) -> bool:
    """Return whether the lines after a repeated first line repeat the document as well."""
    if not shown:
        return True
    if len(shown) == 1:
        return bool(below) and below[0].startswith(shown[0])
    return list(shown) == list(below[: len(shown)])
