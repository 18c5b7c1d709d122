"""The Mistral dialect: `POST /v1/fim/completions`, whole or streamed.

Source: src/mistralai/models/fimcompletionrequest.py of Mistral's Python client.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from completion.host.dialects.openai import Stops, max_tokens_of, request_at, stop_list, usage
from completion.host.dialects.reply_text import Answer, reply_with
from completion.host.dialects.schema import Body, ClientModel, sampling_of
from completion.host.services import Host
from completion.host.stream import sse_message


class FimBody(ClientModel):
    """The body of `/v1/fim/completions`: the fields that have an effect. Others are accepted and ignored."""

    prompt: str
    suffix: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    random_seed: int | None = None
    stop: Stops = None
    stream: bool | None = None


_BODY = Body(FimBody)


async def fim_completions(request: Request) -> Response:
    """Serve `POST /v1/fim/completions`."""
    host: Host = request.app.state.host
    body = await _BODY.read(request)
    completion_request = replace(
        request_at(body.prompt, body.suffix),
        max_tokens=max_tokens_of(body.max_tokens),
        sampling=sampling_of(body.temperature, body.top_p, seed=body.random_seed),
    )
    reply = _Reply(host.state.status.model)
    chunk = reply.chunk if body.stream else None
    return await reply_with(
        request,
        completion_request,
        reply.whole,
        chunk,
        stops=stop_list(body.stop),
        names={"sampling.seed": "random_seed"},
    )


class _Reply:
    """Builds the JSON objects of one completion, all with the same id."""

    def __init__(self, model: str) -> None:
        self._frame = {"id": uuid.uuid4().hex, "created": int(time.time()), "model": model}

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the completion as the message of an assistant."""
        message = {"role": "assistant", "content": answer.text, "tool_calls": None, "prefix": False}
        choice = {"index": 0, "message": message, "finish_reason": answer.finish}
        return self._frame | {"object": "chat.completion", "choices": [choice], "usage": usage(answer.statistics)}

    def chunk(self, answer: Answer) -> bytes:
        """Return the new text; at its end the usage and [DONE]."""
        choice = {
            "index": 0,
            "delta": {"role": "assistant", "content": answer.new},
            "finish_reason": answer.finish or None,
        }
        chunk = self._frame | {"object": "chat.completion.chunk", "choices": [choice]}
        if answer.finish:
            chunk["usage"] = usage(answer.statistics)
        end = sse_message(b"[DONE]") if answer.finish else b""
        return sse_message(json.dumps(chunk).encode()) + end
