"""OpenAI's chat: `POST /v1/chat/completions`, whole or streamed.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.host.dialects.openai import GenerationBody, OpenAiReply, max_tokens_of
from completion.host.dialects.reply_text import Answer, reply_with
from completion.host.dialects.schema import ClientModel, sampling_of
from completion.host.errors import BodyInvalidError
from completion.host.process.clients import conversation_key
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


async def completions(request: Request) -> Response:
    """Serve `POST /v1/chat/completions`."""
    body = await ChatBody.read(request)
    reply = _Reply(request, with_usage=body.wants_usage)
    completion_request = chat_request(body)
    if body.n_predict == 0:  # llama.vim warms a cache so, but the question that follows is another conversation
        return JSONResponse(reply.whole(Answer("", finish="length")))
    return await reply_with(request, completion_request, reply, body.stop, stream=bool(body.stream))


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


class _Reply(OpenAiReply):
    """The JSON objects of one reply."""

    id_start = "chatcmpl-"
    kinds = "chat.completion", "chat.completion.chunk"
    _role: Mapping[str, str] = {"role": "assistant"}  # of the first part only

    def content(self, text: str, *, is_part: bool) -> dict[str, Any]:
        """Return the message of an assistant, or what is new in it."""
        if not is_part:
            return {"message": {"role": "assistant", "content": text, "refusal": None}, "logprobs": None}
        delta, self._role = {**self._role, "content": text}, {}
        return {"delta": delta, "logprobs": None}
