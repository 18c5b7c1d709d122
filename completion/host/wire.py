"""Encodes requests and events as JSON and decodes events, for host and clients. Imports only the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from completion.edits import NextEdit, NextEditRequest, NextEdits
from completion.request import (
    Closing,
    CompletionEvent,
    CompletionRequest,
    Statistics,
    StopReason,
    Suggestion,
    WorkspaceUpdate,
)


def encode(
    message: CompletionRequest | CompletionEvent | NextEditRequest | NextEdits | WorkspaceUpdate | Closing,
) -> bytes:
    """Return a message as JSON in UTF-8, without line breaks."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=_members)
    return text.encode("utf-8", "replace")


def _members(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any of our dataclasses
    """Return a dataclass as a dictionary. `asdict` would copy every line of a document."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def decode_event(message: Mapping[str, Any]) -> CompletionEvent:
    """Decode an event of the host's stream."""
    statistics = message["statistics"]
    return CompletionEvent(
        suggestions=tuple(_decode_suggestion(suggestion) for suggestion in message["suggestions"]),
        done=message["done"],
        stop_reason=StopReason(message["stop_reason"]) if message["stop_reason"] else None,
        dropped=message["dropped"],
        statistics=Statistics(**statistics) if statistics else None,
        whole=message["whole"],
        greedy=message["greedy"],
    )


def decode_next_edits(message: Mapping[str, Any]) -> NextEdits:
    """Decode the host's answer to a `NextEditRequest`."""
    return NextEdits(
        tuple(
            NextEdit(edit["line"], tuple(edit["old"]), tuple(edit["new"]), edit["probability"])
            for edit in message["edits"]
        )
    )


def _decode_suggestion(message: Mapping[str, Any]) -> Suggestion:
    return Suggestion(
        text=message["text"],
        replace_after=message["replace_after"],
        log_probability=message["log_probability"],
        token_log_probabilities=tuple(message["token_log_probabilities"]),
        ends=tuple((characters, log_probability) for characters, log_probability in message["ends"]),
        pieces=tuple((drafter, text) for drafter, text in message["pieces"]),
        line=message["line"],
    )
