"""The llama.cpp dialect: `POST /infill` and `GET /props`, for llama.cpp's editor plugins.

Source: tools/server/README.md of llama.cpp, sections "POST /infill" and "GET /props".
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.reply_text import Answer, answers, last_answer, plain_text
from completion.host.dialects.schema import MAX_STOPS, check_request, parse_body
from completion.host.services import Host
from completion.host.stream import EventStreamResponse, cancel_when_gone, sse_message, with_error_objects
from completion.request import CompletionRequest, ContextFile, Sampling
from completion.version import version

_MAX_TOKENS = 128
"""Maximum number of generated tokens, also where a client sends -1 for "no limit": a code completion needs one."""
_MAX_FIELDS = 64
"""Maximum number of `response_fields`; the event loop looks up each of them."""


class ExtraInput(BaseModel):
    """A piece of another file."""

    filename: str = ""
    text: str


class InfillBody(BaseModel):
    """The body of `/infill`: the fields that have an effect. Others are accepted and ignored."""

    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[ExtraInput] = []
    prompt: str = ""
    n_predict: int = _MAX_TOKENS
    stop: list[str] = Field([], max_length=MAX_STOPS)
    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    samplers: list[str] | None = None
    t_max_predict_ms: float = 0
    stream: bool = False
    response_fields: list[str] = Field([], max_length=_MAX_FIELDS)


_BODY: TypeAdapter[InfillBody] = TypeAdapter(InfillBody)


async def infill(request: Request) -> Response:
    """Serve `POST /infill`; with `n_predict` 0, only warm the cache."""
    host: Host = request.app.state.host
    body = parse_body(_BODY, await request.body())
    completion_request = _request_of(body)
    if body.n_predict == 0:
        host.prepare(completion_request)
        return JSONResponse(_selected({"content": "", "stop": True}, body))
    check_request(completion_request)
    stream = host.open_stream(completion_request)
    stream.submit()
    is_over = _time_limit(body.t_max_predict_ms)
    model = host.state.status.model
    if body.stream:
        return EventStreamResponse(
            with_error_objects(_chunks(answers(stream, body.stop, is_over), model)), stream.close
        )
    async with cancel_when_gone(request, stream):
        answer = await last_answer(stream, body.stop, is_over)
    suggestions = answer.event.suggestions
    text = plain_text(suggestions[0], body.input_suffix, body.stop) if suggestions else ""
    return JSONResponse(_selected(_final(text, answer, model), body))


async def props(request: Request) -> Response:
    """Serve `GET /props`: the model's properties, which clients read before their first request."""
    host: Host = request.app.state.host
    status = host.state.status
    settings = {"n_ctx": status.context_tokens, "n_predict": _MAX_TOKENS, "temperature": 0.0}
    return JSONResponse({
        "default_generation_settings": settings,
        "total_slots": 1,
        "model_alias": status.model,
        "model_path": status.model,
        "chat_template": "",
        "build_info": f"draftline {version()}",
    })  # fmt: skip


def _request_of(body: InfillBody) -> CompletionRequest:
    # Samplers without "temperature" select greedy decoding, whatever the temperature is; llama.vim relies on this.
    is_sampled = body.samplers is None or "temperature" in body.samplers
    return CompletionRequest(
        prefix=body.input_prefix + body.prompt,
        suffix=body.input_suffix,
        context=tuple(ContextFile(extra.filename, extra.text) for extra in body.input_extra),
        max_tokens=min(body.n_predict, _MAX_TOKENS) if body.n_predict > 0 else _MAX_TOKENS,
        sampling=Sampling(
            temperature=body.temperature if is_sampled else 0.0,
            top_p=body.top_p,
            min_p=body.min_p,
            seed=max(0, body.seed),
        ),
        filters=not body.stream,
    )


def _time_limit(limit_ms: float) -> Callable[[str], bool]:
    """Return a predicate that ends a text `limit_ms` after its first character, once it has a whole line; 0: never."""
    first: list[float] = []

    def is_over(text: str) -> bool:
        now = time.perf_counter()
        if text and not first:
            first.append(now)
        return limit_ms > 0 and "\n" in text and 1e3 * (now - first[0]) > limit_ms

    return is_over


async def _chunks(states: AsyncGenerator[Answer], model: str) -> AsyncGenerator[bytes]:
    sent = ""
    async for answer in states:
        new, sent = answer.text[len(sent) :], max(sent, answer.text, key=len)
        chunk = _final(new, answer, model) if answer.finish else {"content": new, "stop": False}
        if new or answer.finish:
            yield sse_message(json.dumps(chunk).encode())


def _final(text: str, answer: Answer, model: str) -> dict[str, Any]:
    statistics = answer.event.statistics
    computed, kept, generated = 0, 0, 0
    prompt_ms = predicted_ms = 0.0
    if statistics is not None:
        computed, kept = statistics.computed_tokens, statistics.kept_tokens
        generated, prompt_ms, predicted_ms = statistics.generated_tokens, statistics.prompt_ms, statistics.decode_ms
    return {
        "content": text,
        "stop": True,
        "model": model,
        "stop_type": "limit" if answer.finish == "length" else "eos",
        "tokens_predicted": generated,
        "tokens_evaluated": computed,
        "tokens_cached": kept,
        "truncated": False,
        "timings": _rates("prompt", computed, prompt_ms) | _rates("predicted", generated, predicted_ms),
    }


def _rates(name: str, tokens: int, milliseconds: float) -> dict[str, float]:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": milliseconds,
        f"{name}_per_token_ms": milliseconds / tokens if tokens else 0.0,
        f"{name}_per_second": 1e3 * tokens / milliseconds if milliseconds else 0.0,
    }


def _selected(reply: dict[str, Any], body: InfillBody) -> dict[str, Any]:
    """Return the fields that `response_fields` names. "a/b" selects field b of a, and stays the key."""
    if not body.response_fields:
        return reply
    selected = {}
    for field in body.response_fields:
        value: Any = reply
        for part in field.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            selected[field] = value
    return selected
