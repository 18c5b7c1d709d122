"""The OpenAI dialect: `POST /v1/completions` with `suffix` and streaming, and `GET /v1/models`.

Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.reply_text import Answer, answers, last_answer, plain_text
from completion.host.dialects.schema import MAX_STOPS, check_request, parse_body
from completion.host.errors import BodyInvalidError
from completion.host.services import Host
from completion.host.stream import (
    CompletionStream,
    EventStreamResponse,
    cancel_when_gone,
    sse_message,
    with_error_objects,
)
from completion.request import CompletionRequest, Layout, Sampling, Statistics

_DEFAULT_MAX_TOKENS = 128
# Some plugins write a model family's own tokens for prefix, suffix and middle into the prompt.
_MARKERS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
)


class StreamOptions(BaseModel):
    """Options of a streamed reply."""

    include_usage: bool = False


class CompletionBody(BaseModel):
    """The body of `/v1/completions`: the fields that have an effect. `model` and others are accepted and ignored."""

    prompt: str | list[str]
    suffix: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    n: int | None = None
    stop: str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    echo: bool | None = None
    logprobs: int | None = None


_BODY: TypeAdapter[CompletionBody] = TypeAdapter(CompletionBody)


async def completions(request: Request) -> Response:
    """Serve `POST /v1/completions`."""
    host: Host = request.app.state.host
    body = parse_body(_BODY, await request.body())
    completion_request = _request_of(body)
    check_request(completion_request)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    stream = host.open_stream(completion_request)
    stream.submit()
    reply = _Reply(host.state.status.model)
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        chunks = _chunks(stream, stops, reply, with_usage=with_usage)
        return EventStreamResponse(with_error_objects(chunks), stream.close)
    async with cancel_when_gone(request, stream):
        answer = await last_answer(stream, stops)
    suffix = completion_request.suffix
    texts = [plain_text(suggestion, suffix, stops) for suggestion in answer.event.suggestions] or [""]
    return JSONResponse(reply.whole(texts, answer))


async def models(request: Request) -> Response:
    """Serve `GET /v1/models`: the one model of this host."""
    host: Host = request.app.state.host
    model = {"id": host.state.status.model, "object": "model", "created": 0, "owned_by": "draftline"}
    return JSONResponse({"object": "list", "data": [model]})


def _request_of(body: CompletionBody) -> CompletionRequest:
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if len(prompts) != 1:
        raise BodyInvalidError(f"prompt is a list of {len(prompts)} prompts. Send one request for each.")
    if body.echo or body.logprobs is not None:
        raise BodyInvalidError("echo and logprobs are not supported. Leave them out.")
    prefix, suffix = prompts[0], body.suffix
    split = _split_at_markers(prefix) if suffix is None else None
    if split is not None:
        prefix, suffix = split
    return CompletionRequest(
        prefix=prefix,
        suffix=suffix or "",
        layout=Layout.PREFIX_ONLY if suffix is None else None,
        suggestions=body.n or 1,
        max_tokens=_DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens,
        sampling=Sampling(
            # Greedy decoding is best for code, so it is the default.
            temperature=body.temperature or 0.0,
            top_p=1.0 if body.top_p is None else body.top_p,
            seed=body.seed or 0,
        ),
        filters=not body.stream,
    )


def _split_at_markers(prompt: str) -> tuple[str, str] | None:
    """Return the prefix and suffix of a prompt that contains a model's own markers, None if it has none."""
    text = prompt.strip()
    for begin, between, end in _MARKERS:
        if text.startswith(begin) and text.endswith(end):
            prefix, found, suffix = text[len(begin) : -len(end)].rpartition(between)
            if found:
                return prefix, suffix
    return None


class _Reply:
    """Builds the JSON objects of one completion, all with the same id."""

    def __init__(self, model: str) -> None:
        self._frame = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }

    def whole(self, texts: list[str], answer: Answer) -> dict[str, Any]:
        choices = [_choice(index, text, answer.finish) for index, text in enumerate(texts)]
        return self._frame | {"choices": choices, "usage": _usage(answer.event.statistics)}

    def chunk(self, index: int, text: str, finish: str) -> bytes:
        return sse_message(json.dumps(self._frame | {"choices": [_choice(index, text, finish)]}).encode())

    def usage(self, statistics: Statistics | None) -> bytes:
        return sse_message(json.dumps(self._frame | {"choices": [], "usage": _usage(statistics)}).encode())


async def _chunks(
    stream: CompletionStream, stops: list[str], reply: _Reply, *, with_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield the first choice as it grows, then each other choice whole, then [DONE]."""
    sent = ""
    async with aclosing(answers(stream, stops)) as states:
        async for answer in states:
            new, sent = answer.text[len(sent) :], max(sent, answer.text, key=len)
            if new or answer.finish:
                yield reply.chunk(0, new, answer.finish)
            if answer.finish:
                for index, suggestion in enumerate(answer.event.suggestions[1:], start=1):
                    yield reply.chunk(index, plain_text(suggestion, "", stops), answer.finish)
                if with_usage:
                    yield reply.usage(answer.event.statistics)
    yield sse_message(b"[DONE]")


def _choice(index: int, text: str, finish: str) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish or None}


def _usage(statistics: Statistics | None) -> dict[str, int]:
    prompt, generated = (statistics.prompt_tokens, statistics.generated_tokens) if statistics else (0, 0)
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}
