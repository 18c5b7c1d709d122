"""Replies for clients that only insert text: stop strings, early ends, no replaced range; whole or streamed."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_shape
from completion.host.dialects.schema import Stops, check_request
from completion.host.dialects.stop_strings import StopStrings
from completion.host.services import EventStreamResponse, Host, RequestStream, cancel_when_gone, sender, sse_message
from completion.request import CompletionEvent, CompletionRequest, Statistics, StopReason, Suggestion

_LENGTH_REASONS = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET})
_MAY_BE_REPLACED = frozenset(")]}>\"'`")


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply so far.

    Attributes:
        text: Text of the first suggestion that later answers cannot take back.
        new: End of `text` that the answer before lacks.
        finish: "" while more may come, else "stop" or "length".
        others: Texts of the other suggestions, when the reply is finished.
        statistics: Counts and times; all zero in a reply that ended before the engine did. Generated tokens are those
            of the reply's limit at most: a step can verify more of them.
    """

    text: str
    new: str = ""
    finish: str = ""
    others: tuple[str, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)


class Reply(ABC):
    """The form of one reply in an interface, which is a subclass.

    Attributes:
        names: What the interface calls the fields of a request.
    """

    media_type = "text/event-stream"
    end = b""
    names: Mapping[str, str] = {
        "suggestions": "n",
        "sampling.temperature": "temperature",
        "sampling.top_p": "top_p",
        "sampling.min_p": "min_p",
        "sampling.seed": "seed",
    }

    def __init__(self, request: Request) -> None:
        host: Host = request.app.state.host
        self.model = host.state.status.model

    @abstractmethod
    def whole(self, answer: Answer) -> Any:  # noqa: ANN401 - an object, or several in some interfaces
        """Return the JSON value of a finished reply."""

    def parts(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the JSON objects that a stream has for what is new in an answer; by default the finished reply."""
        return [self.whole(answer)] if answer.finish else []

    def is_over(self, text: str, *, is_complete: bool) -> bool:  # noqa: ARG002 - a subclass looks at them
        """Return whether the reply ends before the engine does."""
        return False

    def encoded(self, part: dict[str, Any]) -> bytes:
        """Return an object as a message of a stream."""
        return sse_message(json.dumps(part).encode())


async def reply_with(
    request: Request, completion_request: CompletionRequest, reply: Reply, stops: Stops = None, *, stream: bool
) -> Response:
    """Complete a request and answer in an interface's form; the text ends before the first stop string.

    Raises:
        DraftlineError: The request was refused, or failed before the reply began.
    """
    host: Host = request.app.state.host
    check_request(completion_request, reply.names)
    events = host.open_stream(completion_request, sender(request))
    events.submit()
    search = StopStrings([stops] if isinstance(stops, str) else stops or ())
    answers = _answers(events, completion_request, search, reply)
    if stream:
        return EventStreamResponse(_messages(answers, reply, request.url.path), events.close, reply.media_type)
    last = Answer("", finish="stop")
    async with cancel_when_gone(request, events), aclosing(answers):
        async for answer in answers:
            last = answer
    return JSONResponse(reply.whole(last))


async def _answers(
    stream: RequestStream[CompletionEvent], request: CompletionRequest, search: StopStrings, reply: Reply
) -> AsyncGenerator[Answer]:
    """Yield the reply after every event, up to one with `finish`, then close the stream.

    Raises:
        DraftlineError: The request failed.
    """
    sent = ""
    async with aclosing(stream.answers()) as events:
        async for event in events:
            answer = _answer(event, sent, request, search, reply)
            sent += answer.new
            yield answer
            if answer.finish:
                break
    stream.close()


def plain_text(suggestion: Suggestion, suffix: str) -> str:
    """Return a finished suggestion for a client that only inserts.

    The text ends before its repetition of the characters after the cursor that it would replace. The document may have
    blanks before them that the text lacks.
    """
    text, replaced = suggestion.text, suffix[: suggestion.replace_after]
    if not replaced:
        return text
    at = text.rfind(replaced) if replaced in text else text.rfind(replaced.strip())
    return text[:at] if at >= 0 else text


def _answer(event: CompletionEvent, sent: str, request: CompletionRequest, search: StopStrings, reply: Reply) -> Answer:
    complete = [plain_text(suggestion, request.suffix) for suggestion in event.suggestions[: event.whole]]
    growing = [_certain(suggestion.text, request.suffix) for suggestion in event.suggestions[:1]]
    texts = complete or ([] if event.done else growing) or [""]
    is_complete = event.done or bool(complete)
    text, stopped = search.text_before(texts[0], done=is_complete)
    if event.done:
        finish = "length" if event.stop_reason in _LENGTH_REASONS and not stopped else "stop"
    else:
        finish = "stop" if (stopped and not complete) or reply.is_over(text, is_complete=is_complete) else ""
    others = tuple(search.text_before(other, done=True)[0] for other in texts[1:])
    statistics = event.statistics or Statistics()
    generated = min(statistics.generated_tokens, request.max_tokens * request.suggestions)
    return Answer(text, text[len(sent) :], finish, others, replace(statistics, generated_tokens=generated))


def _certain(text: str, suffix: str) -> str:
    """Return the part of an unfinished text that stays, whatever closers after the cursor the finished one replaces."""
    closer = suffix.lstrip(" \t")[:1]
    return text.partition(closer)[0].rstrip() if closer in _MAY_BE_REPLACED else text


async def _messages(answers: AsyncGenerator[Answer], reply: Reply, path: str) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(answers):
            async for answer in answers:
                if answer.new or answer.finish:
                    yield b"".join(map(reply.encoded, reply.parts(answer))) + (reply.end if answer.finish else b"")
    except DraftlineError as error:
        shape, _ = error_shape(error, path)
        yield reply.encoded(shape if "error" in shape else {"error": shape})
