"""The Mistral dialect: `POST /v1/fim/completions`, whole or streamed.

Source: src/mistralai/models/fimcompletionrequest.py of Mistral's Python client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from completion.host.dialects.openai import GenerationBody, OpenAiReply, max_tokens_of, request_at, usage
from completion.host.dialects.reply_text import Answer, reply_with
from completion.host.dialects.schema import sampling_of


class FimBody(GenerationBody):
    """The body of `/v1/fim/completions`: of the shared fields, `seed`, `n` and `stream_options` have no effect."""

    prompt: str
    suffix: str | None = None
    random_seed: int | None = None


async def fim_completions(request: Request) -> Response:
    """Serve `POST /v1/fim/completions`."""
    body = await FimBody.read(request)
    completion_request = replace(
        request_at(body.prompt, body.suffix),
        max_tokens=max_tokens_of(body.max_tokens),
        sampling=sampling_of(body.temperature, body.top_p, seed=body.random_seed),
    )
    reply = _Reply(request, with_usage=False)
    return await reply_with(request, completion_request, reply, body.stop, stream=bool(body.stream))


class _Reply(OpenAiReply):
    """The JSON objects of one completion, which is the message of an assistant."""

    names: Mapping[str, str] = {**OpenAiReply.names, "sampling.seed": "random_seed"}
    id_start = ""
    kinds = "chat.completion", "chat.completion.chunk"

    def content(self, text: str, *, is_part: bool) -> dict[str, Any]:
        """Return the message, or what is new in it."""
        if is_part:
            return {"delta": {"role": "assistant", "content": text}}
        return {"message": {"role": "assistant", "content": text, "tool_calls": None, "prefix": False}}

    def parts(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the new text, at its end with the usage."""
        end = {"usage": usage(answer.statistics)} if answer.finish else {}
        return [part | end for part in super().parts(answer)]
