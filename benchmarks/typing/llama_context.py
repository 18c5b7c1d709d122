"""llama.vim's view of a document: the lines around the cursor, the cache of answers, the ring of extra chunks.

Source: autoload/llama.vim of ggml-org/llama.vim, January 2026; the numbers are its defaults.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

N_PREFIX = 256
N_SUFFIX = 64
MAX_CACHE_KEYS = 250
RING_CHUNKS = 16
RING_CHUNK_LINES = 64
RING_SCOPE = 1024
LOOK_BACK = 128
"""An answer serves a cursor that stands so many characters behind the place of its request."""

_QUEUED_CHUNKS = 16
_TRIMMED_LINES = 3
_TOO_SIMILAR_QUEUED, _TOO_SIMILAR_NEAR = 0.9, 0.5

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LocalContext:
    """What a request sends of the document.

    Attributes:
        line_suffix: What stands behind the cursor on its line, "" on a line of blanks.
    """

    prefix: str
    middle: str
    suffix: str
    indent: int
    line_suffix: str

    @property
    def key(self) -> Key:
        """What the cache knows it by."""
        return self.prefix + self.middle, self.suffix

    @property
    def keys(self) -> list[Key]:
        """The same without the first one to three lines, for when the window has moved down."""
        found, prefix = [self.key], self.prefix
        for _ in range(_TRIMMED_LINES):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            found.append((prefix + self.middle, self.suffix))
        return found


def local_context(lines: Sequence[str], row: int, column: int, answer: Sequence[str], last_indent: int) -> LocalContext:
    """The context at a cursor, or at the end of an answer as if it had been accepted there.

    Args:
        lines: The document.
        row: The cursor's line, from 0.
        column: Its place there.
        answer: Lines of an answer; none for the cursor itself.
        last_indent: The indentation of the request before.
    """
    after = lines[row + 1 : row + 1 + N_SUFFIX]
    if not answer:
        line, before = lines[row], list(lines[max(0, row - N_PREFIX) : row])
        if line.strip(" \t"):
            middle, rest, indent = line[:column], line[column:], len(line) - len(line.lstrip(" \t"))
        else:
            middle, rest, indent = "", "", 0
        return LocalContext(_joined(before), middle, rest + "\n" + _joined(after), indent, rest)
    before = list(lines[max(0, row - N_PREFIX + len(answer) - 1) : row])
    middle = lines[row] + answer[0] if len(answer) == 1 else answer[-1]
    if len(answer) > 1:
        before += [lines[row] + answer[0], *answer[1:-1]]
    return LocalContext(_joined(before), middle, "\n" + _joined(after), last_indent, "")


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


class AnswerCache:
    """Answers by context, the least recently used one goes first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, str] = OrderedDict()

    def insert(self, keys: Sequence[Key], answer: str) -> None:
        """Keep an answer."""
        for key in keys:
            if key not in self._answers and len(self._answers) >= MAX_CACHE_KEYS:
                self._answers.popitem(last=False)
            self._answers[key] = answer
            self._answers.move_to_end(key)

    def has(self, keys: Sequence[Key]) -> bool:
        """Whether one of them is known."""
        return any(key in self._answers for key in keys)

    def find(self, context: LocalContext) -> str | None:
        """The rest of what is known for a cursor, or for one behind it as far as what was typed since agrees."""
        if context.key in self._answers:
            self._answers.move_to_end(context.key)
            return self._answers[context.key]
        typed_at, suffix = context.key
        best: str | None = None
        for back in range(1, min(LOOK_BACK, len(typed_at) - 1) + 1):
            answer = self._answers.get((typed_at[:-back], suffix), "")
            rest = answer[back:]
            if rest and answer.startswith(typed_at[-back:]) and len(rest) > len(best or ""):
                best = rest
        return best


@dataclass(slots=True)
class ChunkRing:
    """Chunks of files that go along with every request, and those that wait to be taken in.

    Attributes:
        random: Decides which part of a long text becomes a chunk.
    """

    random: Random
    chunks: list[tuple[str, list[str]]] = field(default_factory=list)
    queued: list[tuple[str, list[str]]] = field(default_factory=list)

    def pick(self, name: str, text: Sequence[str], *, evict: bool) -> None:
        """Queue a chunk of a text, unless there is one like it.

        Args:
            name: The file's.
            text: Lines.
            evict: Whether one like it makes room for the new one.
        """
        if len(text) < 3:
            return
        chunk = list(text) if len(text) + 1 < RING_CHUNK_LINES else self._part(text)
        if any(chunk == known for _, known in (*self.chunks, *self.queued)):
            return
        for held in (self.queued, self.chunks):
            for entry in [entry for entry in held if similarity(entry[1], chunk) > _TOO_SIMILAR_QUEUED]:
                if not evict:
                    return
                held.remove(entry)
        del self.queued[: max(0, len(self.queued) - _QUEUED_CHUNKS + 1)]
        self.queued.append((name, chunk))

    def evict_near(self, around: Sequence[str]) -> None:
        """Drop chunks like the text around the cursor: they would only be repeated."""
        chunk = self._part(around)
        self.chunks = [entry for entry in self.chunks if similarity(entry[1], chunk) <= _TOO_SIMILAR_NEAR]

    def take_in(self) -> bool:
        """Move one chunk from the queue into the ring; False if none waits."""
        if not self.queued:
            return False
        del self.chunks[: max(0, len(self.chunks) - RING_CHUNKS + 1)]
        self.chunks.append(self.queued.pop(0))
        return True

    def extra(self) -> list[dict[str, str]]:
        """The chunks as /infill takes them."""
        return [{"text": _joined(lines), "filename": name} for name, lines in self.chunks]

    def _part(self, text: Sequence[str]) -> list[str]:
        half = RING_CHUNK_LINES // 2
        start = self.random.randint(0, max(0, len(text) - half))
        return list(text[start : start + half + 1])


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Of two chunks, by their words: 0 to 1."""
    words, others = (re.split(r"\W+", "\n".join(lines)) for lines in (one, other))
    known = set(words)
    return 2 * sum(word in known for word in others) / (len(words) + len(others))
