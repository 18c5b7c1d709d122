"""Where a completion ends: the rules that look at its text, its size and its time after every step."""

from __future__ import annotations

from dataclasses import dataclass

from completion.request import CompletionRequest, Mode, StopReason


@dataclass(frozen=True, slots=True)
class Stop:
    """An end that was found.

    Attributes:
        length: How many characters of the text belong to the completion.
        reason: The rule that found it.
    """

    length: int
    reason: StopReason


class StopRules:
    """The rules for one request; asked after every step with the text so far.

    Args:
        request: Names the bounds.
        mode: Mode.LINE or Mode.BLOCK, decided beforehand.
    """

    def __init__(self, request: CompletionRequest, mode: Mode) -> None:
        self._request = request
        self._mode = mode
        self._next_line = next((line.strip() for line in request.suffix.split("\n")[1:] if line.strip()), "")

    def text_end(self, text: str) -> Stop | None:
        """The first place in the text so far where it must end, if there is one."""
        if self._mode is Mode.LINE:
            line_end = text.find("\n")
            return Stop(line_end, StopReason.LINE_END) if line_end >= 0 else None
        return self._suffix_repeated(text)

    def size_end(self, tokens: int, size_bytes: int, elapsed_ms: float) -> StopReason | None:
        """The bound that is reached, if one is."""
        if tokens >= self._request.max_tokens:
            return StopReason.MAX_TOKENS
        if size_bytes >= self._request.max_bytes:
            return StopReason.MAX_BYTES
        if 0 < self._request.time_budget_ms <= elapsed_ms:
            return StopReason.TIME_BUDGET
        return None

    def _suffix_repeated(self, text: str) -> Stop | None:
        """A finished line that is the next line of the document: the model goes on to write the suffix again."""
        if not any(character.isalnum() for character in self._next_line):
            return None
        offset = 0
        for line in text.split("\n")[:-1]:
            if line.strip() == self._next_line:
                return Stop(max(offset - 1, 0), StopReason.SUFFIX_OVERLAP)
            offset += len(line) + 1
        return None
