"""Empty reasons: why a request shows nothing. Each early return of a request has its own."""

from __future__ import annotations

from enum import StrEnum


class EmptyReason(StrEnum):
    """Why a request shows nothing. Telemetry counts the reasons by their values; the status shows the lasting ones.

    The reasons of the quiet controls are not among these: `draftline/status` has a field of its own for them.
    """

    DISABLED = "disabled"
    LANGUAGE_OFF = "language_off"
    FILE_OFF = "file_off"
    WORKSPACE_OFF = "workspace_off"
    MANUAL = "manual"
    SNOOZED = "snoozed"
    IN_COMMENT = "in_comment"
    IN_STRING = "in_string"
    TYPING = "typing"
    NOT_OPEN = "not_open"
    OUTDATED = "outdated"
    TOO_LARGE = "too_large"
    LINE_TOO_LONG = "line_too_long"
    BINARY = "binary"
    NOT_UTF8 = "not_utf8"
    SECRET_FILE = "secret_file"
    IGNORED_FILE = "ignored_file"
    NOT_SENT = "not_sent"
    INSIDE_WORD = "inside_word"
    IN_INDENTATION = "in_indentation"
    DELETING = "deleting"
    AFTER_REJECTION = "after_rejection"
    NOT_READY = "not_ready"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    ENGINE_ERROR = "engine_error"
    MODEL_SILENT = "model_silent"
    FILTERED = "filtered"
    HIDDEN = "held_back"  # as stores of earlier versions have it

    @property
    def sentence(self) -> str:
        """The sentence that the status shows."""
        return _SENTENCES[self]

    @property
    def lasting(self) -> bool:
        """Whether the next request in the same document will most likely have the same reason."""
        return self in _LASTING


_SENTENCES = {
    EmptyReason.DISABLED: "Completion is switched off.",
    EmptyReason.LANGUAGE_OFF: "Completion is switched off for this language.",
    EmptyReason.FILE_OFF: "Completion is switched off for this file.",
    EmptyReason.WORKSPACE_OFF: "Completion is switched off for this workspace.",
    EmptyReason.MANUAL: "Suggestions are made on request only.",
    EmptyReason.SNOOZED: "Automatic suggestions are snoozed.",
    EmptyReason.IN_COMMENT: "The cursor is in a comment, and `in_comments` is off.",
    EmptyReason.IN_STRING: "The cursor is in a string, and `in_strings` is off.",
    EmptyReason.TYPING: "The user typed on before `show_after_ms`.",
    EmptyReason.NOT_OPEN: "The editor has not opened this document in the language server.",
    EmptyReason.OUTDATED: "The document changed after the request.",
    EmptyReason.TOO_LARGE: "The document is larger than `max_file_mb`.",
    EmptyReason.LINE_TOO_LONG: "The line is longer than 10,000 characters.",
    EmptyReason.BINARY: "The document is binary.",
    EmptyReason.NOT_UTF8: "The document is not valid UTF-8.",
    EmptyReason.SECRET_FILE: "The file may hold secrets: it is never read.",
    EmptyReason.IGNORED_FILE: "The file is ignored by .gitignore or .draftlineignore.",
    EmptyReason.NOT_SENT: "This file is not sent to the server of `engine_url`, because you have not allowed it. "
    "Answer the editor's question, or name its folder in `engine_send` of your own settings.",
    EmptyReason.INSIDE_WORD: "The cursor is inside or directly before a word.",
    EmptyReason.IN_INDENTATION: "The cursor is before or inside the indentation of a line.",
    EmptyReason.DELETING: "Text is being deleted.",
    EmptyReason.AFTER_REJECTION: "A suggestion was dismissed a moment ago.",
    EmptyReason.NOT_READY: "The model is not ready yet.",
    EmptyReason.SUPERSEDED: "A newer request replaced this one.",
    EmptyReason.CANCELLED: "The editor cancelled the request.",
    EmptyReason.ENGINE_ERROR: "The engine failed.",
    EmptyReason.MODEL_SILENT: "The model generated no text.",
    EmptyReason.FILTERED: "A filter dropped the suggestion.",
    EmptyReason.HIDDEN: "The suggestion is unlikely to be accepted. Lower `gate` to see more suggestions.",
}

_LASTING = frozenset(
    {
        EmptyReason.TOO_LARGE,
        EmptyReason.LINE_TOO_LONG,
        EmptyReason.BINARY,
        EmptyReason.NOT_UTF8,
        EmptyReason.SECRET_FILE,
        EmptyReason.IGNORED_FILE,
        EmptyReason.NOT_SENT,
    }
)
