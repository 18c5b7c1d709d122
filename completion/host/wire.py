"""Encodes requests and events as JSON and decodes events, for host and clients. Imports only the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

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

_T = TypeVar("_T", CompletionEvent, Suggestion, NextEdit)


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
    statistics, reason = message["statistics"], message["stop_reason"]
    return replace(
        _decoded(CompletionEvent, message),
        suggestions=tuple(_decoded(Suggestion, suggestion) for suggestion in message["suggestions"]),
        stop_reason=StopReason(reason) if reason else None,
        statistics=Statistics(**statistics) if statistics else None,
    )


def decode_next_edits(message: Mapping[str, Any]) -> NextEdits:
    """Decode the host's answer to a `NextEditRequest`."""
    return NextEdits(tuple(_decoded(NextEdit, edit) for edit in message["edits"]))


def _decoded(kind: type[_T], message: Mapping[str, Any]) -> _T:
    """Return a dataclass with the values of a message, tuples for its lists; raise KeyError where one is missing."""
    return kind(**{field.name: _frozen(message[field.name]) for field in fields(kind)})


def _frozen(value: Any) -> Any:  # noqa: ANN401 - a value of JSON
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
