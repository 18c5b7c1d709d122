"""The figures of benchmarks.pregeneration, and the person who takes time to decide."""

from benchmarks.pregeneration import AHEAD, WITHOUT, figures
from benchmarks.typing.assistant import Buffer, Offer, now_s
from benchmarks.typing.person import Habits, Person
from benchmarks.typing.scripts import Passage, Script
from benchmarks.typing.tally import RequestRecord, SessionRecord


def record(saved, cpu_s, *waits_s):
    """Return a session with acceptances that were followed by a text after these waits."""
    after = [RequestRecord(10.0, "", None if wait is None else 10.0 + wait, follows=True) for wait in waits_s]
    others = [RequestRecord(1.0, "", 1.001)]
    return SessionRecord("s", "python", 100, saved_characters=saved, cpu_s=cpu_s, requests=[*others, *after])


def test_only_text_within_ten_milliseconds_of_an_acceptance_is_ready():
    report = figures({AHEAD: [record(30, 2.0, 0.005, 0.02), record(20, 1.0, 0.009, None)]})
    assert (report["acceptances"], report["ready_after_acceptance"]) == (4, 0.5)


def test_costs_are_those_that_the_setting_adds():
    report = figures({AHEAD: [record(40, 3.0)], WITHOUT: [record(30, 2.0)]})
    assert (report["saved_characters_added"], report["cpu_s_per_saved_character_added"]) == (10, 0.1)
    assert figures({AHEAD: [record(30, 3.0)], WITHOUT: [record(30, 2.0)]})["cpu_s_per_saved_character_added"] is None


class _Screen(Buffer):
    """An editor that offers the rest of the text after each key."""

    shown = None
    decided_s = None

    def edit(self, start, deleted, inserted, behind=""):
        self.apply(start, deleted, inserted, behind)

    def ask(self, expected):
        self.shown = Offer("id", expected, "", now_s()) if expected else None

    def offer(self):
        return self.shown

    def accept(self, offer, length):
        self.decided_s = now_s() - offer.since_s
        self.apply(self.cursor, 0, offer.text[:length])

    def move(self, offset):
        self.cursor = offset

    async def open(self, script):
        self.load(script)

    async def settle(self):
        """Have nothing to wait for."""

    close = settle


async def test_a_right_suggestion_is_accepted_after_the_time_of_a_decision():
    screen = _Screen()
    quick = dict.fromkeys(("within_s", "between_s", "line_s", "thought_s", "look_s"), 0.001)
    habits = Habits(**quick, decisions_s=(0.3,), keys_a_slip=10**9)
    script = Script("s", "python", "a.py", "", (Passage(0, 0, "value = 1"),), 9)
    await screen.open(script)
    record = await Person(screen, script, habits, 1).work()
    assert screen.text == "value = 1"
    assert (record.accepts, record.saved_characters) == (1, 8)
    assert screen.decided_s >= 0.3
