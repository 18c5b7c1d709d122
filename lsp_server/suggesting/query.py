"""A request of the editor and its answer, as the parts of the server exchange them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from lsp_server.documents.documents import Document
from lsp_server.documents.edit_log import last_insertion
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.client_profile import ClientProfile, ItemRange
from lsp_server.settings.experiment import Arm
from lsp_server.settings.table import Settings
from lsp_server.suggesting.closers import CLOSERS, MAX_CLOSERS
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Remainder, Situation

EXTRA_WHEN_INVOKED = 2
"""Number of suggestions that a manual request asks for beyond the setting: the user wants others to choose from."""

_OPENED_LINE = re.compile(r"((?:\r\n|\r|\n)[ \t]*)(?:\r\n|\r|\n)[ \t]*\Z")
"""The line end that editors insert between a bracket and its closer, and the one that they put before the closer."""

_END_TAG = re.compile(r"</[\w.:-]*>")

_UNWANTED = {reason.value: reason for reason in (EmptyReason.IN_COMMENT, EmptyReason.IN_STRING)}

SITUATION_CHARACTERS = 8_000
"""Number of code points kept on each side of a request's cursor for narrowing and the gate. Suggestions are shorter."""


@dataclass(frozen=True, slots=True)
class Query:
    """One request of the editor, with the text around its cursor when it arrived.

    Attributes:
        received: Time of arrival by the completer's clock, in seconds.
        settings: The settings for this request.
        arm: Arm of the running experiment that the settings belong to.
        single: Whether the client shows only one suggestion, so that no alternatives are requested.
        profile: What the client does with suggestions.
        selected: The text after the cursor that the selected item of the client's completion list would insert, ""
            without one; None if it would change text before the cursor, so that no suggestion continues it.
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
    profile: ClientProfile = field(default_factory=ClientProfile)
    selected: str | None = ""

    @property
    def shows_start(self) -> bool:
        """Whether the answer has of a suggestion only what is probably right."""
        return not (self.invoked or self.settings.whole_lines)

    @property
    def item_range(self) -> ItemRange:
        """What the items of the answer replace after the cursor: as configured, else as the client is known."""
        configured = self.settings.item_range
        return self.profile.item_range if configured is ItemRange.AUTO else configured

    @property
    def configured(self) -> int:
        """Number of suggestions by the settings, 1 if the client shows only one."""
        return 1 if self.single else self.settings.suggestions

    @property
    def wanted(self) -> int:
        """Number of suggestions to request from the engine."""
        return self.configured + EXTRA_WHEN_INVOKED if self.invoked and self.configured > 1 else self.configured


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query: remainders to insert at its position, or an empty reason.

    Attributes:
        generation: The generation that it comes from; None if the engine got no request.
        detail: The filter's or the engine's own reason; "" if there is none.
    """

    generation: Generation | None = None
    remainders: tuple[Remainder, ...] = ()
    reason: EmptyReason | None = None
    detail: str = ""

    @property
    def id(self) -> str:
        """The completion's id; "" without a generation."""
        return self.generation.id if self.generation else ""


def selected_text(query: Query, selected: types.SelectedCompletionInfo | None) -> str | None:
    """Return what a selected list item would insert after the cursor; None if it also changes text before it."""
    if selected is None:
        return ""
    lines = query.document.lines
    typed = lines.between(query.document.place(selected.range.start), query.place)
    return selected.text.removeprefix(typed) if selected.text.startswith(typed) else None


def situation_at(document: Document, place: Place) -> Situation:
    """Return the text around a position, up to `SITUATION_CHARACTERS` on each side."""
    lines = document.lines
    prefix, suffix = lines.last_before(place, SITUATION_CHARACTERS), lines.first_after(place, SITUATION_CHARACTERS)
    offset = lines.offset(place)
    return Situation(prefix, suffix, offset - len(prefix), len(lines) - offset - len(suffix))


def likely_situations(document: Document, edits: Sequence[Edit]) -> list[Situation]:
    """Return the text around the likely cursors after the edits of an event.

    These are after the text that was inserted last, and before closers at its end, before the line end that puts a
    closer on a line of its own, or before an end tag.
    """
    edit = last_insertion(edits)
    typed = len(edit.inserted)
    fewest = typed - min(MAX_CLOSERS, typed - len(edit.inserted.rstrip("".join(CLOSERS))))
    counts = [*range(typed, fewest - 1, -1)]
    if opened := _OPENED_LINE.search(edit.inserted):
        counts.append(opened.end(1))
    if _END_TAG.fullmatch(edit.inserted):
        counts.append(0)
    return [situation_at(document, document.lines.advance(edit.start, count)) for count in counts]


def answer_from(query: Query, generation: Generation) -> Answer | None:
    """Return the answer of a generation to a query; None if its first suggestion is incomplete or no longer fits."""
    if generation.error is not None:
        return Answer(generation, reason=EmptyReason.ENGINE_ERROR, detail=generation.error.code)
    if generation.last is None or not generation.is_answerable:
        return None
    remainders = generation.remainders(query.situation)
    if remainders:
        return Answer(generation, remainders)
    if dropped := generation.last.dropped:
        unwanted = _UNWANTED.get(dropped)
        return Answer(generation, reason=unwanted or EmptyReason.FILTERED, detail="" if unwanted else dropped)
    if not any(suggestion.text for suggestion in generation.last.suggestions):
        return Answer(generation, reason=EmptyReason.MODEL_SILENT)
    return None
