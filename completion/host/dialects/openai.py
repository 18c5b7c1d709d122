"""The OpenAI dialect: `POST /v1/completions` with `suffix` and streaming, and `GET /v1/models`.

Also the FIM interfaces of DeepSeek (`/beta/completions`) and LM Studio, which are the same.
Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.marked_prompt import marked_request
from completion.host.dialects.reply_text import Answer, Reply, reply_with
from completion.host.dialects.schema import ClientModel, Stops, sampling_of
from completion.host.errors import BodyInvalidError
from completion.host.services import Host, sse_message
from completion.request import MAX_TOKENS_LIMIT, CompletionRequest, Statistics

DEFAULT_MAX_TOKENS = 128
"""Maximum number of generated tokens where a client names none."""


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

    @property
    def wants_usage(self) -> bool:
        """Whether a streamed reply ends with the numbers of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionBody(GenerationBody):
    """The body of `/v1/completions`: the fields that have an effect. `model` and others are accepted and ignored."""

    prompt: str | list[str]
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None


async def completions(request: Request) -> Response:
    """Serve `POST /v1/completions`."""
    body = await CompletionBody.read(request)
    reply = OpenAiReply(request, with_usage=body.wants_usage)
    return await reply_with(request, completion_request(body), reply, body.stop, stream=bool(body.stream))


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


def usage(statistics: Statistics) -> dict[str, int]:
    """Return the numbers of tokens as OpenAI counts them."""
    prompt, generated = statistics.prompt_tokens, statistics.generated_tokens
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}


class OpenAiReply(Reply):
    """The JSON objects of one completion, all with the same id.

    Attributes:
        id_start: Start of the id.
        kinds: Types of a whole reply and of a part of one.
    """

    end = sse_message(b"[DONE]")
    id_start = "cmpl-"
    kinds = "text_completion", "text_completion"

    def __init__(self, request: Request, *, with_usage: bool) -> None:
        super().__init__(request)
        self._frame = {"id": f"{self.id_start}{uuid.uuid4().hex}", "created": int(time.time()), "model": self.model}
        self._with_usage = with_usage

    def content(self, text: str, *, is_part: bool) -> dict[str, Any]:  # noqa: ARG002 - for chats
        """Return what a choice has of a text, or of a part of one."""
        return {"text": text, "logprobs": None}

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return all choices."""
        choices = [
            {"index": index, **self.content(text, is_part=False), "finish_reason": answer.finish}
            for index, text in enumerate((answer.text, *answer.others))
        ]
        return self._frame | {"object": self.kinds[0], "choices": choices, "usage": usage(answer.statistics)}

    def parts(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the first choice's new text; at its end each other choice whole, and the usage."""
        texts = (answer.new, *answer.others) if answer.finish else (answer.new,)
        parts: list[dict[str, Any]] = [
            {"choices": [{"index": index, **self.content(text, is_part=True), "finish_reason": answer.finish or None}]}
            for index, text in enumerate(texts)
        ]
        if answer.finish and self._with_usage:
            parts.append({"choices": [], "usage": usage(answer.statistics)})
        return [self._frame | {"object": self.kinds[1]} | part for part in parts]
