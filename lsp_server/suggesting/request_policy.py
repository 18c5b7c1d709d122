"""Whether a request may be answered at all: each refusal is a named reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Edit, Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.settings.table import Settings
from lsp_server.suggesting.acceptance_gate import AcceptanceGate

_REST_MAY_FOLLOW = re.compile(r"[\s)\]}>\"'`,;:.]*")

BYTES_PER_MB = 1_000_000

LONGEST_LINE_CHARACTERS = 10_000
"""Length of the longest line with suggestions, in code points: longer ones are minified code or data."""


@dataclass(slots=True)
class _Quiet:
    """No automatic suggestion in a document until a moment, and why."""

    until: float
    reason: EmptyReason


class RequestPolicy:
    """Knows the settings, the files that may be read, and what the user did a moment ago.

    Attributes:
        acceptance: Holds back what will hardly be accepted.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        refusal_of_file: Callable[[str], EmptyReason | None],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._refusal_of_file = refusal_of_file
        self._clock = clock
        self._quiet: dict[str, _Quiet] = {}
        self.acceptance = AcceptanceGate(clock)

    def refusal(self, document: Document, place: Place) -> EmptyReason | None:
        """Why nothing is suggested here, manually triggered or not; None if something may be."""
        settings = self._settings()
        if not settings.enabled:
            return EmptyReason.DISABLED
        if document.language in settings.languages_off:
            return EmptyReason.LANGUAGE_OFF
        refusal = self._refusal_of_file(document.notebook or document.uri)
        refusal = refusal or document.unfit(int(settings.max_file_mb * BYTES_PER_MB))
        is_long = document.lines.line_length(place.line) > LONGEST_LINE_CHARACTERS
        return refusal or (EmptyReason.LINE_TOO_LONG if is_long else None)

    def automatic_refusal(self, document: Document, place: Place) -> EmptyReason | None:
        """Why nothing is suggested here and now unless it is asked for."""
        quiet = self._quiet.get(document.uri)
        if quiet is not None and self._clock() < quiet.until:
            return quiet.reason
        return EmptyReason.INSIDE_WORD if _is_inside_word(document, place) else None

    def note_acceptance(self, uri: str) -> None:
        """A suggestion was accepted."""
        self._keep_quiet(uri, EmptyReason.AFTER_ACCEPTANCE)

    def note_rejection(self, uri: str) -> None:
        """A suggestion was dismissed."""
        self._keep_quiet(uri, EmptyReason.AFTER_REJECTION)

    def note_edits(self, uri: str, edits: Sequence[Edit]) -> None:
        """Text changed: after a deletion it stays quiet for a while, typing on after one ends that."""
        quiet = self._quiet.get(uri)
        if any(edit.removed and not edit.inserted for edit in edits):
            self._keep_quiet(uri, EmptyReason.DELETING)
        elif quiet is not None and quiet.reason is EmptyReason.DELETING:
            del self._quiet[uri]

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._quiet.pop(uri, None)
        self.acceptance.forget(uri)

    def _keep_quiet(self, uri: str, reason: EmptyReason) -> None:
        self._quiet[uri] = _Quiet(self._clock() + self._settings().quiet_ms / 1000, reason)


def _is_inside_word(document: Document, place: Place) -> bool:
    line = document.lines.line(place.line)
    before, after = line[: place.column], line[place.column :]
    touches_word = _is_word(before[-1:]) or _is_word(after[:1])
    return touches_word and not _REST_MAY_FOLLOW.fullmatch(after)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
