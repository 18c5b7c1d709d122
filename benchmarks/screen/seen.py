"""What the screen showed at each key: how soon text came, and how often it disappeared although it still fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class State:
    """What the screen showed from one moment on.

    Attributes:
        at_ms: The moment, by the page's clock.
        line: The cursor's line, without the suggestion.
        text: The suggestion; "" for none.
    """

    at_ms: float
    line: str
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """Figures of one session.

    Attributes:
        keys: Number of keys that changed the cursor's line.
        with_text: Number of keys after which text was on the screen before the next key.
        waits_ms: Time from each such key to its text, where none was on the screen at the key.
        flickers: Texts that disappeared while they fitted, and came back before the next key, the same or longer.
    """

    keys: int
    with_text: int
    waits_ms: tuple[float, ...]
    flickers: tuple[tuple[State, State], ...]


def seen(states: Sequence[State]) -> Seen:
    """Return the figures of what the screen showed, in the order of time."""
    starts = [index for index, one in enumerate(states) if index == 0 or one.line != states[index - 1].line]
    with_text, waits = 0, []
    for start, end in [*pairwise([*starts, len(states)])][1:]:
        first = next((one for one in states[start:end] if one.text), None)
        if first is not None:
            with_text += 1
            if not states[start].text and not states[start - 1].text:
                waits.append(first.at_ms - states[start].at_ms)
    flickers = tuple(
        (before, again)
        for before, hidden, again in zip(states, states[1:], states[2:], strict=False)
        if _is_flicker(before, hidden, again)
    )
    return Seen(max(0, len(starts) - 1), with_text, tuple(waits), flickers)


def _is_flicker(before: State, hidden: State, again: State) -> bool:
    """Return whether a text came back. An editor draws lines below the cursor's one by one, so these do not count."""
    is_due = bool(before.text) and before.line + before.text != hidden.line
    is_back = again.line == hidden.line and (again.line + again.text).startswith(before.line + before.text)
    return is_due and is_back and not hidden.text and "\n" not in again.text
