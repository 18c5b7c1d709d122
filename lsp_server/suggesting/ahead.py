"""The suggestion after the one on the screen, generated in advance while the user reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from completion.request import SUPERSEDED
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Remainder, Situation, typed_since

LOOK_S = 0.6
"""Pause in typing after which the user is reading the suggestion, in seconds. In the study that the gate is trained on,
96 % of the accepted suggestions were looked at for longer; few pauses within a line are as long."""


class Ahead:
    """A generation for the text as it will be once the suggestion on the screen is accepted.

    It starts after a pause in typing and the alternatives of that suggestion. Only a document with exactly this text
    gets it.

    Args:
        generation: The generation, not started.
        start: Starts it and returns True, or returns False if it may not run; its argument says whether nobody waits
            for it yet. None for the rest of a suggestion, which is there already.
    """

    def __init__(self, generation: Generation, start: Callable[[bool], bool] | None) -> None:
        self.generation = generation
        self._start = start or (lambda _ahead: True)
        self._is_started = start is None
        self._pause: asyncio.Task[None] | None = None

    def wait(self, shown: Generation) -> None:
        """Start after a pause from now on, unless it has started."""
        if not self._is_started:
            self._end_pause()
            self._pause = asyncio.create_task(self._start_after(shown))

    def is_for(self, after: Situation) -> bool:
        """Return whether it is for this text and may still be of use."""
        return self._is_usable and typed_since(self.generation.start, after) == ""

    def is_ahead_of(self, now: Situation) -> bool:
        """Return whether typing alone leads from a text to the one that it is for."""
        return self._is_usable and typed_since(now, self.generation.start) is not None

    def take(self, now: Situation) -> Generation | None:
        """Return the generation, running or done, if it fits the text now; None otherwise."""
        if not self._is_usable or self.generation.remainders(now) is None:
            return None
        self._end_pause()
        return self.generation if self._is_started or self._start(False) else None  # noqa: FBT003 - see the class

    def cancel(self) -> None:
        """Stop it."""
        self._end_pause()
        self.generation.cancel()

    @property
    def _is_usable(self) -> bool:
        one = self.generation
        return not (one.cancelled or one.error or was_superseded(one))

    async def _start_after(self, shown: Generation) -> None:
        await asyncio.sleep(LOOK_S)
        if shown.is_streamed:
            await shown.ended.wait()
        self._is_started = not shown.cancelled and self._start(True)  # noqa: FBT003 - see the class

    def _end_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()


def was_superseded(generation: Generation) -> bool:
    """Return whether the engine has ended a generation that began in advance, because it got another request."""
    return bool(generation.follows) and generation.last is not None and generation.last.dropped == SUPERSEDED


def rest_of(shown: Generation, id_: str, now: Situation, first: Remainder) -> Generation | None:
    """Return what follows a shown remainder, for the text after its acceptance; None if nothing follows."""
    whole = next((one for one in shown.remainders(now) or () if one.index == first.index), None)
    if whole is None or shown.last is None or len(whole.text) <= len(first.text):
        return None
    if first.replace_after > whole.replace_after:  # it took closers that the rest needs
        return None
    suggestion = shown.last.suggestions[whole.index]
    gone = first.typed + len(first.text)
    text, after = whole.text[len(first.text) :], now.with_accepted(first)
    replaced = whole.replace_after - first.replace_after
    if text == after.suffix[:replaced]:
        return None
    left = replace(
        suggestion,
        text=text,
        replace_after=replaced,
        ends=tuple((end - gone, value) for end, value in suggestion.ends if end - gone <= len(text)),
    )
    rest = Generation(id_, after, is_streamed=shown.is_streamed, follows=shown.id)
    rest.last = replace(shown.last, suggestions=(left,), done=True, statistics=None, whole=1)
    rest.answerable.set()
    rest.ended.set()
    return rest
