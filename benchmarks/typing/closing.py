"""The keys of an editor that closes brackets and quotes, as VS Code does by default.

An opening bracket brings its closer, which stands after the cursor until it is typed over. A line end between `{` and
`}` puts the closer on a line of its own. The closers that wait are always directly after the cursor, the innermost
first.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_QUOTES = {'"': '"', "'": "'"}
_TEMPLATES = {"`": "`"}
_WITH_TEMPLATES = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact", "svelte", "go"})
_LIFETIMES = frozenset({"rust"})  # an apostrophe is not closed
_CLOSES_BEFORE = frozenset(";:.,=}])> \n\t")  # editor.autoClosingBrackets: the next character must be one of these
_STRING_PREFIX = re.compile(r"(?<!\w)[bfruBFRU]{1,2}\Z")
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class KeyEdit:
    """What one key changes at the cursor.

    Attributes:
        inserted: Text before the cursor afterwards.
        deleted: Number of characters after the cursor that it takes the place of.
        behind: Text that the editor adds after the cursor.
    """

    inserted: str
    deleted: int = 0
    behind: str = ""


@dataclass(frozen=True, slots=True)
class _Closer:
    """A closer after the cursor, and where it belongs in the text that is typed; -1 if it does not belong there."""

    text: str
    start: int


class PairCloser:
    """The closers that wait while one passage is typed.

    Args:
        typed: The text of the passage.
        pairs: Closers by opening character; empty for an editor that closes nothing.
    """

    def __init__(self, typed: str, pairs: Mapping[str, str]) -> None:
        self._typed = typed
        self._pairs = pairs
        self._waiting: deque[_Closer] = deque()

    @property
    def waiting(self) -> str:
        """Return the closers after the cursor."""
        return "".join(closer.text for closer in self._waiting)

    def press(self, index: int, unit: str, line: str, after: str) -> KeyEdit:
        """Return what the next key does.

        Args:
            index: Number of characters of the passage that are written.
            unit: What the key writes.
            line: The document's line of the cursor up to it.
            after: Character after the cursor, "" at the end of the document.
        """
        if self._waiting and self._waiting[0].start == index:
            text = self._waiting.popleft().text
            return KeyEdit(text, deleted=len(text))
        if unit.startswith("\n"):
            return KeyEdit(unit, behind=self._opened_line(index, line))
        closer = self._pairs.get(unit)
        if closer is None or (after and after not in _CLOSES_BEFORE) or not self._opens(unit, line):
            return KeyEdit(unit)
        self._waiting.appendleft(_Closer(closer, self._closed_at(index, unit, closer)))
        return KeyEdit(unit, behind=closer)

    def accept(self, replaced: int) -> None:
        """Forget the closers among the `replaced` characters after the cursor that an accepted text took away."""
        while self._waiting and replaced >= len(self._waiting[0].text):
            replaced -= len(self._waiting.popleft().text)

    def surplus(self, index: int) -> int:
        """Return how many characters after the cursor are closers too many, and forget them.

        Args:
            index: Number of characters of the passage that are written.
        """
        count = 0
        while self._waiting and self._waiting[0].start < index:
            count += len(self._waiting.popleft().text)
        return count

    def lacking(self, index: int) -> str:
        """Return the text after `index` without the waiting closers that end its first line."""
        line, end, below = self._typed[index:].partition("\n")
        for closer in reversed(self._waiting):
            if closer.start + len(closer.text) == index + len(line) and closer.start >= index:
                line = line.removesuffix(closer.text)
        return line + end + below

    def _opens(self, character: str, line: str) -> bool:
        """Return whether the character opens a pair here. A quote in a word, after a quote or in a string does not."""
        if character in _BRACKETS:
            return True
        if self._waiting and self._waiting[0].text in self._pairs:  # a quote closes itself
            return False
        before = line[-1:]
        return not (before.isalnum() or before in ("_", *_QUOTES, *_TEMPLATES)) or bool(_STRING_PREFIX.search(line))

    def _opened_line(self, index: int, line: str) -> str:
        """Move the closer to a line of its own if the cursor is between it and its opening bracket."""
        if not self._waiting or _BRACKETS.get(line[-1:]) != self._waiting[0].text:
            return ""
        closer = self._waiting.popleft()
        added = "\n" + _INDENT.match(line).group()  # type: ignore[union-attr]
        start = closer.start - len(added)
        belongs = start > index and self._typed.startswith(added, start)
        self._waiting.appendleft(replace(closer, text=added + closer.text, start=start if belongs else -1))
        return added

    def _closed_at(self, index: int, opening: str, closer: str) -> int:
        """Return where the passage closes what is opened at `index`; -1 if it does not."""
        depth = 1
        for at in range(index + 1, len(self._typed)):
            character = self._typed[at]
            if character == closer:
                depth -= 1
            elif character == opening:
                depth += 1
            elif character == "\n" and opening == closer and opening not in _TEMPLATES:
                return -1
            if not depth:
                return at
        return -1


def closing_pairs(language: str) -> dict[str, str]:
    """Return the pairs that an editor closes in a language."""
    quotes = {'"': '"'} if language in _LIFETIMES else _QUOTES
    return _BRACKETS | quotes | (_TEMPLATES if language in _WITH_TEMPLATES else {})
