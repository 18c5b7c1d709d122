"""Context of llama.vim: the lines around the cursor, the cache of answers, the ring of extra chunks.

Source: autoload/llama.vim of ggml-org/llama.vim, January 2026. The numbers are its defaults.
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
"""Maximum number of characters between the cursor of a request and a later cursor that its answer serves."""

_QUEUED_CHUNKS = 16
_TRIMMED_LINES = 3
_TOO_SIMILAR_QUEUED, _TOO_SIMILAR_NEAR = 0.9, 0.5

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LocalContext:
    """The part of the document that a request sends.

    Attributes:
        line_suffix: Text after the cursor on its line, "" on a blank line.
    """

    prefix: str
    middle: str
    suffix: str
    indent: int
    line_suffix: str

    @property
    def key(self) -> Key:
        """Return the key of the cache."""
        return self.prefix + self.middle, self.suffix

    @property
    def keys(self) -> list[Key]:
        """Return the key, and the keys without the first one to three lines, for a window that has moved down."""
        found, prefix = [self.key], self.prefix
        for _ in range(_TRIMMED_LINES):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            found.append((prefix + self.middle, self.suffix))
        return found


def local_context(lines: Sequence[str], row: int, column: int, answer: Sequence[str], last_indent: int) -> LocalContext:
    """Return the context at a cursor, or at the end of an answer as if it had been accepted.

    Args:
        lines: Lines of the document.
        row: Line of the cursor, from 0.
        column: Column of the cursor, from 0.
        answer: Lines of an answer, none for the cursor itself.
        last_indent: Indentation of the last request.
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
    """Answers by context. The least recently used one is evicted first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, str] = OrderedDict()

    def insert(self, keys: Sequence[Key], answer: str) -> None:
        """Store an answer."""
        for key in keys:
            if key not in self._answers and len(self._answers) >= MAX_CACHE_KEYS:
                self._answers.popitem(last=False)
            self._answers[key] = answer
            self._answers.move_to_end(key)

    def has(self, keys: Sequence[Key]) -> bool:
        """Return whether one of the keys has an answer."""
        return any(key in self._answers for key in keys)

    def find(self, context: LocalContext) -> str | None:
        """Return the answer for a cursor, or the end of an answer for an earlier cursor if the typing since agrees."""
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
    """Chunks of files that each request sends, and queued chunks.

    Attributes:
        random: Source of the choice which part of a long text becomes a chunk.
    """

    random: Random
    chunks: list[tuple[str, list[str]]] = field(default_factory=list)
    queued: list[tuple[str, list[str]]] = field(default_factory=list)

    def pick(self, name: str, text: Sequence[str], *, evict: bool) -> None:
        """Queue a chunk of a text, unless there is a similar one.

        Args:
            name: Name of the file.
            text: Lines of the text.
            evict: Whether a similar chunk is replaced by the new one.
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
        """Drop chunks that are similar to the text around the cursor, which the request sends anyway."""
        chunk = self._part(around)
        self.chunks = [entry for entry in self.chunks if similarity(entry[1], chunk) <= _TOO_SIMILAR_NEAR]

    def take_in(self) -> bool:
        """Move one chunk from the queue into the ring. Return False if the queue is empty."""
        if not self.queued:
            return False
        del self.chunks[: max(0, len(self.chunks) - RING_CHUNKS + 1)]
        self.chunks.append(self.queued.pop(0))
        return True

    def extra(self) -> list[dict[str, str]]:
        """Return the chunks in the format of /infill."""
        return [{"text": _joined(lines), "filename": name} for name, lines in self.chunks]

    def _part(self, text: Sequence[str]) -> list[str]:
        half = RING_CHUNK_LINES // 2
        start = self.random.randint(0, max(0, len(text) - half))
        return list(text[start : start + half + 1])


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the similarity of two chunks by their words, from 0 to 1."""
    words, others = (re.split(r"\W+", "\n".join(lines)) for lines in (one, other))
    known = set(words)
    return 2 * sum(word in known for word in others) / (len(words) + len(others))
