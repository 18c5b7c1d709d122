"""Joins the texts of one request with what stands after the cursor: insertions, and whether a text may need them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from itertools import islice

from completion.errors import GrammarBoundError
from completion.grammar.joint import Joint
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.lr.advance import Snapshot
from completion.grammar.shortest import Insertion, Shortest

_CLOSERS = re.compile(rb"[ \t]*[)\]}>\"'`;,:]+[ \t]*(?=\r?\n|\Z)")
_CLOSERS_BELOW = re.compile(rb"\s*[)\]}>\"'`;,:]+[ \t]*(?=\r?\n|\Z)")


class Missing(IntEnum):
    """How much may be missing between a text and what stands after the cursor."""

    NOTHING = 0
    AS_BEFORE = 1
    ANYTHING = 2


_MAX_OWN = 4  # insertions that may make the document sound without a text

Join = tuple[bytes, int]
"""What follows a text, and the number of bytes after the cursor in place of which it does."""


class Joining:
    """Finds what joins texts at one cursor with what stands after it.

    Args:
        shortest: Search of the language.
        acceptor: Acceptor of the language.
        root: Returns the snapshot where the texts begin; None if it is not known.
        begun: The healed run, with which each text begins and which is in the document.
        suffix: Text after the cursor.
        is_sound: Returns whether the document has no error with a text.
    """

    def __init__(
        self,
        shortest: Shortest,
        acceptor: Acceptor,
        root: Callable[[], Snapshot | None],
        begun: bytes,
        suffix: bytes,
        is_sound: Callable[[bytes], bool],
    ) -> None:
        self._shortest, self._acceptor, self._find_root = shortest, acceptor, root
        self._begun, self._suffix, self._is_sound = begun, suffix, is_sound
        self._joints: dict[int, Joint] = {}

    @cached_property
    def _root(self) -> Snapshot | None:
        return self._find_root()

    def joins(self, middle: bytes, missing: Missing, replaced: int = 0) -> Iterator[Join]:
        """Yield what may stand between a text and what follows it, the cheapest first.

        Closers after the cursor may belong to the text, as an editor adds them with their opener: what is missing then
        stands after them, or the text has them itself.

        Args:
            middle: The text, with the healed run.
            missing: How much may be missing. The document's own text before the cursor may lack something, too.
            replaced: Number of bytes after the cursor that the text replaces.

        Raises:
            GrammarBoundError: It is not known whether there is more, and anything may be missing.
        """
        if missing is Missing.NOTHING:
            return
        try:
            yield from self._joins(middle, missing, replaced)
        except GrammarBoundError:
            if missing is Missing.ANYTHING:
                raise

    def _joins(self, middle: bytes, missing: Missing, replaced: int) -> Iterator[Join]:
        if self._root is None:
            raise GrammarBoundError("The text before the cursor cannot be read.")
        for kept, left_out in self._places(replaced):
            snapshot = self._acceptor.read(self._root, middle + kept)
            if snapshot is None:
                continue
            for each in self._shortest.insertions(snapshot, self._joint(left_out)):
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

    def _joint(self, left_out: int) -> Joint:
        """Return the text after the cursor without its first bytes, to be joined as with the document's own text."""
        joint = self._joints.get(left_out)
        if joint is None:
            joint = self._joints[left_out] = Joint(self._acceptor, self._suffix[left_out:])
            own = next(self._own_insertions(joint), None)
            if own is not None and self._root is not None:
                joint.refer_to(own.after, self._shortest.level(self._root))
        return joint

    @cached_property
    def _cost(self) -> int:
        """Cost of joining the document's own text before the cursor with the text after it."""
        own = list(islice(self._own_insertions(self._joint(0)), _MAX_OWN))
        sound = (each.cost for each in own if self._is_sound(self._begun + each.text))
        return next(sound, own[0].cost if own else 0)

    def _own_insertions(self, joint: Joint) -> Iterator[Insertion]:
        """Yield what joins the document's own text before the cursor with the text after it, as far as it is known."""
        if self._root is None:
            return
        with suppress(GrammarBoundError):
            snapshot = self._acceptor.read(self._root, self._begun)
            if snapshot is not None:
                yield from self._shortest.insertions(snapshot, joint)
