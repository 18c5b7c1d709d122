"""Validation of request bodies against the frozen dataclasses. Errors name unknown fields and wrong types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError, with_config
from pydantic_core import CoreSchema, SchemaValidator
from starlette.requests import Request

from completion import edits, request
from completion.edits import MAX_DIAGNOSTICS, MAX_EDITS, MAX_HISTORY_CHARACTERS, MAX_MESSAGE_CHARACTERS, NextEditRequest
from completion.host import open_texts
from completion.host.errors import BodyInvalidError
from completion.host.open_texts import ShortUpdate
from completion.request import (
    MAX_NAME_CHARACTERS,
    MAX_NAMES,
    MAX_TOKENS_LIMIT,
    Closing,
    CompletionRequest,
    Sampling,
)

T = TypeVar("T")

for _type in (each for module in (edits, request, open_texts) for each in vars(module).values()):
    if isinstance(_type, type) and is_dataclass(_type):
        with_config(ConfigDict(extra="forbid", strict=True))(_type)


def _ending_at_faults(schema: Any) -> Any:  # noqa: ANN401 - a part of a core schema, which is nested like JSON
    """Return a schema whose lists end at their first item with a fault: a message for each costs more than the list."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_ending_at_faults, schema))
    if not isinstance(schema, dict):
        return schema
    parts = {name: _ending_at_faults(part) for name, part in schema.items()}
    return parts | ({"fail_fast": True} if schema.get("type") in ("list", "tuple") else {})


class ClientModel(BaseModel):
    """A type of another interface's bodies."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema, which pydantic compiles once for each model."""
        schema: CoreSchema = _ending_at_faults(handler(source))
        return schema

    @classmethod
    async def read(cls, request: Request) -> Self:
        """Read and parse a JSON body; raise a BodyInvalidError if it is not valid."""
        return await _parsed(request, cls.model_validate_json)


def _reader(kind: type[T]) -> Callable[[Request], Awaitable[T]]:
    """Return a function that reads a JSON body of a type of ours."""
    validate = SchemaValidator(_ending_at_faults(TypeAdapter(kind).core_schema)).validate_json
    return lambda request: _parsed(request, validate)


async def _parsed(request: Request, parse: Callable[[bytes], T]) -> T:
    """Read and parse a JSON body, whose size and contents `Guard` bounds.

    Raises:
        BodyInvalidError: The body is not valid. The message names up to five fields, without their values, which may be
            source text.
    """
    text = b"".join([part async for part in request.stream()])  # `Request.body` would keep it as long as the reply
    try:
        return parse(text)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise BodyInvalidError(f"The request's body is invalid. {'; '.join(faults[:5])}.") from None


_completion, _next_edit = _reader(CompletionRequest), _reader(NextEditRequest)
read_workspace, read_closing = _reader(ShortUpdate), _reader(Closing)

MAX_STOPS = 64
"""Maximum number of stop strings in a request; the event loop searches the text for each of them."""
Stops = str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None
"""The stop strings of a request."""
SMALLEST_TOP_P = 1e-6
"""Minimum of `top_p`: with it, only the likeliest token is in the nucleus."""
_MAX_SUGGESTIONS = 16


async def read_request(body: Request) -> CompletionRequest:
    """Read and validate the body of a completion request.

    Raises:
        BodyInvalidError: A field is unknown, has the wrong type or is out of range.
    """
    request = await _completion(body)
    check_request(request)
    return request


async def read_next_edit(body: Request) -> NextEditRequest:
    """Read and validate the body of a request for next edits.

    Raises:
        BodyInvalidError: A field is unknown or has the wrong type, or an edit is not part of the document.
    """
    request = await _next_edit(body)
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


def check_request(request: CompletionRequest, names: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that every number is in its range, and that the text is a document or a conversation.

    `names` has the names of fields in the client's interface, where they differ.

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
        ("the number of names", len(request.names), 0, MAX_NAMES),
        ("the length of a name", max(map(len, request.names), default=0), 0, MAX_NAME_CHARACTERS),
        ("sampling.temperature", sampling.temperature, 0, 10),
        ("sampling.top_p", sampling.top_p, SMALLEST_TOP_P, 1),
        ("sampling.min_p", sampling.min_p, 0, 1),
        ("sampling.seed", sampling.seed, 0, (1 << 63) - 1),
    )
    for name, value, low, high in ranges:
        if not low <= value <= high:
            shown = "beyond 1e300" if abs(value) > 1e300 else f"{value:g}"  # a larger int has no float
            raise BodyInvalidError(f"{names.get(name, name)} is {shown}; it must be between {low:g} and {high:g}.")


def sampling_of(
    temperature: float | None, top_p: float | None = None, min_p: float | None = None, seed: int | None = None
) -> Sampling:
    """Return the parameters of drawing a token for those of a client, of which it may leave out each.

    Args:
        temperature: 0 by default: greedy decoding is best for code.
        top_p: 0 stands for the smallest nucleus, the likeliest token.
        min_p: 0 by default.
        seed: A negative one stands for any seed, which is 0 here.
    """
    if top_p is not None and top_p >= 0:
        top_p = max(SMALLEST_TOP_P, top_p)
    return Sampling(temperature or 0.0, 1.0 if top_p is None else top_p, min_p or 0.0, max(0, seed or 0))
