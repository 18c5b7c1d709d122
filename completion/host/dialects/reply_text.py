"""What clients of other servers expect of a text reply: stop strings, early ends, one text without a range."""

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
        text: All that may be shown; it only grows.
        finish: "" while more may come, else "stop" or "length".
        event: The engine's own last event.
    """

    text: str
    finish: str
    event: CompletionEvent


async def answers(
    stream: CompletionStream, stops: Sequence[str], is_over: Callable[[str], bool] = lambda _text: False
) -> AsyncGenerator[Answer]:
    """Every state of the reply; the last one has `finish`, and the stream is closed behind it.

    Args:
        stream: A stream that was submitted.
        stops: Strings before which the text ends.
        is_over: Told the text, says whether it is enough.

    Raises:
        DraftlineError: What ended the request.
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
    """The finished reply; arguments and errors as `answers`."""
    last = Answer("", "stop", CompletionEvent(()))
    async with aclosing(answers(stream, stops, is_over)) as states:
        async for answer in states:
            last = answer
    return last


def cut_at_stops(text: str, stops: Sequence[str], *, done: bool) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one.

    While more may come, an end that a stop string could begin with is held back.
    """
    found = [at for at in (text.find(stop) for stop in stops if stop) if at >= 0]
    if found:
        return text[: min(found)], True
    held = 0 if done else max((_overlap(text, stop) for stop in stops), default=0)
    return text[: len(text) - held], False


def plain_text(suggestion: Suggestion, suffix: str, stops: Sequence[str]) -> str:
    """A finished suggestion for a client that only inserts: it ends before what it would write a second time."""
    text, _ = cut_at_stops(suggestion.text, stops, done=True)
    if suggestion.replace_after:
        at = text.rfind(suffix[: suggestion.replace_after])
        return text[:at] if at >= 0 else text
    return text


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, shorter than `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((length for length in range(longest, 0, -1) if stop.startswith(text[-length:])), 0)
