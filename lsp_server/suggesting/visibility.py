"""What of a generation may be on the screen now: nothing, the start of its line, or all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.worth import RIGHT_FROM
from lsp_server.settings.item_range import ItemRange
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Remainder, inserted
from lsp_server.suggesting.query import Query
from lsp_server.suggesting.request_policy import RequestPolicy


@dataclass(frozen=True, slots=True)
class Visibility:
    """Decides when a suggestion appears, and how much of it; a manual request shows everything at once.

    Attributes:
        policy: Knows whether the user wants silence, and what is hardly ever accepted.
        clock: Returns the time in seconds, monotonic.
    """

    policy: RequestPolicy
    clock: Callable[[], float]

    def silence(self, query: Query, generation: Generation | None) -> EmptyReason | None:
        """Return why the user wants no automatic suggestions now; None for what was requested manually."""
        is_requested = query.invoked or (generation is not None and generation.is_requested)
        return None if is_requested else self.policy.silence(query.document)

    def unshown_s(self, query: Query, generation: Generation) -> float:
        """Return for how many seconds a suggestion may not appear yet, because the user may be typing quickly."""
        if query.invoked or generation.is_visible:
            return 0.0
        return query.received + query.settings.show_after_ms / 1000 - self.clock()

    def offered(self, query: Query, generation: Generation, left: tuple[Remainder, ...]) -> tuple[Remainder, ...]:
        """Return what a query shows of a generation's remainders; nothing if it is hidden, as is noted in it."""
        is_whole = query.invoked or generation.is_requested or query.settings.whole_lines
        left = tuple(one for one in left if query.selected is not None and one.text.startswith(query.selected))
        certain = generation.certain(query.situation, left)
        least = RIGHT_FROM.get(query.settings.gate, 0.0)
        offered = certain if is_whole or not left else generation.worthwhile(query.situation, certain, least)
        if query.item_range is ItemRange.CURSOR:
            offered = tuple(one for one in (inserted(each, query.situation) for each in offered) if one.text)
        strictness = Strictness.OFF if query.invoked else query.settings.gate
        withheld = len(left[0].text) - len(offered[0].text) if offered else 0
        hides = self.policy.acceptance.hides
        generation.hidden = not offered or hides(query.document.uri, generation, strictness, withheld)
        return () if generation.hidden else offered
