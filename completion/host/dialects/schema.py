"""Validation of request bodies against the frozen dataclasses. Errors name unknown fields and wrong types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from completion.edits import MAX_DIAGNOSTICS, MAX_EDITS, MAX_MESSAGE_CHARACTERS, Diagnostic, LineEdit, NextEditRequest
from completion.host.errors import BodyInvalidError
from completion.request import (
    MAX_HISTORY_CHARACTERS,
    MAX_TOKENS_LIMIT,
    Closing,
    CompletionRequest,
    ContextFile,
    Message,
    Sampling,
    WorkspaceEdit,
    WorkspaceFile,
    WorkspaceUpdate,
)

T = TypeVar("T")

for _type in (
    Closing,
    CompletionRequest,
    ContextFile,
    Diagnostic,
    LineEdit,
    Message,
    NextEditRequest,
    Sampling,
    WorkspaceEdit,
    WorkspaceFile,
    WorkspaceUpdate,
):
    with_config(ConfigDict(extra="forbid", strict=True))(_type)

REQUEST: TypeAdapter[CompletionRequest] = TypeAdapter(CompletionRequest)
WORKSPACE: TypeAdapter[WorkspaceUpdate] = TypeAdapter(WorkspaceUpdate)
CLOSING: TypeAdapter[Closing] = TypeAdapter(Closing)
NEXT_EDIT: TypeAdapter[NextEditRequest] = TypeAdapter(NextEditRequest)

MAX_STOPS = 64
"""Maximum number of stop strings in a request; the event loop searches the text for each of them."""
SMALLEST_TOP_P = 1e-6
"""Minimum of `top_p`: with it, only the likeliest token is in the nucleus."""
_MAX_SUGGESTIONS = 16


def parse_request(body: bytes) -> CompletionRequest:
    """Parse and validate the body of a completion request.

    Raises:
        BodyInvalidError: A field is unknown, has the wrong type or is out of range.
    """
    request = parse_body(REQUEST, body)
    check_request(request)
    return request


def parse_next_edit(body: bytes) -> NextEditRequest:
    """Parse and validate the body of a request for next edits.

    Raises:
        BodyInvalidError: A field is unknown or has the wrong type, or an edit is not part of the document.
    """
    request = parse_body(NEXT_EDIT, body)
    if len(request.edits) > MAX_EDITS:
        raise BodyInvalidError(f"The request has {len(request.edits)} edits; it may have {MAX_EDITS}.")
    for edit in request.edits:
        if edit.line < 0 or request.lines[edit.line : edit.line + len(edit.new)] != edit.new:
            raise BodyInvalidError(f"The document does not have an edit's new lines at line {edit.line}.")
    told = request.diagnostics
    if len(told) > MAX_DIAGNOSTICS or any(len(each.message) > MAX_MESSAGE_CHARACTERS for each in told):
        raise BodyInvalidError(
            f"A request may have {MAX_DIAGNOSTICS} diagnostics of {MAX_MESSAGE_CHARACTERS} characters each."
        )
    return request


def parse_body(adapter: TypeAdapter[T], body: bytes) -> T:
    """Parse a JSON body as one type.

    Raises:
        BodyInvalidError: The body is not valid. The message names up to five fields, without their values, which may
            be source text.
    """
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise BodyInvalidError(f"The request's body is invalid. {'; '.join(faults[:5])}.") from None


def check_request(request: CompletionRequest, names: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that every number is in its range, and that the text is a document or a conversation.

    Args:
        request: The request.
        names: Names of fields in the client's interface, where they differ.

    Raises:
        BodyInvalidError: A number is out of range. The message has its field, its value and the range.
    """
    if request.messages and request.suffix:
        raise BodyInvalidError("A request with messages has no suffix. Leave it out.")
    sampling = request.sampling
    ranges: tuple[tuple[str, float, float, float], ...] = (
        ("suggestions", request.suggestions, 1, _MAX_SUGGESTIONS),
        ("max_tokens", request.max_tokens, 1, MAX_TOKENS_LIMIT),
        ("max_bytes", request.max_bytes, 1, 1 << 20),
        ("max_lines", request.max_lines, 0, 10_000),
        ("time_budget_ms", request.time_budget_ms, 0, 600_000),
        ("the length of history", len(request.history), 0, MAX_HISTORY_CHARACTERS),
        ("sampling.temperature", sampling.temperature, 0, 10),
        ("sampling.top_p", sampling.top_p, SMALLEST_TOP_P, 1),
        ("sampling.min_p", sampling.min_p, 0, 1),
        ("sampling.seed", sampling.seed, 0, (1 << 63) - 1),
    )
    for name, value, low, high in ranges:
        if not low <= value <= high:
            shown = "beyond 1e300" if abs(value) > 1e300 else f"{value:g}"  # a larger int has no float
            raise BodyInvalidError(f"{names.get(name, name)} is {shown}; it must be between {low:g} and {high:g}.")
