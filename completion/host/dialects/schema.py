"""Checks the bodies of requests against the frozen dataclasses: unknown fields and wrong types are refused by name."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from completion.host.errors import BodyInvalidError
from completion.request import (
    MAX_TOKENS_LIMIT,
    Closing,
    CompletionRequest,
    ContextFile,
    Sampling,
    WorkspaceFile,
    WorkspaceUpdate,
)

T = TypeVar("T")

for _type in (Closing, CompletionRequest, ContextFile, Sampling, WorkspaceFile, WorkspaceUpdate):
    with_config(ConfigDict(extra="forbid", strict=True))(_type)

REQUEST: TypeAdapter[CompletionRequest] = TypeAdapter(CompletionRequest)
WORKSPACE: TypeAdapter[WorkspaceUpdate] = TypeAdapter(WorkspaceUpdate)
CLOSING: TypeAdapter[Closing] = TypeAdapter(Closing)

MOST_STOPS = 64
"""Stop strings of a request; the event loop searches the text for each of them."""
_MOST_SUGGESTIONS = 16


def parse_request(body: bytes) -> CompletionRequest:
    """Read and check the body of a completion request.

    Raises:
        BodyInvalidError: Names each field that cannot be used, never its value.
    """
    request = parse_body(REQUEST, body)
    check_request(request)
    return request


def parse_body(adapter: TypeAdapter[T], body: bytes) -> T:
    """Read a JSON body as one type.

    Raises:
        BodyInvalidError: Names each field that cannot be used, never its value.
    """
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise BodyInvalidError(f"The body cannot be used. {'; '.join(faults[:5])}.") from None


def check_request(request: CompletionRequest) -> None:
    """Refuse numbers outside their range.

    Raises:
        BodyInvalidError: Names the first field that is out of range, its value and the range.
    """
    sampling = request.sampling
    ranges: tuple[tuple[str, float, float, float], ...] = (
        ("suggestions", request.suggestions, 1, _MOST_SUGGESTIONS),
        ("max_tokens", request.max_tokens, 1, MAX_TOKENS_LIMIT),
        ("max_bytes", request.max_bytes, 1, 1 << 20),
        ("time_budget_ms", request.time_budget_ms, 0, 600_000),
        ("sampling.temperature", sampling.temperature, 0, 10),
        ("sampling.top_p", sampling.top_p, 1e-6, 1),
        ("sampling.min_p", sampling.min_p, 0, 1),
        ("sampling.seed", sampling.seed, 0, (1 << 63) - 1),
    )
    for name, value, low, high in ranges:
        if not low <= value <= high:
            shown = "beyond 1e300" if abs(value) > 1e300 else f"{value:g}"  # a larger int has no float
            raise BodyInvalidError(f"{name} is {shown}; it must lie between {low:g} and {high:g}.")
