"""What the change of a line teaches: the rewrites that turn its old version into the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from completion.next_edit.rewrites import CLOSERS, HOLE, OPENERS, Rewrite, RewriteKind, Token, is_word, tokenise

_MAX_TOKENS = 24  # maximum length of a rewrite's old side; a longer one is a new text, not a substitution
_MAX_CONTEXT = 3  # maximum number of tokens on one side that tell where a token is inserted
_MIN_SIMILARITY = 0.5  # of an old and a new line that are versions of one line


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
    matcher = SequenceMatcher(None, [t[0] for t in ours], [t[0] for t in theirs], autojunk=False)
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
    ours: Sequence[Token]
    theirs: Sequence[Token]
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
        gone = [token[0] for token in self.ours[start:end]]
        came = self.theirs[self.blocks[first][2] : self.blocks[last][3]]
        if any(map(is_word, gone)):
            if last > first:
                yield from self._made(first, last, 0, 0, RewriteKind.HOLES)
            single = len(gone) == len(came) == 1 and is_word(came[0][0])
            yield from self._made(first, last, 0, 0, RewriteKind.NAME if single else RewriteKind.TOKENS, holes=False)
            for ours, theirs in zip(self.ours[start:end], came, strict=True) if 1 < len(gone) == len(came) else ():
                if is_word(ours[0]) and is_word(theirs[0]) and ours[0] != theirs[0]:
                    yield Rewrite((ours[0],), (theirs[0],), RewriteKind.PART, ours.start())
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
        text_from = self.theirs[new_start].start() if new_start < new_end else 0
        for block in self.blocks[first : last + 1] if holes else ():
            if block[0] > at:  # tokens that both sides have
                new += [self.new[text_from : self.theirs[block[2] - (block[0] - at)].start()], hole]
                text_from, hole = self.theirs[block[2] - 1].end(), hole + 1
                old.append(HOLE)
            old += [token[0] for token in self.ours[block[0] : block[1]]]
            at = block[1]
        if not holes:
            old = [token[0] for token in self.ours[start:end]]
        text_to = self.theirs[new_end - 1].end() if new_end > new_start else text_from
        new.append(self.new[text_from:text_to])
        yield Rewrite(tuple(old), tuple(part for part in new if part != ""), kind, self.ours[start].start())

    def _call(self, block: int) -> Iterator[Rewrite]:
        """Yield the rewrite of tokens that were added at either end of brackets with a name before them."""
        at, _, new_start, new_end = self.blocks[block]
        added = self.new[self.theirs[new_start].start() : self.theirs[new_end - 1].end()]
        if at < len(self.ours) and self.ours[at][0] in CLOSERS:
            opener = _matching_opener(self.ours, at)
            if opener + 1 == at:  # nothing shows what separates it from other arguments
                return
            gap = self.new[self.theirs[new_start - 1].end() : self.theirs[new_start].start()] if new_start else ""
            parts: tuple[str | int, ...] = (0, gap + added)
        elif at and self.ours[at - 1][0] in OPENERS:
            opener, parts = at - 1, (added + " ", 0)
        else:
            return
        if opener > 0 and is_word(self.ours[opener - 1][0]):
            head, closer = self.ours[opener - 1][0], CLOSERS[OPENERS.index(self.ours[opener][0])]
            inside = self.old[self.ours[opener - 1].start() : self.ours[opener].end()]
            old = (head, self.ours[opener][0], HOLE, closer)
            yield Rewrite(old, (inside, *parts, closer), RewriteKind.CALL, self.ours[opener - 1].start())

    def _context(self, unchanged: range) -> int:
        """Return the number of the unchanged tokens up to the first word, nearest first; 0 if none is near."""
        for count, index in enumerate(unchanged[:_MAX_CONTEXT], 1):
            if is_word(self.ours[index][0]):
                return count
        return 0

    def _closed(self, first: int, last: int) -> bool:
        blocks = self.blocks[first : last + 1]
        gone = [token for start, end, *_ in blocks for token in self.ours[start:end]]
        came = [token for *_, start, end in blocks for token in self.theirs[start:end]]
        return all(sum((token[0] in OPENERS) - (token[0] in CLOSERS) for token in side) == 0 for side in (gone, came))


def _matching_opener(tokens: Sequence[Token], closer: int) -> int:
    """Return the index of the opener of the bracket that closes at `closer`, -1 if the line has none."""
    depth = 0
    for index in range(closer, -1, -1):
        depth += (tokens[index][0] in CLOSERS) - (tokens[index][0] in OPENERS)
        if depth == 0:
            return index
    return -1
