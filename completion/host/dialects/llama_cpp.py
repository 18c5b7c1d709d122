"""The llama.cpp dialect: `POST /infill`, `POST /completion` and `GET /props`, for llama.cpp's editor plugins.

Source: tools/server/README.md of llama.cpp, sections "POST /completion", "POST /infill" and "GET /props".
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.marked_prompt import marked_request
from completion.host.dialects.openai import single_prompt
from completion.host.dialects.reply_text import Answer, Reply, reply_with
from completion.host.dialects.schema import ClientModel, Stops, sampling_of
from completion.host.services import Host, sender
from completion.paths import version
from completion.request import CompletionRequest, ContextFile, Sampling

_MAX_TOKENS = 128
"""Maximum number of generated tokens, also where a client sends -1 for "no limit": a code completion needs one."""
_MAX_FIELDS = 64
"""Maximum number of `response_fields`; the event loop looks up each of them."""


class ExtraInput(ClientModel):
    """A piece of another file."""

    filename: str = ""
    text: str


class _Options(ClientModel):
    """The options of both requests that have an effect. Others are accepted and ignored."""

    n_predict: int | None = None
    max_tokens: int | None = None  # llama.cpp's other name for n_predict
    n_cmpl: int = 1
    stop: Stops = None
    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    samplers: list[str] | None = None
    t_max_predict_ms: float = 0
    stream: bool = False
    response_fields: list[str] = Field([], max_length=_MAX_FIELDS)

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, body: object) -> object:
        """Return the body without fields that are null, for which llama.cpp takes their defaults."""
        return {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body


class InfillBody(_Options):
    """The body of `/infill`."""

    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[ExtraInput] = Field([])
    prompt: str = ""


class CompletionBody(_Options):
    """The body of `/completion`."""

    prompt: str | list[str]


async def infill(request: Request) -> Response:
    """Serve `POST /infill`; with `n_predict` 0, only warm the cache."""
    body = await InfillBody.read(request)
    context = tuple(ContextFile(extra.filename, extra.text) for extra in body.input_extra)
    asked = CompletionRequest(body.input_prefix + body.prompt, body.input_suffix, context=context)
    return await _complete(request, body, asked)


async def completion(request: Request) -> Response:
    """Serve `POST /completion`, whose prompt may have markers; with `n_predict` 0, only warm the cache."""
    body = await CompletionBody.read(request)
    return await _complete(request, body, marked_request(single_prompt(body.prompt)))


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


def token_limit(requested: int | None) -> int:
    """Return the maximum number of generated tokens for what a client requests; it may be negative for "no limit"."""
    return min(requested, _MAX_TOKENS) if requested is not None and requested > 0 else _MAX_TOKENS


async def _complete(request: Request, body: _Options, asked: CompletionRequest) -> Response:
    host: Host = request.app.state.host
    requested = body.max_tokens if body.n_predict is None else body.n_predict
    completion_request = replace(
        asked, suggestions=body.n_cmpl, max_tokens=token_limit(requested), sampling=_sampling(body)
    )
    if requested == 0:
        host.prepare(completion_request, sender(request))
        return JSONResponse(_selected({"content": "", "stop": True}, body))
    return await reply_with(request, completion_request, _Reply(request, body), body.stop, stream=body.stream)


def _sampling(body: _Options) -> Sampling:
    # Samplers without "temperature" select greedy decoding, whatever the temperature is; llama.vim relies on this.
    is_sampled = body.samplers is None or "temperature" in body.samplers
    return sampling_of(body.temperature if is_sampled else 0.0, body.top_p, body.min_p, body.seed)


class _Reply(Reply):
    """The JSON objects of one reply."""

    names: Mapping[str, str] = {**Reply.names, "suggestions": "n_cmpl"}

    def __init__(self, request: Request, body: _Options) -> None:
        super().__init__(request)
        self._body = body
        self._ends_s = math.inf  # `t_max_predict_ms` after the first character

    def is_over(self, text: str, *, is_complete: bool) -> bool:
        """Return whether its time is over; it ends with a whole line."""
        now_s, limit_ms = time.perf_counter(), self._body.t_max_predict_ms
        if text and limit_ms > 0:
            self._ends_s = min(self._ends_s, now_s + limit_ms / 1e3)
        return now_s > self._ends_s and (is_complete or "\n" in text)

    def whole(self, answer: Answer) -> Any:  # noqa: ANN401 - an object, or several where the client wants more than one
        """Return the selected fields of the text with counts and times; for several completions a list."""
        texts = (answer.text, *answer.others)
        replies = [_selected(self._final(index, text, answer), self._body) for index, text in enumerate(texts)]
        return replies if self._body.n_cmpl > 1 else replies[0]

    def parts(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the new text of the first completion, at its end with counts and times."""
        unfinished = {"index": 0, "content": answer.new, "stop": False}
        return [self._final(0, answer.new, answer) if answer.finish else unfinished]

    def _final(self, index: int, text: str, answer: Answer) -> dict[str, Any]:
        counts = answer.statistics
        computed, generated = counts.computed_tokens, counts.generated_tokens
        return {
            "index": index,
            "content": text,
            "stop": True,
            "model": self.model,
            "stop_type": "limit" if answer.finish == "length" else "eos",
            "tokens_predicted": generated,
            "tokens_evaluated": computed,
            "tokens_cached": counts.kept_tokens,
            "truncated": False,
            "timings": _rates("prompt", computed, counts.prompt_ms) | _rates("predicted", generated, counts.decode_ms),
        }


def _rates(name: str, tokens: int, milliseconds: float) -> dict[str, float]:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": milliseconds,
        f"{name}_per_token_ms": milliseconds / tokens if tokens else 0.0,
        f"{name}_per_second": 1e3 * tokens / milliseconds if milliseconds else 0.0,
    }


def _selected(reply: dict[str, Any], body: _Options) -> dict[str, Any]:
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
