"""OpenAI's chat: `POST /v1/chat/completions`, whole or streamed.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.openai import GenerationBody, max_tokens_of, stop_list, usage
from completion.host.dialects.reply_text import Answer, reply_with
from completion.host.dialects.schema import Body, ClientModel, sampling_of
from completion.host.errors import BodyInvalidError
from completion.host.process.clients import conversation_key
from completion.host.services import Host
from completion.host.stream import sse_message
from completion.instruct import instruct_request
from completion.request import MAX_TOKENS_LIMIT, CompletionRequest, Message

_UNSUPPORTED = ("tools", "tool_choice", "functions", "response_format", "logprobs", "audio", "modalities")


class TextPart(ClientModel):
    """A part of a message; others than text are refused."""

    type: Literal["text"]
    text: str


class ChatMessage(ClientModel):
    """A turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    def message(self) -> Message:
        """Return the turn as the engine takes it; templates know "developer" by its older name."""
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return Message("system" if self.role == "developer" else self.role, content)


class ChatBody(GenerationBody, extra="allow"):
    """The body of `/v1/chat/completions`: the fields that have an effect. `model` and others are ignored."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: int | None = None
    n_predict: int | None = None  # llama.cpp's name of it


_BODY = Body(ChatBody)


async def completions(request: Request) -> Response:
    """Serve `POST /v1/chat/completions`."""
    host: Host = request.app.state.host
    body = await _BODY.read(request)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    reply = _Reply(host.state.status.model, with_usage=with_usage)
    chunk = reply.chunk if body.stream else None
    completion_request = chat_request(body)
    if body.n_predict == 0:  # llama.vim warms a cache so, but the question that follows is another conversation
        return JSONResponse(reply.whole(Answer("", finish="length")))
    return await reply_with(request, completion_request, reply.whole, chunk, stops=stop_list(body.stop))


def chat_request(body: ChatBody) -> CompletionRequest:
    """Return the request that a body asks for.

    Raises:
        BodyInvalidError: The body asks for what the engine does not have.
    """
    extra = body.model_extra or {}
    asked = [
        name for name in _UNSUPPORTED if extra.get(name) and extra[name] not in ({"type": "text"}, ["text"], "none")
    ]
    if asked:
        raise BodyInvalidError(f"{' and '.join(asked)} cannot be served: replies are plain text. Leave them out.")
    if (body.n or 1) != 1:
        raise BodyInvalidError(f"n is {body.n}; a conversation has one reply. Leave it out.")
    limits = (body.n_predict, body.max_completion_tokens, body.max_tokens)
    messages = tuple(turn.message() for turn in body.messages)
    request = instruct_request(
        messages,
        max_tokens=max_tokens_of(next((each for each in limits if each is not None), None), MAX_TOKENS_LIMIT),
        sampling=sampling_of(body.temperature, body.top_p, seed=body.seed),
    )
    return replace(request, document=conversation_key(messages))


class _Reply:
    """Builds the JSON objects of one reply, all with the same id."""

    def __init__(self, model: str, *, with_usage: bool) -> None:
        self._frame = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
        self._with_usage = with_usage
        self._role: dict[str, str] = {"role": "assistant"}  # of the first chunk only

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the reply."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
        return self._frame | {"object": "chat.completion", "choices": [choice], "usage": usage(answer.statistics)}

    def chunk(self, answer: Answer) -> bytes:
        """Return the new text; at the end the usage and [DONE] as well."""
        delta, self._role = self._role | {"content": answer.new}, {}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": answer.finish or None}
        messages: list[dict[str, Any]] = [{"choices": [choice]}]
        if answer.finish and self._with_usage:
            messages.append({"choices": [], "usage": usage(answer.statistics)})
        frame = self._frame | {"object": "chat.completion.chunk"}
        encoded = b"".join(sse_message(json.dumps(frame | message).encode()) for message in messages)
        return encoded + sse_message(b"[DONE]") if answer.finish else encoded
