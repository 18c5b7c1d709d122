"""Rewrites that an edit teaches: token substitutions old → new, with holes for what both sides have in common.

A hole matches any tokens with balanced brackets. `Optional[str]` → `str | None` teaches `Optional[·]` → `· | None`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w+\Z")
_OPENERS, _CLOSERS = "([{", ")]}"
_MAX_TOKENS = 24  # maximum length of a rewrite's old side; a longer one is a new text, not a substitution
_MAX_HOLE = 40  # maximum number of tokens that a hole matches
_MAX_CONTEXT = 3  # maximum number of tokens on one side that tell where a token is inserted
_MIN_SIMILARITY = 0.5  # of an old and a new line that are versions of one line

HOLE = ""
"""Element of a pattern that matches any balanced tokens."""


class RewriteKind(StrEnum):
    """What a rewrite was made of."""

    NAME = "name"  # one word becomes another word
    TOKENS = "tokens"  # a run of tokens with a word
    HOLES = "holes"  # changed tokens around unchanged ones
    CONTEXT = "context"  # tokens without a word, known by their neighbours
    CALL = "call"  # an argument or element is added at either end of brackets


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a line, without blanks."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A substitution.

    Attributes:
        old: Tokens to replace; HOLE matches any balanced tokens.
        new: Text to put there: a string, or the number of a hole whose text is kept.
        kind: What it was made of.
        column: Column of the changed text in the old line that taught it.
    """

    old: tuple[str, ...]
    new: tuple[str | int, ...]
    kind: RewriteKind
    column: int = 0


def tokenise(line: str) -> list[Token]:
    """Return the tokens of a line."""
    return [Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(line)]


def is_word(text: str) -> bool:
    """Return whether a token is a name or keyword of two letters or more."""
    return _WORD.match(text) is not None


def line_pairs(old: Sequence[str], new: Sequence[str], check: Callable[[], None]) -> list[tuple[str, str]]:
    """Return the old and new versions of a hunk's lines. `check` is called before each comparison: some take long."""
    if len(old) == len(new):
        return list(zip(old, new, strict=True))
    pairs, start = [], 0
    for line in old:
        best, found = _MIN_SIMILARITY, -1
        matcher = SequenceMatcher(None, line, "", autojunk=False)
        for at in range(start, len(new)):
            check()
            matcher.set_seq2(new[at])
            least = best if found < 0 else best + 1e-9  # of two that are as similar, the first
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least and matcher.ratio() >= least:
                best, found = matcher.ratio(), at
        if found >= 0:
            pairs.append((line, new[found]))
            start = found + 1
    return pairs


def rewrites(old: str, new: str) -> Iterator[Rewrite]:
    """Yield the rewrites that the change of one line teaches, without duplicates."""
    if old == new:
        return
    ours, theirs = tokenise(old), tokenise(new)
    matcher = SequenceMatcher(None, [t.text for t in ours], [t.text for t in theirs], autojunk=False)
    blocks = [op[1:] for op in matcher.get_opcodes() if op[0] != "equal"]
    line = _Change(old, new, ours, theirs, blocks)
    found: dict[Rewrite, None] = {}
    for first, last in line.groups():
        for rewrite in line.rewrites_of(first, last):
            ends_open = rewrite.old[-1] == HOLE  # a hole needs a token that ends it
            if len(rewrite.old) == 1 and not rewrite.new:
                continue
            if len(rewrite.old) <= _MAX_TOKENS and any(map(is_word, rewrite.old)) and not ends_open:
                found.setdefault(rewrite)
    yield from found


Block = tuple[int, int, int, int]
"""Changed tokens: start and end in the old line, start and end in the new one."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed line, as tokens and the blocks in which they differ."""

    old: str
    new: str
    ours: list[Token]
    theirs: list[Token]
    blocks: list[Block]

    def groups(self) -> Iterator[tuple[int, int]]:
        """Yield first and last block of each group: those that balance brackets together, or stand close together."""
        first = 0
        while first < len(self.blocks):
            last = first
            while last + 1 < len(self.blocks) and not self._closed(first, last):
                last += 1
            yield first, last
            near = last
            while near + 1 < len(self.blocks) and self.blocks[near + 1][0] - self.blocks[near][1] <= 1:
                near += 1
            if near > last:
                yield first, near
            first = last + 1

    def rewrites_of(self, first: int, last: int) -> Iterator[Rewrite]:
        start, end = self.blocks[first][0], self.blocks[last][1]
        gone = [token.text for token in self.ours[start:end]]
        came = self.theirs[self.blocks[first][2] : self.blocks[last][3]]
        if any(map(is_word, gone)):
            if last > first:
                yield from self._made(first, last, 0, 0, RewriteKind.HOLES)
            single = len(gone) == len(came) == 1 and is_word(came[0].text)
            yield from self._made(first, last, 0, 0, RewriteKind.NAME if single else RewriteKind.TOKENS, holes=False)
        else:
            low = self.blocks[first - 1][1] if first else 0
            high = self.blocks[last + 1][0] if last + 1 < len(self.blocks) else len(self.ours)
            left, right = self._context(range(start - 1, low - 1, -1)), self._context(range(end, high))
            for before, after in {(left, 0), (0, right), (left, right)}:
                yield from self._made(first, last, before, after, RewriteKind.CONTEXT, holes=False)
        if start == end:
            yield from self._call(first)

    def _made(
        self, first: int, last: int, before: int, after: int, kind: RewriteKind, *, holes: bool = True
    ) -> Iterator[Rewrite]:
        """Yield the rewrite of some blocks with tokens of context on both sides."""
        start, end = self.blocks[first][0] - before, self.blocks[last][1] + after
        new_start, new_end = self.blocks[first][2] - before, self.blocks[last][3] + after
        if start >= end:
            return
        old, new, at, hole = [], list[str | int](), start, 0
        text_from = self._new_at(new_start, new_end)
        for block in self.blocks[first : last + 1] if holes else ():
            if block[0] > at:  # tokens that both sides have
                new += [self.new[text_from : self.theirs[block[2] - (block[0] - at)].start], hole]
                text_from, hole = self.theirs[block[2] - 1].end, hole + 1
                old.append(HOLE)
            old += [token.text for token in self.ours[block[0] : block[1]]]
            at = block[1]
        if not holes:
            old = [token.text for token in self.ours[start:end]]
        text_to = self.theirs[new_end - 1].end if new_end > new_start else text_from
        new.append(self.new[text_from:text_to])
        yield Rewrite(tuple(old), tuple(part for part in new if part != ""), kind, self.ours[start].start)

    def _call(self, block: int) -> Iterator[Rewrite]:
        """Yield the rewrite of tokens that were added at either end of brackets with a name before them."""
        at, _, new_start, new_end = self.blocks[block]
        added = self.new[self.theirs[new_start].start : self.theirs[new_end - 1].end]
        if at < len(self.ours) and self.ours[at].text in _CLOSERS:
            opener = _matching_opener(self.ours, at)
            gap = self.new[self.theirs[new_start - 1].end : self.theirs[new_start].start] if new_start else ""
            parts: tuple[str | int, ...] = (0, gap + added)
        elif at and self.ours[at - 1].text in _OPENERS:
            opener, parts = at - 1, (added + " ", 0)
        else:
            return
        if opener > 0 and is_word(self.ours[opener - 1].text):
            head, closer = self.ours[opener - 1].text, _CLOSERS[_OPENERS.index(self.ours[opener].text)]
            inside = self.old[self.ours[opener - 1].start : self.ours[opener].end]
            old = (head, self.ours[opener].text, HOLE, closer)
            yield Rewrite(old, (inside, *parts, closer), RewriteKind.CALL, self.ours[opener - 1].start)

    def _context(self, unchanged: range) -> int:
        """Return the number of the unchanged tokens up to the first word, nearest first; 0 if none is near."""
        for count, index in enumerate(unchanged[:_MAX_CONTEXT], 1):
            if is_word(self.ours[index].text):
                return count
        return 0

    def _closed(self, first: int, last: int) -> bool:
        blocks = self.blocks[first : last + 1]
        gone = [token for start, end, *_ in blocks for token in self.ours[start:end]]
        came = [token for *_, start, end in blocks for token in self.theirs[start:end]]
        return all(
            sum((token.text in _OPENERS) - (token.text in _CLOSERS) for token in side) == 0 for side in (gone, came)
        )

    def _new_at(self, start: int, end: int) -> int:
        return self.theirs[start].start if start < end else 0


def apply(rewrite: Rewrite, line: str, tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """Return the line with the rewrite applied wherever it matches, and the columns of these places."""
    kept, copied, columns, at = list[str](), 0, list[int](), 0
    while at < len(tokens):
        matched = _match(rewrite.old, tokens, at)
        if matched is None:
            at += 1
            continue
        end, holes = matched
        start, stop = tokens[at].start, tokens[end - 1].end
        new = "".join(part if isinstance(part, str) else _text(line, tokens, holes[part]) for part in rewrite.new)
        if not _is_done(line, start, line[start:stop], new):
            if not new:
                start, stop = _with_blanks(line, start, stop)
            kept += [line[copied:start], new]
            copied = stop
            columns.append(tokens[at].start)
        at = end
    return "".join([*kept, line[copied:]]), columns


def _match(pattern: Sequence[str], tokens: Sequence[Token], at: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the end of the pattern's match at a token, and the spans of its holes; None if it does not match."""
    holes = []
    for index, wanted in enumerate(pattern):
        if wanted == HOLE:
            end = _hole_end(tokens, at, pattern[index + 1])
            if end is None:
                return None
            holes.append((at, end))
            at = end
        elif at < len(tokens) and tokens[at].text == wanted:
            at += 1
        else:
            return None
    return at, holes


def _hole_end(tokens: Sequence[Token], at: int, following: str) -> int | None:
    depth = 0
    for end in range(at, min(len(tokens), at + _MAX_HOLE)):
        text = tokens[end].text
        if depth == 0 and text == following:
            return end
        depth += (text in _OPENERS) - (text in _CLOSERS)
        if depth < 0:
            return None
    return None


def _matching_opener(tokens: Sequence[Token], closer: int) -> int:
    """Return the index of the opener of the bracket that closes at `closer`, -1 if the line has none."""
    depth = 0
    for index in range(closer, -1, -1):
        depth += (tokens[index].text in _CLOSERS) - (tokens[index].text in _OPENERS)
        if depth == 0:
            return index
    return -1


def _text(line: str, tokens: Sequence[Token], span: tuple[int, int]) -> str:
    return line[tokens[span[0]].start : tokens[span[1] - 1].end] if span[0] < span[1] else ""


def _is_done(line: str, start: int, old: str, new: str) -> bool:
    """Return whether the new text, which contains the old one, already stands there."""
    at = new.find(old)
    while at >= 0:
        if start >= at and line.startswith(new, start - at):
            return True
        at = new.find(old, at + 1)
    return old == new


def _with_blanks(line: str, start: int, stop: int) -> tuple[int, int]:
    """Extend a deleted span by the blanks that would be left over."""
    blanks = len(line[stop:]) - len(line[stop:].lstrip(" \t"))
    if line[:start].endswith((" ", *_OPENERS)) or not line[:start].strip():
        return start, stop + blanks
    if not line[stop + blanks :] or line[stop + blanks] in ",;:)]}":
        return len(line[:start].rstrip(" \t")), stop
    return start, stop
