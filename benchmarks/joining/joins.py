"""Joins the texts at one cursor with what stands after it: insertions, and how much may be missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from itertools import islice

from benchmarks.joining.joint import Joint
from benchmarks.joining.shortest import Insertion, Shortest
from completion.errors import GrammarBoundError
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot

_CLOSERS = re.compile(rb"[ \t]*[)\]}>\"'`;,:]+[ \t]*(?=\r?\n|\Z)")
_CLOSERS_BELOW = re.compile(rb"\s*\)[)\]}>\"'`;,:]*[ \t]*(?=\r?\n|\Z)")  # of a head, as formatters put them
_MAX_OWN = 4  # insertions that may make the document sound without a text

Join = tuple[bytes, int]
"""What follows a text, and the number of bytes after the cursor in place of which it does."""


class Missing(IntEnum):
    """How much may be missing between a text and what stands after the cursor."""

    NOTHING = 0
    AS_BEFORE = 1
    ANYTHING = 2


class Joining:
    """Finds what joins texts at one cursor with what stands after it.

    Args:
        shortest: Search of the language.
        acceptor: Acceptor of the language.
        root: Snapshot where the texts begin; None if it is not known.
        suffix: Text after the cursor.
        is_sound: Returns whether the document has no error with a text.
    """

    def __init__(
        self,
        shortest: Shortest,
        acceptor: Acceptor,
        root: Snapshot | None,
        suffix: bytes,
        is_sound: Callable[[bytes], bool],
    ) -> None:
        self._shortest, self._acceptor, self._root = shortest, acceptor, root
        self._suffix, self._is_sound = suffix, is_sound
        self._joints: dict[int, Joint] = {}

    def joins(self, middle: bytes, missing: Missing, replaced: int = 0) -> Iterator[Join]:
        """Yield what may stand between a text and what follows it, the cheapest first.

        Closers after the cursor may belong to the text, as an editor adds them with their opener: what is missing then
        stands after them, or the text has them itself.

        Args:
            middle: The text.
            missing: How much may be missing. The document's own text before the cursor may lack something, too.
            replaced: Number of bytes after the cursor that the text replaces.

        Raises:
            GrammarBoundError: It is not known whether there is more, and anything may be missing.
        """
        if missing is Missing.NOTHING or self._root is None:
            return
        try:
            yield from self._joins(self._root, middle, missing, replaced)
        except GrammarBoundError:
            if missing is Missing.ANYTHING:
                raise

    def _joins(self, root: Snapshot, middle: bytes, missing: Missing, replaced: int) -> Iterator[Join]:
        for kept, left_out in self._places(replaced):
            snapshot = self._acceptor.read(root, middle + kept)
            if snapshot is None:
                continue
            for each in self._shortest.insertions(snapshot, self._joint(root, left_out)):
                if missing is Missing.AS_BEFORE and each.cost > self._cost:
                    break
                yield kept + each.text, left_out

    def _places(self, replaced: int) -> Iterator[Join]:
        """Yield the closers that a text keeps, and the number of bytes that are replaced then."""
        yield b"", replaced
        for pattern in (_CLOSERS, _CLOSERS_BELOW):
            closers = pattern.match(self._suffix, replaced)
            if closers is not None:
                yield closers.group(), closers.end()
                yield b"", closers.end()

    def _joint(self, root: Snapshot, left_out: int) -> Joint:
        """Return the text after the cursor without its first bytes, to be joined as with the document's own text."""
        joint = self._joints.get(left_out)
        if joint is None:
            joint = self._joints[left_out] = Joint(self._acceptor, self._suffix[left_out:])
            own = next(self._own_insertions(root, joint), None)
            if own is not None:
                joint.refer_to(own.after, self._shortest.level(root))
        return joint

    @cached_property
    def _cost(self) -> int:
        """Cost of joining the document's own text before the cursor with the text after it."""
        if self._root is None:
            return 0
        own = list(islice(self._own_insertions(self._root, self._joint(self._root, 0)), _MAX_OWN))
        sound = (each.cost for each in own if self._is_sound(each.text))
        return next(sound, own[0].cost if own else 0)

    def _own_insertions(self, root: Snapshot, joint: Joint) -> Iterator[Insertion]:
        """Yield what joins the document's own text before the cursor with the text after it, as far as it is known."""
        with suppress(GrammarBoundError):
            yield from self._shortest.insertions(root, joint)
