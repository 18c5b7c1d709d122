"""Why a request shows nothing: each early return of the request's life has its name here."""

from __future__ import annotations

from enum import StrEnum


class EmptyReason(StrEnum):
    """The named reason of an empty answer. Telemetry counts them, and the status names those that last."""

    DISABLED = "disabled"
    LANGUAGE_OFF = "language_off"
    NOT_OPEN = "not_open"
    OUTDATED = "outdated"
    TOO_LARGE = "too_large"
    LINE_TOO_LONG = "line_too_long"
    BINARY = "binary"
    NOT_UTF8 = "not_utf8"
    SECRET_FILE = "secret_file"
    IGNORED_FILE = "ignored_file"
    INSIDE_WORD = "inside_word"
    DELETING = "deleting"
    AFTER_ACCEPTANCE = "after_acceptance"
    AFTER_REJECTION = "after_rejection"
    NOT_READY = "not_ready"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    ENGINE_ERROR = "engine_error"
    MODEL_SILENT = "model_silent"
    FILTERED = "filtered"
    HELD_BACK = "held_back"

    @property
    def sentence(self) -> str:
        """What a person reads in the status."""
        return _SENTENCES[self]

    @property
    def lasting(self) -> bool:
        """Whether the next keystroke in the same document meets the same reason: worth telling the user."""
        return self in _LASTING


_SENTENCES = {
    EmptyReason.DISABLED: "Completion is switched off.",
    EmptyReason.LANGUAGE_OFF: "Completion is switched off for this language.",
    EmptyReason.NOT_OPEN: "The editor has not opened this document here.",
    EmptyReason.OUTDATED: "The document changed in the meantime.",
    EmptyReason.TOO_LARGE: "The document is larger than max_file_mb.",
    EmptyReason.LINE_TOO_LONG: "The line is longer than 10,000 characters.",
    EmptyReason.BINARY: "The document is binary.",
    EmptyReason.NOT_UTF8: "The document is not valid UTF-8.",
    EmptyReason.SECRET_FILE: "The file may hold secrets: it is never read.",
    EmptyReason.IGNORED_FILE: "The file is named by .gitignore or .draftlineignore.",
    EmptyReason.INSIDE_WORD: "The cursor stands inside a word.",
    EmptyReason.DELETING: "Text is being deleted.",
    EmptyReason.AFTER_ACCEPTANCE: "A suggestion was accepted a moment ago.",
    EmptyReason.AFTER_REJECTION: "A suggestion was dismissed a moment ago.",
    EmptyReason.NOT_READY: "The model is not ready yet.",
    EmptyReason.SUPERSEDED: "A newer request took over.",
    EmptyReason.CANCELLED: "The editor withdrew the request.",
    EmptyReason.ENGINE_ERROR: "The engine failed.",
    EmptyReason.MODEL_SILENT: "The model had nothing to add.",
    EmptyReason.FILTERED: "A filter held the suggestion back.",
    EmptyReason.HELD_BACK: "It would hardly have been accepted; a lower `gate` shows more.",
}

_LASTING = frozenset(
    {
        EmptyReason.DISABLED,
        EmptyReason.LANGUAGE_OFF,
        EmptyReason.TOO_LARGE,
        EmptyReason.LINE_TOO_LONG,
        EmptyReason.BINARY,
        EmptyReason.NOT_UTF8,
        EmptyReason.SECRET_FILE,
        EmptyReason.IGNORED_FILE,
    }
)
