"""The Ollama dialect: `POST /api/generate`, `GET /api/tags`, `POST /api/show` and `GET /api/version`.

Source: docs/api.md and server/routes.go of Ollama 0.32.15.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.llama_cpp import token_limit
from completion.host.dialects.marked_prompt import marked_request
from completion.host.dialects.openai import request_at
from completion.host.dialects.reply_text import Answer, Reply, reply_with
from completion.host.dialects.schema import ClientModel, Stops, sampling_of
from completion.host.errors import BodyInvalidError
from completion.host.services import Host
from completion.request import CompletionRequest, Layout

_VERSION = "0.32.15"
"""Version of Ollama whose interface this is; clients compare it with the one that they need."""
_TEMPLATE = (
    "{{ if .Suffix }}<|fim_prefix|>{{ .Prompt }}<|fim_suffix|>{{ .Suffix }}<|fim_middle|>"
    "{{ else }}{{ .Prompt }}{{ end }}"
)
"""Template of every model here. Continue sends a suffix only to models whose template has one."""
_NO_DATE = "1970-01-01T00:00:00Z"
_NANOSECONDS_PER_MS = 1_000_000


class Options(ClientModel):
    """Ollama's model parameters that have an effect. Others are accepted and ignored."""

    num_predict: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: Stops = None


class GenerateBody(ClientModel):
    """The body of `/api/generate`: the fields that have an effect. `model` and others are accepted and ignored."""

    prompt: str = ""
    suffix: str | None = None
    raw: bool | None = None
    stream: bool | None = None
    options: Options | None = None
    images: list[str] | None = None
    think: bool | str | None = None
    format: str | dict[str, Any] | None = Field(None)


class ShowBody(ClientModel):
    """The body of `/api/show`, which names the one model in one of two fields."""

    model: str = ""
    name: str = ""


async def generate(request: Request) -> Response:
    """Serve `POST /api/generate`; without a prompt and a suffix it only says that the model is loaded."""
    body = await GenerateBody.read(request)
    options, reply = body.options or Options(), _Reply(request)
    if body.images or body.think or body.format:
        raise BodyInvalidError("format, images and think are not supported. Leave them out.")
    if not body.prompt and not body.suffix:
        return JSONResponse(reply.object("", "load"))
    completion_request = replace(
        _request_of(body),
        max_tokens=token_limit(options.num_predict),
        sampling=sampling_of(options.temperature, options.top_p, options.min_p, options.seed),
    )
    return await reply_with(request, completion_request, reply, options.stop, stream=body.stream is not False)


async def tags(request: Request) -> Response:
    """Serve `GET /api/tags`: the one model of this host."""
    host: Host = request.app.state.host
    name = host.state.status.model
    model = {"name": name, "model": name, "modified_at": _NO_DATE, "size": 0, "digest": "", "details": _details()}
    return JSONResponse({"models": [model]})


async def show(request: Request) -> Response:
    """Serve `POST /api/show`: what the model can do and how much it can read, whatever the name is."""
    host: Host = request.app.state.host
    await ShowBody.read(request)
    context_tokens = host.state.status.context_tokens
    return JSONResponse({
        "modelfile": "",
        "parameters": f"num_ctx {context_tokens}",
        "template": _TEMPLATE,
        "details": _details(),
        "model_info": {"general.architecture": "draftline", "draftline.context_length": context_tokens},
        "capabilities": ["completion", "insert"],
        "modified_at": _NO_DATE,
    })  # fmt: skip


async def version(request: Request) -> Response:  # noqa: ARG001 - a handler's form
    """Serve `GET /api/version`."""
    return JSONResponse({"version": _VERSION})


def _request_of(body: GenerateBody) -> CompletionRequest:
    """Return the request of the prompt. As in Ollama, a raw prompt is a whole one, whatever the suffix is."""
    if body.raw and (marked := marked_request(body.prompt)).layout is not Layout.PREFIX_ONLY:
        return marked
    return request_at(body.prompt, body.suffix)


class _Reply(Reply):
    """The JSON objects of one reply, each on a line of a stream."""

    media_type = "application/x-ndjson"

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the text with counts and times."""
        return self._finished(answer.text, answer)

    def parts(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the new text, and at the end counts and times apart."""
        new = [self.object(answer.new)] if answer.new else []
        return [*new, self._finished("", answer)] if answer.finish else new

    def encoded(self, part: dict[str, Any]) -> bytes:
        """Return an object as a line."""
        return json.dumps(part).encode() + b"\n"

    def object(self, text: str, done_reason: str = "") -> dict[str, Any]:
        """Return a reply without counts, finished if it has a reason."""
        reply = {"model": self.model, "created_at": datetime.now(UTC).isoformat(), "response": text}
        return reply | ({"done": True, "done_reason": done_reason} if done_reason else {"done": False})

    def _finished(self, text: str, answer: Answer) -> dict[str, Any]:
        counts = answer.statistics
        return self.object(text, answer.finish) | {
            "total_duration": _nanoseconds(counts.queue_ms + counts.total_ms),
            "load_duration": 0,
            "prompt_eval_count": counts.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(counts.prompt_ms),
            "eval_count": counts.generated_tokens,
            "eval_duration": _nanoseconds(counts.decode_ms),
        }


def _nanoseconds(milliseconds: float) -> int:
    return round(milliseconds * _NANOSECONDS_PER_MS)


def _details() -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": "",
        "families": [],
        "parameter_size": "",
        "quantization_level": "",
    }
