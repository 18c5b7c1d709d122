"""Empty reasons: why a request shows nothing. Each early return of a request has its own."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class EmptyReason(StrEnum):
    """Why a request shows nothing. Telemetry counts the reasons by their values; the status shows the lasting ones.

    The reasons of the quiet controls are not among these: `draftline/status` has a field of its own for them.

    Attributes:
        sentence: The sentence that the status shows.
        lasting: Whether the next request in the same document will most likely have the same reason.
    """

    sentence: str
    lasting: bool

    def __new__(cls, value: str, sentence: str, lasting: bool = False) -> Self:  # noqa: FBT001, FBT002 - a row of the table
        """Return the reason of one row below."""
        reason = str.__new__(cls, value)
        reason._value_, reason.sentence, reason.lasting = value, sentence, lasting
        return reason

    DISABLED = "disabled", "Completion is switched off."
    LANGUAGE_OFF = "language_off", "Completion is switched off for this language."
    FILE_OFF = "file_off", "Completion is switched off for this file."
    WORKSPACE_OFF = "workspace_off", "Completion is switched off for this workspace."
    MANUAL = "manual", "Suggestions are made on request only."
    SNOOZED = "snoozed", "Automatic suggestions are snoozed."
    IN_COMMENT = "in_comment", "The cursor is in a comment, and `in_comments` is off."
    IN_STRING = "in_string", "The cursor is in a string, and `in_strings` is off."
    TYPING = "typing", "The user typed on before `show_after_ms`."
    NOT_OPEN = "not_open", "The editor has not opened this document in the language server."
    OUTDATED = "outdated", "The document changed after the request."
    TOO_LARGE = "too_large", "The document is larger than `max_file_mb`.", True
    LINE_TOO_LONG = "line_too_long", "The line is longer than 10,000 characters.", True
    BINARY = "binary", "The document is binary.", True
    NOT_UTF8 = "not_utf8", "The document is not valid UTF-8.", True
    SECRET_FILE = "secret_file", "The file may hold secrets: it is never read.", True
    IGNORED_FILE = "ignored_file", "The file is ignored by .gitignore or .draftlineignore.", True
    NOT_SENT = (
        "not_sent",
        (
            "This file is not sent to the server of `engine_url`, because you have not allowed it. "
            "Answer the editor's question, or name its folder in `engine_send` of your own settings."
        ),
        True,
    )
    INSIDE_WORD = "inside_word", "The cursor is inside or directly before a word."
    IN_INDENTATION = "in_indentation", "The cursor is before or inside the indentation of a line."
    DELETING = "deleting", "Text is being deleted."
    AFTER_REJECTION = "after_rejection", "A suggestion was dismissed a moment ago."
    NOT_READY = "not_ready", "The model is not ready yet."
    SUPERSEDED = "superseded", "A newer request replaced this one."
    CANCELLED = "cancelled", "The editor cancelled the request."
    ENGINE_ERROR = "engine_error", "The engine failed."
    MODEL_SILENT = "model_silent", "The model generated no text."
    FILTERED = "filtered", "A filter dropped the suggestion."
    # its value as stores of earlier versions have it
    HIDDEN = "held_back", "The suggestion is unlikely to be accepted. Lower `gate` to see more suggestions."
