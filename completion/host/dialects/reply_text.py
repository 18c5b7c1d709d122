"""Replies as plain text for clients of other servers: stop strings, early ends, no replaced range."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from completion.host.stream import CompletionStream
from completion.request import CompletionEvent, StopReason, Suggestion

_LENGTH_REASONS = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET})


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply so far.

    Attributes:
        text: Text of the first suggestion that later events cannot take back.
        finish: "" while more may come, else "stop" or "length".
        event: The engine's latest event.
    """

    text: str
    finish: str
    event: CompletionEvent


async def answers(
    stream: CompletionStream, stops: Sequence[str], is_over: Callable[[str], bool] = lambda _text: False
) -> AsyncGenerator[Answer]:
    """Yield the reply after every event, up to one with `finish`, then close the stream.

    Args:
        stream: A stream whose request is queued.
        stops: Stop strings; the text ends before the first of them.
        is_over: Says of the text so far whether the reply ends there.

    Raises:
        DraftlineError: The request failed.
    """
    async with aclosing(stream.events()) as events:
        async for event in events:
            whole = event.suggestions[0].text if event.suggestions else ""
            text, stopped = cut_at_stops(whole, stops, done=event.done)
            if event.done and not stopped:
                finish = "length" if event.stop_reason in _LENGTH_REASONS else "stop"
            else:
                finish = "stop" if stopped or is_over(text) else ""
            yield Answer(text, finish, event)
            if finish:
                break
    stream.close()


async def last_answer(
    stream: CompletionStream, stops: Sequence[str], is_over: Callable[[str], bool] = lambda _text: False
) -> Answer:
    """Return the finished reply. Arguments and errors are those of `answers`."""
    last = Answer("", "stop", CompletionEvent(()))
    async with aclosing(answers(stream, stops, is_over)) as states:
        async for answer in states:
            last = answer
    return last


def cut_at_stops(text: str, stops: Sequence[str], *, done: bool) -> tuple[str, bool]:
    """Return the text before the first stop string, and whether there was one.

    Unless the text is `done`, an ending that may be the beginning of a stop string is cut off as well.
    """
    found = [at for at in (text.find(stop) for stop in stops if stop) if at >= 0]
    if found:
        return text[: min(found)], True
    overlap = 0 if done else max((_overlap(text, stop) for stop in stops), default=0)
    return text[: len(text) - overlap], False


def plain_text(suggestion: Suggestion, suffix: str, stops: Sequence[str]) -> str:
    """Return a finished suggestion for a client that only inserts.

    The text ends before its repetition of the characters after the cursor that it would replace.
    """
    text, _ = cut_at_stops(suggestion.text, stops, done=True)
    if suggestion.replace_after:
        at = text.rfind(suffix[: suggestion.replace_after])
        return text[:at] if at >= 0 else text
    return text


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of `text` that is a proper beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if stop.startswith(text[-length:])), 0)
