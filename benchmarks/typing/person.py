"""The person of benchmarks.typing: when each key is pressed, what is read, and what is accepted.

Pauses belong to the characters of the text, not to the moment: whoever helps, the same text meets the same rhythm.
"""

from __future__ import annotations

import asyncio
import math
import string
import time
from dataclasses import dataclass
from random import Random

from benchmarks.typing.assistant import Assistant, Offer
from benchmarks.typing.scripts import Passage, Script, key_unit, keys_of
from benchmarks.typing.tally import KeyRecord, SessionRecord


@dataclass(frozen=True, slots=True)
class Habits:
    """How a person types; medians of log-normal pauses in seconds.

    Attributes:
        within_s: Between two letters.
        between_s: Before a word or a sign.
        line_s: Before a line's end.
        thought_s: Of a thought, which comes before one key in `keys_a_thought`.
        look_s: Between reaching another place and the first key there.
        spread: Standard deviation of a pause's logarithm.
        burst: A burst's pauses are so many times as long as others.
        keys_a_burst: Mean length of a burst, and of what lies between two bursts.
        keys_a_slip: One letter in so many is a wrong one, noticed and deleted.
        read_s: A text is taken in when it has stood so long.
        fewest: Characters that a text must save.
    """

    within_s: float = 0.14
    between_s: float = 0.24
    line_s: float = 0.45
    thought_s: float = 1.6
    look_s: float = 1.5
    spread: float = 0.45
    burst: float = 0.65
    keys_a_thought: int = 30
    keys_a_burst: int = 12
    keys_a_slip: int = 70
    read_s: float = 0.25
    fewest: int = 3


@dataclass(frozen=True, slots=True)
class Stroke:
    """The pause before a character is typed, and the wrong letter that is typed first, "" for none."""

    pause_s: float
    slip: str = ""


def strokes(passage: Passage, habits: Habits, random: Random) -> list[Stroke]:
    """One stroke for each character of a passage; bursts and thoughts come and go."""
    found: list[Stroke] = []
    hurried, before = False, " "
    for character in passage.typed:
        hurried ^= random.random() < 1 / habits.keys_a_burst
        median = habits.within_s if character.isalnum() and before.isalnum() else habits.between_s
        median = habits.line_s if character == "\n" else median
        median *= habits.burst if hurried else 1.0
        if random.random() < 1 / habits.keys_a_thought:
            median = habits.thought_s
        slips = random.random() < 1 / habits.keys_a_slip and character in string.ascii_letters
        pause_s = median * math.exp(random.gauss(0, habits.spread))
        found.append(Stroke(pause_s, random.choice(string.ascii_lowercase) if slips else ""))
        before = character
    return found


class Person:
    """Types one script with the help of one assistant."""

    def __init__(self, assistant: Assistant, script: Script, habits: Habits, seed: int) -> None:
        self._assistant = assistant
        self._script = script
        self._habits = habits
        self._random = Random(f"{seed}:{script.id}")
        self._record = SessionRecord(script.id, script.language)
        self._next_key_s = 0.0

    async def begin(self) -> None:
        """Open the file, and have one request answered where typing will begin: what a cold cache costs is left out."""
        assistant, offset = self._assistant, self._script.passages[0].offset
        await assistant.open(self._script)
        assistant.move(offset)
        for deleted, inserted in ((0, " "), (1, "")):
            assistant.edit(offset, deleted, inserted)
            assistant.ask(None)
            await assistant.settle()
        assistant.take_requests()

    async def work(self) -> SessionRecord:
        """Do all of the script and close the file; every wait is the person's own."""
        script, assistant = self._script, self._assistant
        self._next_key_s = time.monotonic()
        left, cursor = script.length, -1
        for passage in script.passages:
            plan = strokes(passage, self._habits, self._random)  # drawn even if not reached: the same for everybody
            if left <= 0:
                break
            if passage.offset != cursor:
                await self._go_to(passage.offset)
            if passage.deleted:
                assistant.edit(passage.offset, passage.deleted, "")
                assistant.ask(passage.typed)
            text = assistant.text
            left -= await self._type(passage, text, plan, left)
            cursor = assistant.cursor
        await assistant.settle()
        await assistant.close()
        self._record.received_characters = assistant.received_characters
        self._record.requests = assistant.take_requests()
        return self._record

    async def _go_to(self, offset: int) -> None:
        """Put the cursor elsewhere and look round."""
        self._assistant.move(offset)
        await self._pause(self._habits.look_s * math.exp(self._random.gauss(0, self._habits.spread / 2)))

    async def _type(self, passage: Passage, text: str, plan: list[Stroke], most: int) -> int:
        """Type a passage or the first `most` characters of it; returns how many."""
        assistant, index, end = self._assistant, 0, min(len(passage.typed), most)
        while index < end:
            stroke, rest = plan[index], passage.typed[index:]
            await self._pause(stroke.pause_s)
            offer = assistant.offer()
            self._note(stroke.pause_s, offer, rest)
            accepted = self._acceptable(offer, rest)
            if offer is not None and accepted:
                self._accept(offer, accepted, min(accepted, end - index))
                index += accepted
            else:
                if stroke.slip:
                    await self._slip(stroke.slip)
                unit = key_unit(passage, text, index)
                assistant.edit(assistant.cursor, 0, unit)
                index += len(unit)
                self._record.keys += 1
            assistant.ask(passage.typed[index:])
        self._record.characters += min(index, end)
        return min(index, end)

    async def _slip(self, letter: str) -> None:
        """A wrong letter, noticed a moment later; what is offered behind it is not looked at."""
        assistant, cursor = self._assistant, self._assistant.cursor
        assistant.edit(cursor, 0, letter)
        assistant.ask(None)
        await self._pause(self._habits.between_s)
        assistant.edit(cursor, 1, "")
        assistant.ask(None)
        await self._pause(self._habits.between_s)
        self._record.keys += 2

    async def _pause(self, seconds: float) -> None:
        """Wait until a moment, not for a time: how long the assistant's own code took does not add up."""
        self._next_key_s = max(self._next_key_s + seconds, time.monotonic())
        await asyncio.sleep(self._next_key_s - time.monotonic())

    def _note(self, pause_s: float, offer: Offer | None, rest: str) -> None:
        right = offer is not None and offer.first_line_is(rest)
        self._record.looks.append(KeyRecord(pause_s, offer is not None, right))

    def _acceptable(self, offer: Offer | None, rest: str) -> int:
        """How many characters of an offer are accepted: all, its first line, its first word; 0 for none."""
        if offer is None or time.monotonic() - offer.since_s < self._habits.read_s:
            return 0
        parts = (offer.text,) if offer.replaced else (offer.text, offer.first_line, offer.first_word)
        for part in parts:
            if len(part) >= self._habits.fewest and offer.fits(part, rest):
                return min(len(part), len(rest))
        return 0

    def _accept(self, offer: Offer, accepted: int, counted: int) -> None:
        self._assistant.accept(offer, accepted)
        self._record.keys += 1
        self._record.accepts += 1
        self._record.saved_characters += counted
        self._record.saved_keys += keys_of(offer.text[:counted]) - 1
