"""The simulated person of benchmarks.typing: when a key is pressed, and which suggestions are accepted.

Pauses are drawn for the characters of the text, so that each assistant meets the same rhythm.
"""

from __future__ import annotations

import asyncio
import math
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.engine_processes import used_cpu_s
from benchmarks.typing.assistant import Assistant, Offer
from benchmarks.typing.closing import PairCloser, closing_pairs
from benchmarks.typing.scripts import Passage, Script, key_unit, keys_of
from benchmarks.typing.tally import KeyRecord, SessionRecord

_MB = 1e6


@dataclass(frozen=True, slots=True)
class Habits:
    """How a person types. Pauses are log-normal; their medians are in seconds.

    Attributes:
        within_s: Pause between two letters.
        between_s: Pause before a word or a symbol.
        line_s: Pause before the end of a line.
        thought_s: Pause for a thought.
        look_s: Pause between reaching another position and the first key there.
        spread: Standard deviation of the logarithm of a pause.
        burst: Factor of the pauses within a burst of quick keys.
        keys_a_thought: Mean number of keys between two thoughts.
        keys_a_burst: Mean number of keys of a burst, and between two bursts.
        keys_a_slip: Mean number of letters between two wrong letters, which are noticed and deleted.
        read_s: Time on the screen after which a suggestion has been read.
        fewest: Minimum number of characters that an accepted suggestion saves.
        decisions_s: Times on the screen at which the person accepts a right suggestion, one drawn for each. If empty,
            the next key comes in the rhythm of the text and accepts what has been read.
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
    decisions_s: Sequence[float] = ()

    @classmethod
    def even(cls, pause_s: float) -> Habits:
        """Return the habits of a person who types evenly and seldom stops to think."""
        return cls(pause_s, pause_s, pause_s, spread=0.1, burst=1.0, keys_a_thought=1000)


@dataclass(frozen=True, slots=True)
class Stroke:
    """The pause before a character, and the wrong letter that is typed first, "" for none."""

    pause_s: float
    slip: str = ""


def strokes(passage: Passage, habits: Habits, random: Random) -> list[Stroke]:
    """Draw one stroke for each character of a passage."""
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

    def __init__(
        self, assistant: Assistant, script: Script, habits: Habits, seed: int, *, closes_pairs: bool = False
    ) -> None:
        self._assistant = assistant
        self._pairs = closing_pairs(script.language) if closes_pairs else {}
        self._script = script
        self._habits = habits
        self._random = Random(f"{seed}:{script.id}")
        self._record = SessionRecord(script.id, script.language)
        self._next_key_s = 0.0
        self._asked = False

    async def begin(self) -> None:
        """Open the file and wait for one answer where typing begins. This leaves out the cost of a cold cache."""
        assistant, offset = self._assistant, self._script.passages[0].offset
        await assistant.open(self._script)
        assistant.move(offset)
        for deleted, inserted in ((0, " "), (1, "")):
            assistant.edit(offset, deleted, inserted)
            assistant.ask(None)
            await assistant.settle()
        assistant.take_requests()

    async def work(self) -> SessionRecord:
        """Type the script in the person's rhythm, close the file, and return the record."""
        script, assistant = self._script, self._assistant
        self._next_key_s = time.monotonic()
        left, cursor = script.length, -1
        for passage in script.passages:
            plan = strokes(
                passage, self._habits, self._random
            )  # drawn even if the session ends before: the same for each assistant
            if left <= 0:
                break
            if passage.offset != cursor:
                await self._go_to(passage.offset)
            if passage.deleted:
                assistant.edit(passage.offset, passage.deleted, "")
                self._ask(passage.typed)
            text = assistant.text
            left -= await self._type(passage, text, plan, left)
            cursor = assistant.cursor
        await assistant.settle()
        await assistant.close()
        self._record.received_characters = assistant.received_characters
        self._record.requests = assistant.take_requests()
        return self._record

    async def _go_to(self, offset: int) -> None:
        """Move the cursor and pause."""
        self._assistant.move(offset)
        self._asked = False
        await self._pause(self._habits.look_s * math.exp(self._random.gauss(0, self._habits.spread / 2)))

    async def _type(self, passage: Passage, text: str, plan: list[Stroke], most: int) -> int:
        """Type at most `most` characters of a passage. Return how many."""
        assistant, index, end = self._assistant, 0, min(len(passage.typed), most)
        closers = PairCloser(passage.typed, self._pairs)
        while index < end:
            stroke, rest = plan[index], passage.typed[index:]
            await self._pause(stroke.pause_s)
            offer = await self._read(rest, closers)
            self._note(stroke.pause_s, offer, closers.lacking(index))
            accepted = self._acceptable(offer, rest, closers)
            if offer is not None and accepted:
                self._accept(offer, accepted, min(accepted, end - index))
                closers.accept(len(offer.replaced) if accepted == len(offer.text) else 0)
                index += min(accepted, len(rest))
            else:
                if stroke.slip:
                    await self._slip(stroke.slip)
                index += self._press(closers, index, key_unit(passage, text, index))
            surplus = closers.surplus(index)
            if surplus:
                assistant.edit(assistant.cursor, surplus, "")
                self._record.keys += 1
            self._ask(closers.lacking(index))
        self._record.characters += min(index, end)
        return min(index, end)

    def _press(self, closers: PairCloser, index: int, unit: str) -> int:
        """Press the key that writes `unit` at a character of the passage. Return how many characters it wrote."""
        text, cursor = self._assistant.text, self._assistant.cursor
        line = text[text.rfind("\n", 0, cursor) + 1 : cursor]
        key = closers.press(index, unit, line, text[cursor : cursor + 1])
        self._assistant.edit(cursor, key.deleted, key.inserted, key.behind)
        self._record.keys += 1
        return len(key.inserted)

    async def _read(self, rest: str, closers: PairCloser) -> Offer | None:
        """Return the suggestion on the screen, with the time to decide for a right one."""
        offer = self._assistant.offer()
        if offer is not None and self._habits.decisions_s and self._fitting(offer, rest, closers):
            decided_s = offer.since_s + self._random.choice(self._habits.decisions_s)
            await self._pause(max(0.0, decided_s - self._next_key_s))
            offer = self._assistant.offer()
        return offer

    async def _slip(self, letter: str) -> None:
        """Type a wrong letter and delete it. Suggestions after it are ignored."""
        assistant, cursor = self._assistant, self._assistant.cursor
        assistant.edit(cursor, 0, letter)
        self._ask(None)
        await self._pause(self._habits.between_s)
        assistant.edit(cursor, 1, "")
        self._ask(None)
        await self._pause(self._habits.between_s)
        self._record.keys += 2

    async def _pause(self, seconds: float) -> None:
        """Wait until the time of the next key, so that the time of the assistant's code does not add up."""
        self._next_key_s = max(self._next_key_s + seconds, time.monotonic())
        await asyncio.sleep(self._next_key_s - time.monotonic())

    def _note(self, pause_s: float, offer: Offer | None, rest: str) -> None:
        right, at_s = offer is not None and offer.first_line_is(rest), time.monotonic()
        shown_s = at_s - offer.since_s if offer is not None else 0.0
        self._record.looks.append(KeyRecord(pause_s, offer is not None, right, at_s, shown_s, self._asked))

    def _ask(self, expected: str | None) -> None:
        self._assistant.ask(expected)
        self._asked = True

    def _acceptable(self, offer: Offer | None, rest: str, closers: PairCloser) -> int:
        """Return how many characters are accepted: all, the first line, the first word, or 0."""
        if offer is None or time.monotonic() - offer.since_s < self._habits.read_s:
            return 0
        return self._fitting(offer, rest, closers)

    def _fitting(self, offer: Offer, rest: str, closers: PairCloser) -> int:
        waiting = closers.waiting
        replaces_more = len(offer.replaced) > len(waiting)
        for part in (offer.text,) if replaces_more else (offer.text, offer.first_line, offer.first_word):
            if len(part) >= self._habits.fewest and offer.fits(part, rest, waiting):
                return len(part)
        return 0

    def _accept(self, offer: Offer, accepted: int, counted: int) -> None:
        self._assistant.accept(offer, accepted)
        self._record.keys += 1
        self._record.accepts += 1
        self._record.saved_characters += counted
        self._record.saved_keys += keys_of(offer.text[:counted]) - 1


async def session(
    assistant: Assistant, script: Script, habits: Habits, seed: int, *, closes_pairs: bool = False
) -> SessionRecord:
    """Type one script, in an editor that closes brackets and quotes or in one that does not, and record its cost."""
    person = Person(assistant, script, habits, seed, closes_pairs=closes_pairs)
    await person.begin()
    before_s, started = used_cpu_s(assistant.processes), time.monotonic()
    record = await person.work()
    record.seconds = time.monotonic() - started
    record.cpu_s = used_cpu_s(assistant.processes) - before_s
    record.resident_mb = sum(process.memory_info().rss for process in assistant.processes) / _MB
    return record
