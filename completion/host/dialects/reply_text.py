"""Replies for clients that only insert text: stop strings, early ends, no replaced range; whole or streamed."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from completion.errors import DraftlineError
from completion.host.dialects.error_shapes import error_shape
from completion.host.dialects.schema import Stops, check_request
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


class StopStrings:
    """The search for stop strings in one text that grows; `text_before` reads each character of it once."""

    def __init__(self, stops: Sequence[str]) -> None:
        # Clients write \n even if the lines of the document end with \r\n.
        self._stops = [each for stop in stops if stop for each in {stop, stop.replace("\n", "\r\n")}]
        self._searches = [_Search(stop) for stop in self._stops]
        self._text = ""

    def text_before(self, text: str, *, done: bool) -> tuple[str, bool]:
        """Return the text before the first stop string, and whether there was one.

        Unless the text is `done`, an ending that may be the beginning of a stop string is cut off as well.
        """
        if done:
            found = [at for at in map(text.find, self._stops) if at >= 0]
            return text[: min(found, default=len(text))], bool(found)
        if not text.startswith(self._text):
            self._searches, self._text = [_Search(stop) for stop in self._stops], ""
        start, self._text = len(self._text), text
        overlap = max((search.go_on(text, start) for search in self._searches), default=0)
        found = [search.found for search in self._searches if search.found >= 0]
        return text[: min(found, default=len(text) - overlap)], bool(found)


class _Search:
    """The search for one string.

    Source: Knuth, Morris, Pratt, "Fast Pattern Matching in Strings" (1977), section 2. The table of borders grows with
    what the text has matched, so a long string costs nothing until it almost stands in the text.
    """

    __slots__ = ("_borders", "_matched", "_stop", "found")

    def __init__(self, stop: str) -> None:
        self._stop = stop
        self._borders = [0]  # [i]: length of the longest border of the string's first i + 1 characters
        self._matched = 0
        self.found = -1  # where the string begins in the text

    def go_on(self, text: str, at: int) -> int:
        """Search the text from a position on, and return how many characters at its end begin the string."""
        while at < len(text) and self.found < 0:
            if not self._matched and (at := text.find(self._stop[0], at)) < 0:
                break
            self._matched = self._longer(self._matched, text[at])
            at += 1
            if self._matched == len(self._stop):
                self.found = at - self._matched
        return self._matched

    def _longer(self, matched: int, character: str) -> int:
        """Return how much of the string a text ends with that ended with `matched` before one more character."""
        while matched and self._stop[matched] != character:
            matched = self._border(matched)
        return matched + (self._stop[matched] == character)

    def _border(self, length: int) -> int:
        """Return the length of the longest proper border of the first characters of the string."""
        while len(self._borders) < length:
            self._borders.append(self._longer(self._borders[-1], self._stop[len(self._borders)]))
        return self._borders[length - 1]
