"""Replies for clients that only insert text: stop strings, early ends, no replaced range; whole or streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_shape
from completion.host.dialects.schema import check_request
from completion.host.dialects.stop_strings import StopStrings
from completion.host.services import Host, sender
from completion.host.stream import CompletionStream, EventStreamResponse, cancel_when_gone, sse_message
from completion.request import CompletionEvent, CompletionRequest, Statistics, StopReason, Suggestion

_LENGTH_REASONS = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET})
_NAMES = {
    "suggestions": "n",
    "sampling.temperature": "temperature",
    "sampling.top_p": "top_p",
    "sampling.min_p": "min_p",
    "sampling.seed": "seed",
}
"""What other interfaces call the fields of a request."""
_MAY_BE_REPLACED = frozenset(")]}>\"'`")

IsOver = Callable[[str, bool], bool]
"""Says of the text so far, and of whether it is complete, whether the reply ends there."""


def _never(_text: str, _is_complete: bool) -> bool:  # noqa: FBT001 - the form of an `IsOver`
    return False


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


async def reply_with(
    request: Request,
    completion_request: CompletionRequest,
    whole: Callable[[Answer], Any],
    chunk: Callable[[Answer], bytes] | None = None,
    *,
    stops: Sequence[str] = (),
    is_over: IsOver = _never,
    names: Mapping[str, str] = MappingProxyType({}),
    frame: Callable[[bytes], bytes] = sse_message,
    media_type: str = "text/event-stream",
) -> Response:
    """Complete a request and answer in an interface's form.

    Args:
        request: The HTTP request.
        completion_request: What to complete.
        whole: Returns the JSON value of a finished reply.
        chunk: Returns the messages for what is new in an answer; None for a reply that is not streamed.
        stops: Stop strings; the text ends before the first of them.
        is_over: Decides whether the reply ends before the engine does.
        names: What the interface calls fields that have other names in most interfaces.
        frame: Encodes one message of a stream.
        media_type: Type of a streamed reply.

    Raises:
        DraftlineError: The request was refused, or failed before the reply began.
    """
    host: Host = request.app.state.host
    check_request(completion_request, {**_NAMES, **names})
    stream = host.open_stream(completion_request, sender(request))
    stream.submit()
    states = answers(stream, completion_request, stops, is_over)
    if chunk is not None:
        messages = _messages(states, chunk, lambda error: frame(_error_line(error, request.url.path)))
        return EventStreamResponse(messages, stream.close, media_type)
    last = Answer("", finish="stop")
    async with cancel_when_gone(request, stream), aclosing(states):
        async for answer in states:
            last = answer
    return JSONResponse(whole(last))


async def answers(
    stream: CompletionStream, request: CompletionRequest, stops: Sequence[str], is_over: IsOver = _never
) -> AsyncGenerator[Answer]:
    """Yield the reply after every event, up to one with `finish`, then close the stream.

    Args:
        stream: A stream whose request is queued.
        request: That request.
        stops: Stop strings; the text ends before the first of them.
        is_over: Decides whether the reply ends before the engine does.

    Raises:
        DraftlineError: The request failed.
    """
    sent, searched = "", StopStrings(stops)
    async with aclosing(stream.events()) as events:
        async for event in events:
            answer = _answer(event, sent, request, searched, is_over)
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


def _answer(
    event: CompletionEvent, sent: str, request: CompletionRequest, stops: StopStrings, is_over: IsOver
) -> Answer:
    complete = [plain_text(suggestion, request.suffix) for suggestion in event.suggestions[: event.whole]]
    growing = [_certain(suggestion.text, request.suffix) for suggestion in event.suggestions[:1]]
    texts = complete or ([] if event.done else growing) or [""]
    is_complete = event.done or bool(complete)
    text, stopped = stops.text_before(texts[0], done=is_complete)
    if event.done:
        finish = "length" if event.stop_reason in _LENGTH_REASONS and not stopped else "stop"
    else:
        finish = "stop" if (stopped and not complete) or is_over(text, is_complete) else ""
    others = tuple(stops.text_before(other, done=True)[0] for other in texts[1:])
    statistics = event.statistics or Statistics()
    generated = min(statistics.generated_tokens, request.max_tokens * request.suggestions)
    return Answer(text, text[len(sent) :], finish, others, replace(statistics, generated_tokens=generated))


def _certain(text: str, suffix: str) -> str:
    """Return the part of an unfinished text that stays, whatever closers after the cursor the finished one replaces."""
    closer = suffix.lstrip(" \t")[:1]
    return text.partition(closer)[0].rstrip() if closer in _MAY_BE_REPLACED else text


async def _messages(
    states: AsyncGenerator[Answer],
    chunk: Callable[[Answer], bytes],
    error_message: Callable[[DraftlineError], bytes],
) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(states):
            async for answer in states:
                if answer.new or answer.finish:
                    yield chunk(answer)
    except DraftlineError as error:
        yield error_message(error)


def _error_line(error: DraftlineError, path: str) -> bytes:
    shape, _ = error_shape(error, path)
    return json.dumps(shape if "error" in shape else {"error": shape}).encode()
