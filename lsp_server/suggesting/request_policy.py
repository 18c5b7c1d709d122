"""The request policy: whether a request may be answered, and what of a suggestion may be on the screen now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.features import is_word_character
from lsp_server.gate.worth import RIGHT_FROM
from lsp_server.settings.client_profile import ItemRange
from lsp_server.settings.table import Settings
from lsp_server.suggesting.acceptance_gate import AcceptanceGate
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import Remainder, inserted
from lsp_server.suggesting.query import Query
from lsp_server.suggesting.quiet_controls import QuietControls

BYTES_PER_MB = 1_000_000

MAX_LINE_CHARACTERS = 10_000
"""Maximum length of a line that gets suggestions, in code points. Longer lines are minified code or data."""


class RequestPolicy:
    """Decides which requests are refused, by the settings, the file, and the user's last actions.

    It also decides when a suggestion appears, and how much of it; a manual request shows everything at once.
    """

    def __init__(
        self,
        settings: Callable[[str], Settings],
        quiet: QuietControls,
        refusal_of_file: Callable[[str], EmptyReason | None],
        consult: Callable[[str], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self.quiet = quiet
        self._refusal_of_file = refusal_of_file
        self._consult = consult
        self.clock = clock
        # By document: why there are no automatic suggestions, and until when, by the clock.
        self._periods: dict[str, dict[EmptyReason, float]] = {}
        self.acceptance = AcceptanceGate(clock)

    async def consult(self, document: Document) -> None:
        """Wait until `refusal` answers at once; the document may change meanwhile."""
        await self._consult(document.home)

    def refusal(self, document: Document, place: Place) -> EmptyReason | None:
        """Return why every request at a position is refused; None if requests are allowed."""
        refusal = self.quiet.off(document) or self._refusal_of_file(document.home)
        refusal = refusal or document.unfit(int(self._settings(document.home).max_file_mb * BYTES_PER_MB))
        is_long = document.lines.line_length(place.line) > MAX_LINE_CHARACTERS
        return refusal or (EmptyReason.LINE_TOO_LONG if is_long else None)

    def silence(self, document: Document) -> EmptyReason | None:
        """Return why no text may appear by itself in a document now, not even one that is generated already."""
        periods = self._periods.get(document.uri, {}).items()
        return next((why for why, until in periods if self.clock() < until), None) or self.quiet.silence(document)

    def silence_for(self, query: Query, generation: Generation | None) -> EmptyReason | None:
        """Return why the user wants no automatic suggestions now; None for what was requested manually."""
        is_requested = query.invoked or (generation is not None and generation.is_requested)
        return None if is_requested else self.silence(query.document)

    def unshown_s(self, query: Query, generation: Generation) -> float:
        """Return for how many seconds a suggestion may not appear yet, because the user may be typing quickly."""
        if query.invoked or generation.is_visible:
            return 0.0
        return query.received + query.settings.show_after_ms / 1000 - self.clock()

    def offered(self, query: Query, generation: Generation, left: tuple[Remainder, ...]) -> tuple[Remainder, ...]:
        """Return what a query shows of a generation's remainders; nothing if it is hidden, as is noted in it."""
        is_whole = query.invoked or generation.is_requested or query.settings.whole_lines
        left = tuple(one for one in left if query.selected is not None and one.text.startswith(query.selected))
        least = RIGHT_FROM.get(query.settings.gate, 0.0)
        first = generation.shown_of(left[0], query.situation, is_whole=is_whole, least=least) if left else None
        offered = (first, *left[1:]) if first is not None else ()
        if query.item_range is ItemRange.CURSOR:
            offered = tuple(one for one in (inserted(each, query.situation) for each in offered) if one.text)
        strictness = Strictness.OFF if query.invoked else query.settings.gate
        withheld = len(left[0].text) - len(offered[0].text) if offered else 0
        hides = self.acceptance.hides
        generation.hidden = not offered or hides(generation, strictness, withheld)
        return () if generation.hidden else offered

    def automatic_refusal(self, document: Document, place: Place) -> EmptyReason | None:
        """Return why an automatic request at a position is refused; None if it is allowed."""
        line = document.lines.line(place.line)
        before, after = line[: place.column], line[place.column :]
        if not before.strip() and after.strip() and after[0].isspace():
            return EmptyReason.IN_INDENTATION
        return EmptyReason.INSIDE_WORD if begins_with_word(after) else None

    def note_rejection(self, document: Document) -> None:
        """Note that a suggestion was dismissed: a quiet period begins."""
        self._keep_quiet(document, EmptyReason.AFTER_REJECTION)

    def note_edits(self, document: Document, edits: Sequence[Edit]) -> None:
        """Note the edits of one event. Only deletions begin a quiet period, inserted text ends that of a deletion.

        With the key that inserts text, an editor may delete other text, such as the blanks of a line that was left.
        Who removes indentation alone is about to write a line at another depth.
        """
        if any(edit.inserted for edit in edits):
            self._periods.get(document.uri, {}).pop(EmptyReason.DELETING, None)
        elif any(edit.removed for edit in edits) and not _dedent(document, edits):
            self._keep_quiet(document, EmptyReason.DELETING)

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self._periods.pop(uri, None)
        self.quiet.document_closed(uri)

    def _keep_quiet(self, document: Document, reason: EmptyReason) -> None:
        until = self.clock() + self._settings(document.home).quiet_ms / 1000
        self._periods.setdefault(document.uri, {})[reason] = until


def _dedent(document: Document, edits: Sequence[Edit]) -> bool:
    """Return whether the edits of one event, of which the document has the result, remove a line's indentation only."""
    if len(edits) != 1:
        return False
    (edit,) = edits
    before = document.lines.line(edit.start.line)[: edit.start.column]
    return not (before + edit.removed).strip(" \t")


def begins_with_word(after: str) -> bool:
    """Return whether the text after a cursor begins with a word, which would follow the suggestion without a break."""
    return is_word_character(after[:1])
