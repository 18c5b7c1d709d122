"""Rooms of typists: what a window sends, what a run reports, and what a simulated engine does."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from benchmarks.team import __main__ as team
from benchmarks.team import agreement
from benchmarks.team.__main__ import LONG_PAUSE_S, Room, sent_before, served, shown_as, summary
from benchmarks.team.simulation import ENGINES, Costs, capacity, room, waits
from benchmarks.team.typist import TeamEditor
from benchmarks.team.typist_alone import TimedServer, keys
from benchmarks.typing.person import Person
from benchmarks.typing.scripts import WARM_UP, Passage, Script
from benchmarks.typing.tally import Ending, KeyRecord, RequestRecord, SessionRecord, quantile
from completion.host.errors import QueueFullError
from completion.request import CompletionEvent, Statistics, Suggestion
from tests.benchmarks.test_typing import QUICK, Knowing

ALONE = Costs(12, 0.7, batches=False, overhead_ms=8, step_rows=9, step_tokens=3.2)


class PagedDesk:
    """A server that sends the texts that a test puts into its queue, and ends where it finds None."""

    def __init__(self):
        self.texts = asyncio.Queue()
        self.requests = []
        self.cancelled = 0

    async def complete(self, request):
        self.requests.append(request)
        if request.prefix.endswith("full"):
            raise QueueFullError("16 of your requests already wait for the model. Try again in a second.")
        try:
            while (text := await self.texts.get()) is not None:
                yield CompletionEvent((Suggestion(text),))
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        yield CompletionEvent((Suggestion(text or ""),), done=True, statistics=Statistics(computed_tokens=3))

    async def prepare(self, request):
        self.requests.append(request)

    async def forget(self, document):
        pass

    async def close(self):
        pass


@pytest.fixture
async def editor():
    editor = TeamEditor("ada", PagedDesk())
    editor._settings = replace(editor._settings, debounce_ms=0)
    await editor.open(WARM_UP)
    editor.cursor = len(editor.text)
    yield editor
    editor._asked.cancel()
    with suppress(asyncio.CancelledError):
        await editor._asked


def press(editor, key):
    editor.edit(editor.cursor, 0, key)
    editor.ask(None)


async def until(condition):
    """Let the editor's task run until a condition holds; it waits for nothing but the event loop's turns."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("The editor does nothing.")


async def test_a_key_that_agrees_with_the_suggestion_sends_nothing_and_another_one_cancels(editor):
    desk = editor._desk
    press(editor, "r")
    desk.texts.put_nowait("eturn")
    await until(lambda: editor.offer() is not None)
    press(editor, "e")
    assert editor.offer().text == "turn"
    desk.texts.put_nowait("eturn x")
    await until(lambda: editor.offer().text == "turn x")
    assert (len(desk.requests), desk.cancelled) == (1, 0)
    press(editor, "!")
    await until(lambda: len(desk.requests) == 2)
    assert desk.cancelled == 1
    first, second = editor.take_requests()
    assert first.first_text_s is not None
    assert second.first_text_s is None


def test_of_a_lone_typists_keys_those_count_that_append_where_the_one_before_was():
    passages = (Passage(2, 0, "x = 1"), Passage(9, 0, "y"))
    found = list(keys(Script("id", "python", "a.py", "a\nb\n", passages, 9)))
    assert [request.prefix for request, _ in found] == ["a\n", "a\nx", "a\nx ", "a\nx =", "a\nx = ", "a\nx = 1b\n"]
    assert [appends for _, appends in found] == [False, True, True, True, True, False]


def test_the_time_of_a_replys_first_token_is_kept_until_the_next_reply():
    class Server:
        def generate(self, query, cancel):
            yield from query

    timed = TimedServer(Server())
    tokens = timed.generate("ab", None)
    next(tokens)
    first_s = timed.first_s
    assert list(tokens) == ["b"]
    assert timed.first_s == first_s
    assert list(timed.generate("", None)) == []
    assert timed.first_s is None


async def test_a_refused_request_is_counted_by_its_code(editor):
    press(editor, "full")
    await until(lambda: editor.refusals)
    assert editor.refusals == ["queue_full"]
    assert [request.refused for request in editor.take_requests()] == [True]


async def test_the_tokens_of_requests_that_do_not_count_are_left_out(editor):
    for _ in range(2):
        press(editor, "r")
        editor._desk.texts.put_nowait(None)
        await until(lambda: editor.requests and editor.requests[-1].computed_tokens == 3)
        counted = editor.take_requests()
    assert Room([SessionRecord("a", "python", requests=counted)], {}).figures()["computed_tokens_p95"] == 3
    assert Room([SessionRecord("a", "python")], {}).figures()["computed_tokens_p95"] is None


def test_only_what_is_sent_while_all_type_counts():
    requests = [RequestRecord(float(at_s), None) for at_s in range(4)]
    record = SessionRecord("a", "python", looks=[look(at_s=float(at_s)) for at_s in range(4)], requests=requests)
    counted = sent_before(2.0, record)
    assert [request.asked_s for request in counted.requests] == [0.0, 1.0]
    assert [key.at_s for key in counted.looks] == [0.0, 1.0]


def look(pause_s=1.0, shown_s=0.0, at_s=0.0, *, asked=True):
    return KeyRecord(pause_s, shown_s > 0, right=False, at_s=at_s, shown_s=shown_s, asked=asked)


@pytest.mark.parametrize(
    ("looks", "pauses", "share"),
    [
        ([], 0, None),
        ([look(LONG_PAUSE_S, 0.25)], 1, 1.0),
        ([look(LONG_PAUSE_S - 0.01, 0.25)], 0, None),  # nobody reads in it
        ([look(shown_s=0.24)], 1, 0.0),  # it came too late to be read
        ([look(shown_s=3.0), look()], 2, 0.5),
        ([look(asked=False), look(shown_s=1.0)], 1, 1.0),  # at another position nothing is asked before the first key
    ],
)
def test_a_long_pause_counts_as_read_if_text_was_there_long_enough(looks, pauses, share):
    figures = Room([SessionRecord("a", "python", looks=looks)], {}).figures()
    assert (figures["pauses"], figures["pauses_with_text_share"]) == (pauses, share)


async def test_dropping_or_cancelling_requests_improves_no_pause(monkeypatch):
    """A server that answers some requests at once and drops the others has the best times, and pauses without text."""
    monkeypatch.setattr(team, "LONG_PAUSE_S", 0.0)
    passages = (Passage(0, 0, "width = 1\nheight = 2\n"),)
    figures = {}
    for name, most in (("all", 99), ("some", 3), ("none", 0)):
        assistant = Dropping(most)
        person = Person(assistant, Script("a", "python", "a.py", "", passages, 99), QUICK, seed=1)
        await person.begin()
        figures[name] = Room([await person.work()], {}).figures()
    shares = [figures[name]["pauses_with_text_share"] for name in ("all", "some", "none")]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[2] == 0
    assert figures["all"]["pauses"] == figures["none"]["pauses"]


class Dropping(Knowing):
    """An assistant that has a wrong suggestion after the first keys of a session only."""

    def __init__(self, most):
        super().__init__(7, is_right=False)
        self._left = most

    def ask(self, expected):
        super().ask(expected if self._left > 0 else "")
        self._left -= expected is not None


def test_the_table_shows_a_share_in_percent():
    assert [shown_as("pauses", 1234), shown_as("pauses_with_text_share", 0.375)] == ["1,234", "38%"]
    assert shown_as("pauses_with_text_share", None) == "–"


def test_a_room_is_served_up_to_the_first_number_that_waits_too_long_or_is_refused():
    def figures(p95_ms, refused=0):
        pauses = {"pauses": 9, "pauses_with_text_share": 0.5}
        return {"ttft_p50_ms": 1.0, "ttft_p95_ms": p95_ms, "refused": refused, "computed_tokens_p95": 3} | pauses

    quick = {1: figures(20.0), 8: figures(300.0), 16: figures(301.0), 32: figures(100.0)}
    assert served(quick) == 8
    assert served({1: figures(20.0), 8: figures(20.0, refused=1)}) == 1
    assert served({1: figures(None)}) == 0
    last = summary({"draftline": quick})
    assert last["typists_at_p95_300ms"] == {"draftline": 8}
    assert last["ttft_p95_ms"]["draftline"][16] == 301.0
    assert last["pauses_with_text_share"]["draftline"][16] == 0.5


def test_a_lone_typist_waits_for_one_step_and_the_overhead():
    came = [wait.seconds for wait in waits(ALONE, 1, seconds=20) if wait.ending is Ending.CAME]
    assert came == pytest.approx([(12 + 0.7 * (9 + 12) + 8) / 1e3] * len(came))
    assert len(came) > 10


def test_a_lone_typists_whole_answer_takes_a_step_for_every_few_tokens():
    answers = [one for one in room(ALONE, 1, seconds=20) if one.whole_s < one.until_s]
    assert [one.whole_s - one.shown_s for one in answers] == pytest.approx([4 * (12 + 0.7 * 9) / 1e3] * len(answers))
    assert len(answers) > 5


def test_a_first_text_waits_for_steps_of_others_and_never_for_their_whole_answers():
    whole_answer_s = 5 * (12 + 0.7 * 9) / 1e3
    two = quantile(waits(ALONE, 2, seconds=60), 0.99)
    assert two < quantile(waits(ALONE, 1, seconds=60), 0.5) + whole_answer_s / 2


@pytest.mark.parametrize("name", list(ENGINES)[:2])
def test_more_typists_wait_longer_and_a_slower_engine_serves_fewer(name):
    costs = ENGINES[name]
    p95 = [quantile(waits(costs, typists, seconds=20), 0.95) for typists in (1, 8, 32)]
    assert p95 == sorted(p95)
    assert p95[0] < p95[-1]
    wanted_ms = 2e3 * p95[0]
    assert capacity(replace(costs, base_ms=2 * costs.base_ms), wanted_ms, 20) < capacity(costs, wanted_ms, 20)


@pytest.mark.parametrize("main", [team.main, agreement.main])
def test_a_vllm_that_runs_and_one_to_start_exclude_each_other(monkeypatch, capsys, tmp_path, main):
    address = "--vllm" if main is team.main else "--url"
    given = [address, "http://localhost:1", "--vllm-python", "python", "--data-dir", str(tmp_path), "--model", "./none"]
    monkeypatch.setattr(sys, "argv", ["team", *given])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "not allowed with argument" in capsys.readouterr().err


def test_the_cancelled_streams_of_a_server_without_such_metrics_are_not_measured(monkeypatch, capsys):
    given = ["--url", "http://localhost:1", "--kind", "llama-server", "--parts", "forced", "cancels"]
    monkeypatch.setattr(sys, "argv", ["agreement", *given])
    with pytest.raises(SystemExit, match="2"):
        agreement.main()
    assert "--parts cancels needs vLLM" in capsys.readouterr().err
