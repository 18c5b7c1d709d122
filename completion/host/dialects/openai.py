"""The OpenAI dialect: `POST /v1/completions` with `suffix` and streaming, and `GET /v1/models`.

Also the FIM interfaces of DeepSeek (`/beta/completions`) and LM Studio, which are the same.
Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.marked_prompt import marked_request
from completion.host.dialects.reply_text import Answer, reply_with
from completion.host.dialects.schema import MAX_STOPS, Body, ClientModel, sampling_of
from completion.host.errors import BodyInvalidError
from completion.host.services import Host
from completion.host.stream import sse_message
from completion.request import MAX_TOKENS_LIMIT, CompletionRequest, Statistics

DEFAULT_MAX_TOKENS = 128
"""Maximum number of generated tokens where a client names none."""

Stops = str | Annotated[list[str], Field(max_length=MAX_STOPS)] | None


class StreamOptions(ClientModel):
    """Options of a streamed reply."""

    include_usage: bool = False


class GenerationBody(ClientModel):
    """The fields that the bodies of `/v1/completions` and `/v1/chat/completions` share."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    n: int | None = None
    stop: Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class CompletionBody(GenerationBody):
    """The body of `/v1/completions`: the fields that have an effect. `model` and others are accepted and ignored."""

    prompt: str | list[str]
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None


_BODY = Body(CompletionBody)


async def completions(request: Request) -> Response:
    """Serve `POST /v1/completions`."""
    host: Host = request.app.state.host
    body = await _BODY.read(request)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    reply = _Reply(host.state.status.model, with_usage=with_usage)
    chunk = reply.chunk if body.stream else None
    return await reply_with(request, completion_request(body), reply.whole, chunk, stops=stop_list(body.stop))


async def models(request: Request) -> Response:
    """Serve `GET /v1/models`: the one model of this host."""
    host: Host = request.app.state.host
    model = {"id": host.state.status.model, "object": "model", "created": 0, "owned_by": "draftline"}
    return JSONResponse({"object": "list", "data": [model]})


def completion_request(body: CompletionBody) -> CompletionRequest:
    """Return the request that a body asks for.

    Raises:
        BodyInvalidError: The body has several prompts, or asks for what the engine does not have.
    """
    if body.echo or body.logprobs:  # DeepSeek's documented request has `"logprobs": 0`
        raise BodyInvalidError("echo and logprobs are not supported. Leave them out.")
    return replace(
        request_at(single_prompt(body.prompt), body.suffix),
        suggestions=body.n or 1,
        max_tokens=max_tokens_of(body.max_tokens),
        sampling=sampling_of(body.temperature, body.top_p, seed=body.seed),
    )


def single_prompt(prompt: str | list[str]) -> str:
    """Return the one prompt of a request.

    Raises:
        BodyInvalidError: There are several.
    """
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if len(prompts) != 1:
        raise BodyInvalidError(f"prompt is a list of {len(prompts)} prompts. Send one request for each.")
    return prompts[0]


def request_at(prompt: str, suffix: str | None) -> CompletionRequest:
    """Return the request of a prompt. Beside a suffix, even an empty one, it is a document's text as it stands."""
    return marked_request(prompt) if suffix is None else CompletionRequest(prompt, suffix)


def max_tokens_of(requested: int | None, default: int = DEFAULT_MAX_TOKENS) -> int:
    """Return the maximum number of generated tokens for what a client requests; -1 stands for "no limit" in LM Studio.

    More than the engine generates at most is no error: a reply that ends there says so ("length").
    """
    return default if requested is None or requested == -1 else min(requested, MAX_TOKENS_LIMIT)


def stop_list(stops: Stops) -> list[str]:
    """Return the stop strings as a list."""
    return [stops] if isinstance(stops, str) else stops or []


def usage(statistics: Statistics) -> dict[str, int]:
    """Return the numbers of tokens as OpenAI counts them."""
    prompt, generated = statistics.prompt_tokens, statistics.generated_tokens
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}


class _Reply:
    """Builds the JSON objects of one completion, all with the same id."""

    def __init__(self, model: str, *, with_usage: bool) -> None:
        self._frame = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._with_usage = with_usage

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return all choices."""
        texts = (answer.text, *answer.others)
        choices = [_choice(index, text, answer.finish) for index, text in enumerate(texts)]
        return self._frame | {"choices": choices, "usage": usage(answer.statistics)}

    def chunk(self, answer: Answer) -> bytes:
        """Return the first choice's new text; at its end each other choice whole, the usage and [DONE]."""
        messages: list[dict[str, Any]] = [{"choices": [_choice(0, answer.new, answer.finish)]}]
        if not answer.finish:
            return self._encoded(messages)
        messages += [
            {"choices": [_choice(index, text, answer.finish)]} for index, text in enumerate(answer.others, start=1)
        ]
        if self._with_usage:
            messages.append({"choices": [], "usage": usage(answer.statistics)})
        return self._encoded(messages) + sse_message(b"[DONE]")

    def _encoded(self, messages: list[dict[str, Any]]) -> bytes:
        return b"".join(sse_message(json.dumps(self._frame | message).encode()) for message in messages)


def _choice(index: int, text: str, finish: str) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish or None}
