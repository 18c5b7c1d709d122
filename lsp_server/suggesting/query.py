"""A request of the editor and its answer, as the server's parts pass them on."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.experiment import Arm
from lsp_server.settings.table import Settings
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Remainder, Situation

MORE_WHERE_INVOKED = 2
"""Who asks by a key looks for something else than what came by itself."""

SITUATION_CHARACTERS = 8_000
"""Code points kept on each side of a request's cursor: what narrowing and the gate compare. Suggestions are shorter."""


@dataclass(frozen=True, slots=True)
class Query:
    """One request of the editor, with the text as it was when it arrived.

    Attributes:
        received: When it arrived, by the completer's clock, in seconds.
        settings: The settings that it is answered by.
        arm: Which side of a running experiment they belong to.
        single: The client shows one suggestion: no others are asked for.
    """

    document: Document
    version: int
    place: Place
    position: types.Position
    situation: Situation
    invoked: bool
    received: float
    settings: Settings
    arm: Arm
    single: bool = False

    @property
    def enough(self) -> int:
        """How many suggestions there should be to choose from."""
        return 1 if self.single else self.settings.suggestions

    @property
    def wanted(self) -> int:
        """How many suggestions are asked of the engine."""
        return self.enough + MORE_WHERE_INVOKED if self.invoked and self.enough > 1 else self.enough


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query is answered with: remainders to insert at its position, or the reason of nothing.

    Attributes:
        generation: What it comes from; None where the engine was not asked.
        detail: What a filter or the engine said, beside the reason.
    """

    generation: Generation | None = None
    remainders: tuple[Remainder, ...] = ()
    reason: EmptyReason | None = None
    detail: str = ""

    @property
    def id(self) -> str:
        """The completion's id; "" where nothing was generated."""
        return self.generation.id if self.generation else ""


def situation_at(document: Document, place: Place) -> Situation:
    """The text around a place, `SITUATION_CHARACTERS` on each side."""
    lines = document.lines
    prefix, suffix = lines.last_before(place, SITUATION_CHARACTERS), lines.first_after(place, SITUATION_CHARACTERS)
    offset = lines.offset(place)
    return Situation(prefix, suffix, offset - len(prefix), len(lines) - offset - len(suffix))


def answer_from(query: Query, generation: Generation) -> Answer | None:
    """The answer that a generation gives to a query, its first text complete; None if the query has to start anew."""
    if generation.error is not None:
        return Answer(generation, reason=EmptyReason.ENGINE_ERROR, detail=generation.error.code)
    if generation.last is None or not generation.is_first_whole:
        return None
    left = generation.remainders(query.situation)
    if left:
        return Answer(generation, left)
    if generation.last.dropped:
        return Answer(generation, reason=EmptyReason.FILTERED, detail=generation.last.dropped)
    if not any(suggestion.text for suggestion in generation.last.suggestions):
        return Answer(generation, reason=EmptyReason.MODEL_SILENT)
    return None
