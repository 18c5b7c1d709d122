"""The names that the editor's own language servers know at the cursor, as a cost of tokens that lead to no such name.

Source: "Guiding Language Models of Code with Global Context using Monitors", section 3, with a cost in place of a mask:
a list may lack a name, because the line that is written defines it, or because the server misread unfinished code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from completion.request import CompletionRequest
from completion.syntax.brackets import enclosing_literal

UNKNOWN_NAME_COST = 8.0
"""Cost of a token that leads to no known name, in nats; chosen on half 0 of `benchmarks.names`: 4 halves what is
invented, pruning loses names that the line itself defines."""

_PART = re.compile(rb"[\w$\x80-\xff]*")
_MEMBER = re.compile(r"\.([^\W\d]\w*)")
_NEAR_CHARACTERS = 20_000  # around the cursor, where a name that the other servers lack may stand
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_TYPED = re.compile(r"[\w$]*\Z")


@dataclass(frozen=True, slots=True)
class NameState:
    """The text from the start of the output up to a token within the first name; immutable.

    Attributes:
        skipped: Number of bytes of the output that are still before the name.
        begun: Bytes of the name so far.
    """

    skipped: int
    begun: bytes = b""


class KnownNames:
    """The known names at a cursor, sorted: those with a common start are a run, as in a trie.

    Args:
        names: The names.
        prefix: Text before the cursor, which may end with the start of one.
        run: Its healed run, with which the output starts.
    """

    unknown_cost: ClassVar[float] = UNKNOWN_NAME_COST

    def __init__(self, names: Iterable[str], prefix: str, run: str) -> None:
        self._names = sorted({name.encode("utf-8", "replace") for name in names if _WORD.fullmatch(name)})
        typed = _TYPED.search(prefix)
        begun = typed[0] if typed else ""
        skipped = len(run.encode("utf-8", "replace")) - len(begun.encode("utf-8", "replace"))
        reads = bool(self._names) and skipped >= 0
        self.start: NameState | None = NameState(skipped) if reads else None

    def advance(self, state: NameState, data: bytes) -> tuple[NameState | None, bool]:
        """Return the state after a token, None once the name has ended or is unknown, and whether that is new."""
        if len(data) <= state.skipped:
            return NameState(state.skipped - len(data), state.begun), False
        part = _PART.match(data, state.skipped)
        end = part.end() if part else state.skipped
        begun = state.begun + data[state.skipped : end]
        index = bisect_left(self._names, begun)
        found = self._names[index] if index < len(self._names) else b""
        if end < len(data):
            return None, bool(begun) and found != begun
        is_known = found.startswith(begun)
        return NameState(0, begun) if is_known else None, not is_known


def known_names(request: CompletionRequest, run: str) -> KnownNames | None:
    """Return the known names of a request with its healed run: also what follows a dot elsewhere in the document.

    There are none in comments and strings, and where the text after the cursor goes on with the name.
    """
    goes_on = request.suffix[:1].isalnum() or request.suffix[:1] == "_"
    if not request.names or goes_on or enclosing_literal(request.prefix, request.language) is not None:
        return None
    before, after = _TYPED.sub("", request.prefix[-_NEAR_CHARACTERS:]), request.suffix[:_NEAR_CHARACTERS]
    return KnownNames((*request.names, *_MEMBER.findall(f"{before} {after}")), request.prefix, run)
