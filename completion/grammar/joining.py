"""Joins the texts at one cursor with what stands after it: insertions, and how much may be missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from itertools import islice
from math import inf

from completion.errors import GrammarBoundError
from completion.grammar.grammar import Grammar
from completion.grammar.joined import JoinedDocument, Verdict
from completion.grammar.joint import Joint
from completion.grammar.lr.advance import Snapshot
from completion.grammar.shortest import MAX_STEPS, Insertion

_CLOSERS = re.compile(rb"[ \t]*[)\]}>\"'`;,:]+[ \t]*(?=\r?\n|\Z)")
_CLOSERS_BELOW = re.compile(rb"\s*\)[)\]}>\"'`;,:]*[ \t]*(?=\r?\n|\Z)")  # of a head, as formatters put them
_OWN_STEPS = 600  # of a search that joins the document's own text, which mostly lacks little
_MAX_OWN = 4  # insertions that may make the document sound without a text
_CHECKED_CUTS = 64  # cuts of one text after which the text after the cursor is read, the longest first
_MAX_JOINS = 16  # insertions with which one text is parsed in its document, the cheapest first


class Missing(IntEnum):
    """How much may be missing between a text and what stands after the cursor."""

    NOTHING = 0
    AS_BEFORE = 1
    ANYTHING = 2


class Joining:
    """Finds what joins texts at one cursor with what stands after it.

    Args:
        grammar: The grammar of the language.
        document: The document without a text.
        root: Snapshot where the texts begin; None if no valid file begins with the text before.
    """

    def __init__(self, grammar: Grammar, document: JoinedDocument, root: Snapshot | None) -> None:
        self._grammar, self._document, self._sound_root = grammar, document, root
        self._shortest, self._acceptor = grammar.shortest, grammar.acceptor
        self._begun, self._suffix = document.text[document.start : document.end], document.text[document.end :]
        self._joints: dict[int, Joint] = {}

    def mends(self, middle: bytes, missing: Missing, replaced: int = 0, *, grows: bool = False) -> bool:
        """Return whether the verdict on the document with a text and what is missing is `MENDS` or `SOUND`, or unknown.

        The document's own text before the cursor may lack something, too. While the text grows, it is not yet known
        what it replaces: closers after the cursor, which it has itself.
        """
        if missing is Missing.NOTHING:
            return False
        try:
            joins = islice(self._joins(middle, missing, replaced, grows=grows), _MAX_JOINS)
            return any(self._document.verdict(middle + text, left_out) >= Verdict.MENDS for text, left_out in joins)
        except GrammarBoundError:
            return missing is Missing.ANYTHING

    def is_broken(self, replaced: int) -> bool:
        """Return whether nothing is known to join the document's own text with the text after the replaced bytes."""
        return self._joint(replaced).is_broken

    def cuts(self, middle: bytes, offsets: Sequence[int], replaced: int) -> Iterator[int]:
        """Yield the cuts of a text after which most lines can be read of the text after the cursor, the longest first.

        Of the ascending offsets, at most the last `_CHECKED_CUTS` that a valid file has are tried.
        """
        reached, offset, snapshot = list[tuple[int, Snapshot]](), 0, self._root
        with suppress(GrammarBoundError):
            for end in offsets:
                snapshot = None if snapshot is None else self._acceptor.advance(snapshot, middle[offset:end])
                if snapshot is None:
                    break
                offset = end
                reached.append((offset, snapshot))
        joint, reaches = Joint(self._acceptor, self._suffix[replaced:]), dict[int, int]()
        for end, after in reversed(reached[-_CHECKED_CUTS:]):
            self._document.parsing.raise_if_cancelled()
            reaches[end] = joint.reach(after)
        furthest = max(reaches.values(), default=0)
        yield from (end for end, reach in reaches.items() if reach == furthest > 0)

    def _joins(self, middle: bytes, missing: Missing, replaced: int, *, grows: bool) -> Iterator[tuple[bytes, int]]:
        """Yield what may follow a text, the cheapest first, and the bytes after the cursor in place of which it does.

        Closers after the cursor may belong to the text, as an editor adds them with their opener: what is missing then
        stands after them.
        """
        if self._root is None:
            raise GrammarBoundError("The text before the cursor cannot be read.")
        highest = self._cost if missing is Missing.AS_BEFORE else inf
        steps = MAX_STEPS
        for kept, left_out in self._places(replaced, grows=grows):
            snapshot = self._acceptor.read(self._root, middle + kept)
            if snapshot is None:
                continue
            joint, taken = self._joint(left_out), self._shortest.steps
            for each in self._shortest.insertions(snapshot, joint, steps):
                if each.cost > highest:
                    break
                yield kept + each.text, left_out
            steps -= self._shortest.steps - taken

    def _places(self, replaced: int, *, grows: bool) -> Iterator[tuple[bytes, int]]:
        """Yield the closers that a text keeps, and the number of bytes that are replaced then."""
        yield b"", replaced
        for pattern in (_CLOSERS, _CLOSERS_BELOW):
            closers = pattern.match(self._suffix, replaced)
            if closers is not None:
                yield closers.group(), closers.end()
                if grows:
                    yield b"", closers.end()

    @cached_property
    def _root(self) -> Snapshot | None:
        """Snapshot where the texts begin: after what is sound of the cursor's line, if that is broken."""
        return self._sound_root or self._grammar.prefixes.read_sound_words(self._document.text[: self._document.start])

    @cached_property
    def _own(self) -> Snapshot | None:
        """Snapshot at the cursor, after the document's own text."""
        return None if self._root is None else self._acceptor.read(self._root, self._begun)

    def _joint(self, left_out: int) -> Joint:
        """Return the text after the cursor without its first bytes, to be joined as with the document's own text."""
        joint = self._joints.get(left_out)
        if joint is None:
            joint = self._joints[left_out] = Joint(self._acceptor, self._suffix[left_out:])
            own = next(self._own_insertions(joint), None)
            joint.is_broken = own is None
            if own is not None and self._own is not None:
                joint.refer_to(own.after, self._shortest.level(self._own))
        return joint

    @cached_property
    def _cost(self) -> int:
        """Cost of joining the document's own text before the cursor with the text after it; 0 if nothing joins them."""
        if self._joint(0).is_broken:
            return 0
        own = list(islice(self._own_insertions(self._joint(0)), _MAX_OWN))
        sound = (each.cost for each in own if self._document.verdict(self._begun + each.text) is Verdict.SOUND)
        return next(sound, own[0].cost if own else 0)

    def _own_insertions(self, joint: Joint) -> Iterator[Insertion]:
        """Yield what joins the document's own text before the cursor with the text after it, as far as it is known."""
        with suppress(GrammarBoundError):
            if self._own is not None:
                yield from self._shortest.insertions(self._own, joint, _OWN_STEPS)
