"""The replay of benchmarks.typing: the typed text, the figures, the requests of llama.vim."""

import asyncio
from concurrent.futures import Future
from random import Random

import httpx
import pytest
from pygls.exceptions import JsonRpcInternalError

from benchmarks.typing import llama_vim
from benchmarks.typing.assistant import Buffer, Offer
from benchmarks.typing.closing import PairCloser, closing_pairs
from benchmarks.typing.draftline import DraftlineEditor
from benchmarks.typing.host import above, longest
from benchmarks.typing.llama_context import AnswerCache, ChunkRing, local_context
from benchmarks.typing.llama_hint import presentable
from benchmarks.typing.person import Habits, Person, strokes
from benchmarks.typing.report import before, headline
from benchmarks.typing.scripts import Passage, Script, choose, key_unit, keys_of, passages, release_scripts
from benchmarks.typing.tally import Ending, RequestRecord, RowTally, SessionRecord, Wait, quantile, waits

BEFORE = """import os


def area(width, height):
    return width * height


def unused():
    pass
"""
AFTER = """import os
import sys


def area(width, height, scale=1.0):
    return width * height * scale


class Shape:
    sides = 4
"""


def replayed(before, found):
    text = before
    for passage in found:
        text = text[: passage.offset] + passage.typed + text[passage.offset + passage.deleted :]
    return text


def test_passages_lead_from_one_release_to_the_next():
    assert replayed(BEFORE, passages(BEFORE, AFTER)) == AFTER


@pytest.mark.parametrize(
    ("before", "after"), [("", "a\nb\n"), ("a\n", ""), ("a", "b"), ("x\ny\n", "y\nx\n"), ("a\r\n", "b\r\n")]
)
def test_passages_hold_at_the_edges_of_a_file(before, after):
    assert replayed(before, passages(before, after)) == after


def test_a_new_line_is_opened_at_the_end_of_the_line_above():
    assert next(iter(passages("a\nc\n", "a\nb\nc\n"))) == Passage(1, 0, "\nb")


def test_a_run_without_a_session_says_what_to_give():
    with pytest.raises(SystemExit, match="60 --characters or more"):
        choose([], [], 10, seed=1)


def test_words_within_a_line_are_changed_where_they_stand():
    changed = [passage for passage in passages(BEFORE, AFTER) if "scale" in passage.typed]
    assert [(passage.deleted, passage.typed) for passage in changed] == [(0, ", scale=1.0"), (0, " * scale")]


def test_a_line_end_and_its_indentation_are_one_key():
    passage = Passage(0, 0, "  a:\n    b")
    assert key_unit(passage, "", 0) == "  "
    assert key_unit(passage, "", 4) == "\n    "
    assert key_unit(passage, "", 2) == "a"
    assert keys_of("a:\n    b") == 4


def test_the_rhythm_belongs_to_the_text():
    passage = Passage(0, 0, "total = width * height\n" * 20)
    first, second = (strokes(passage, Habits(), Random("1:a")) for _ in range(2))
    assert first == second
    assert first != strokes(passage, Habits(), Random("2:a"))
    assert sorted(stroke.pause_s for stroke in first)[len(first) // 2] < 0.3
    assert max(stroke.pause_s for stroke in first) > 0.6


def test_quantiles_of_waits_that_all_ended_are_the_usual_ones():
    found = [Wait(seconds / 10, Ending.CAME) for seconds in range(1, 11)]
    assert quantile(found, 0.5) == pytest.approx(0.5)
    assert quantile(found, 0.95) == pytest.approx(1.0)


def test_waits_that_were_cut_short_count_as_longer():
    came = [Wait(0.2, Ending.CAME)] * 3 + [Wait(0.4, Ending.CAME)] * 2
    cut = [Wait(0.3, Ending.CUT)] * 5
    assert quantile(came, 0.5) == 0.2
    assert quantile(came + cut, 0.5) == 0.4
    assert quantile([Wait(0.1, Ending.CUT)], 0.5) is None


def test_refused_requests_are_no_waits():
    came = [Wait(seconds / 10, Ending.CAME) for seconds in range(1, 11)]
    assert quantile(came + [Wait(0.05, Ending.REFUSED)] * 30, 0.5) == pytest.approx(0.5)


def test_the_estimate_finds_the_true_median_in_spite_of_keys_and_refusals():
    random = Random(1)
    found = []
    for _ in range(20_000):
        latency, pause = random.expovariate(1 / 0.2), random.expovariate(1 / 0.15)
        ending = Ending.CUT if pause < latency else Ending.REFUSED if random.random() < 0.7 else Ending.CAME
        found.append(Wait(min(latency, pause), ending))
    assert quantile(found, 0.5) == pytest.approx(0.2 * 0.693, rel=0.1)


def test_a_request_that_is_answered_with_nothing_is_refused():
    request = RequestRecord(1.0, "x")
    request.refuse(1.25)
    assert waits([request], lambda one: one.first_text_s) == [Wait(0.25, Ending.REFUSED)]


@pytest.mark.parametrize(
    ("text", "done", "contradicted", "exact"),
    [
        ("b + c", True, False, True),
        ("b + c\nreturn", False, False, True),
        ("b + d", True, False, False),
        ("b", False, True, False),
        ("b", False, False, None),
        ("x", False, False, False),
    ],
)
def test_a_first_line_is_exact_only_when_it_is_whole(text, done, contradicted, exact):
    request = RequestRecord(0.0, "b + c\nreturn a")
    request.came(0.1, text, "", done=done)
    request.end(0.2, contradicted=contradicted)
    assert request.exact is exact


def test_a_line_was_whole_when_its_last_character_came():
    request = RequestRecord(1.0, "b + c")
    for at_s, text, done in ((1.1, "b", False), (1.2, "b + c", False), (1.5, "b + c", True)):
        request.came(at_s, text, "", done=done)
    assert (request.first_text_s, request.first_line_s, request.done_s) == (1.1, 1.2, 1.5)


def test_an_offer_fits_what_is_typed_next():
    offer = Offer("1", "value)\n    return value", "", 0.0)
    assert offer.first_line == "value)"
    assert offer.first_word == "value"
    assert offer.fits(offer.first_line, "value)\n")
    assert not offer.fits(offer.text, "value)\n")
    assert offer.narrowed("val").text == "ue)\n    return value"
    assert offer.narrowed("x") is None


def test_an_offer_that_replaces_closers_must_end_the_passage():
    offer = Offer("1", "value))", ")", 0.0)
    assert offer.fits(offer.text, "value)")
    assert not offer.fits(offer.text, "value) + 1")


def keys(typed, language="python", text=""):
    """Return the document at each key, with the cursor as ‸."""
    closers, index, after = PairCloser(typed, closing_pairs(language)), 0, ""
    while index < len(typed):
        unit = key_unit(Passage(len(text), 0, typed), text, index)
        key = closers.press(index, unit, (text + typed[:index]).rpartition("\n")[2], after[:1])
        index, after = index + len(key.inserted), key.behind + after[key.deleted :]
        surplus = closers.surplus(index)
        yield f"{text + typed[:index]}‸{after[surplus:]}" + (" ⌦" if surplus else "")
        after = after[surplus:]


def test_brackets_and_quotes_are_closed_and_typed_over():
    assert list(keys("f([x])")) == ["f‸", "f(‸)", "f([‸])", "f([x‸])", "f([x]‸)", "f([x])‸"]
    assert list(keys('"a"')) == ['"‸"', '"a‸"', '"a"‸']
    assert list(keys('(f"a"')) == ["(‸ ⌦", "(f‸", '(f"‸"', '(f"a‸"', '(f"a"‸']
    assert next(keys("'a")) == "'‸ ⌦"
    assert next(keys("'a", language="rust")) == "'‸"


def test_quotes_in_words_and_in_strings_are_not_closed():
    assert '"don\'t‸"' in list(keys('"don\'t"'))
    assert next(iter(keys("`a`", language="typescript"))) == "`‸`"
    assert list(keys('""""""'))[:3] == ['"‸"', '""‸', '"""‸']


def test_a_line_end_between_braces_moves_the_closer_to_a_line_of_its_own():
    assert list(keys("{\n    a\n}", "go")) == ["{‸}", "{\n    ‸\n}", "{\n    a‸\n}", "{\n    a\n}‸"]
    assert list(keys("{\n    a}", "go"))[1] == "{\n    ‸ ⌦"


def test_text_without_the_closers_that_are_there():
    closers = PairCloser("f([x])\ny", closing_pairs("python"))
    closers.press(1, "(", "f", "")
    closers.press(2, "[", "f(", ")")
    assert closers.waiting == "])"
    assert closers.lacking(3) == "x\ny"
    closers.accept(1)
    assert closers.lacking(5) == "\ny"


def test_an_offer_may_take_the_place_of_the_closers_that_wait():
    offer = Offer("1", "value) + 1", ")", 0.0)
    assert offer.fits(offer.text, "value) + 1\n", ")")
    assert not offer.fits(offer.text, "value) + 1", "")
    assert offer.fits(offer.first_word, "value) + 2", ")")
    assert Offer("1", "f(x)", "", 0.0).narrowed("f").narrowed("(", behind=")") == Offer("1", "x)", ")", 0.0)
    assert Offer("1", "x) + 1", ")", 0.0).narrowed("x").narrowed(")", deleted=")") == Offer("1", " + 1", "", 0.0)
    assert Offer("1", "f(x", "", 0.0).narrowed("f").narrowed("(", behind=")") is None


LINES = ["def f(a):", "    b = a", "    ", "    return b", ""]


def test_llama_vim_sends_the_lines_around_the_cursor():
    context = local_context(LINES, 1, 8, (), -1)
    assert (context.prefix, context.middle) == ("def f(a):\n", "    b = ")
    assert context.suffix == "a\n    \n    return b\n\n"
    assert (context.indent, context.line_suffix) == (4, "a")


def test_llama_vim_sends_a_line_of_blanks_as_an_empty_one():
    context = local_context(LINES, 2, 4, (), -1)
    assert (context.middle, context.suffix, context.indent) == ("", "\n    return b\n\n", 0)


def test_llama_vim_asks_for_what_follows_an_answer_as_if_it_were_accepted():
    context = local_context(LINES, 1, 9, [" + 1", "    c = b"], 4)
    assert context.prefix.endswith("    b = a + 1\n")
    assert (context.middle, context.suffix) == ("    c = b", "\n    \n    return b\n\n")


def test_llama_vim_finds_an_answer_for_an_earlier_cursor():
    cache = AnswerCache()
    asked = local_context(["a", "  x = "], 1, 6, (), -1)
    cache.insert(asked.keys, "total + 1")
    assert cache.find(local_context(["a", "  x = tot"], 1, 9, (), -1)) == "al + 1"
    assert cache.find(local_context(["a", "  x = tax"], 1, 9, (), -1)) is None


def test_llama_vim_hides_what_repeats_the_lines_below():
    context = local_context(LINES, 2, 4, (), -1)
    assert presentable("    return b", context, LINES, 2) == "return b"
    assert presentable("\n    return b", local_context(LINES, 1, 9, (), -1), [*LINES[:2], *LINES[3:]], 1) == ""


def test_the_ring_keeps_sixteen_chunks_and_none_twice():
    ring = ChunkRing(Random(1))
    for number in range(40):
        ring.pick("file", [f"name{number} = {number}", f"other{number}()", f"more{number}()"], evict=True)
        ring.take_in()
    ring.pick("file", ["name39 = 39", "other39()", "more39()"], evict=True)
    assert len(ring.chunks) == 16
    assert not ring.queued
    assert ring.extra()[-1] == {"text": "name39 = 39\nother39()\nmore39()\n", "filename": "file"}


QUICK = Habits(within_s=1e-4, between_s=1e-4, line_s=1e-4, thought_s=1e-4, look_s=1e-4, read_s=0.0)


class Knowing(Buffer):
    """An assistant that suggests the next `length` characters, always or never right."""

    name, processes = "knowing", ()

    def __init__(self, length, is_right=True):
        super().__init__()
        self._length, self._is_right, self._next = length, is_right, ""

    async def start(self):
        pass

    async def open(self, script):
        self.load(script)

    def move(self, offset):
        self.cursor = offset

    def edit(self, start, deleted, inserted, behind=""):
        self.apply(start, deleted, inserted, behind)

    def ask(self, expected):
        self._next = (expected or "")[: self._length]

    def offer(self):
        text = self._next if self._is_right else "@" + self._next
        return Offer("1", text, "", 0.0) if self._next else None

    def accept(self, offer, length):
        self.apply(self.cursor, 0, offer.text[:length])

    async def settle(self):
        pass

    async def close(self):
        pass

    async def stop(self):
        pass


async def typed(assistant, script, *, closes_pairs=False):
    person = Person(assistant, script, QUICK, seed=1, closes_pairs=closes_pairs)
    await person.begin()
    assert assistant.text == script.text
    return await person.work()


PAIRS = (
    "",
    """def f(a, b=(1, [2])):
    \"\"\"Don't (stop.\"\"\"
    return {
        'x': f"{a['b']}",

        "y": call(
            a)
    }
""",
    "fn<'a>(x: &'a str) {\n    if x {\n        y(\"(\")\n    }\n}\n",
)


@pytest.mark.parametrize("closes_pairs", [False, True])
@pytest.mark.parametrize(("before", "after"), [(BEFORE, AFTER), PAIRS[:2], PAIRS[::2], ("x(\n)", "x(\n    [a,\n])\n)")])
@pytest.mark.parametrize("length", [0, 1, 3, 7, 400])
async def test_whatever_is_accepted_the_same_text_is_written(before, after, length, closes_pairs):
    for assistant in (Knowing(length), Knowing(length, is_right=False)):
        script = Script("a", "python", "a.py", before, tuple(passages(before, after)), 10_000)
        record = await typed(assistant, script, closes_pairs=closes_pairs)
        assert assistant.text == after
        assert record.characters == sum(len(passage.typed) for passage in script.passages)


async def test_before_the_first_key_at_a_position_nothing_was_asked():
    found = tuple(passages(BEFORE, AFTER))
    record = await typed(Knowing(0), Script("a", "python", "a.py", BEFORE, found, 10_000))
    jumps = sum(
        after.offset != before.offset + len(before.typed) and not after.deleted
        for before, after in zip((Passage(-1, 0, ""), *found), found, strict=False)
    )
    assert [look.asked for look in record.looks].count(False) == jumps > 0


class Replacing(Knowing):
    """An assistant whose suggestion also has the next `replaced` characters, in place of those after the cursor."""

    def __init__(self, replaced):
        super().__init__(400)
        self._replaced = replaced

    def offer(self):
        after = self.text[self.cursor : self.cursor + self._replaced]
        return Offer("1", self._next + after, after, 0.0) if self._next else None

    def accept(self, offer, length):
        self.apply(self.cursor, len(offer.replaced), offer.text[:length])


@pytest.mark.parametrize("replaced", [1, 3])
async def test_a_suggestion_that_replaces_what_follows_leaves_it_in_the_text(replaced):
    script = Script("a", "python", "a.py", BEFORE, tuple(passages(BEFORE, AFTER)), 10_000)
    assistant = Replacing(replaced)
    record = await typed(assistant, script)
    assert assistant.text == AFTER
    assert record.characters == sum(len(passage.typed) for passage in script.passages) >= record.saved_characters > 0


async def test_saved_characters_are_the_accepted_ones():
    script = Script("a", "python", "a.py", BEFORE, tuple(passages(BEFORE, AFTER)), 10_000)
    figures = {}
    for name, assistant in (("none", Knowing(0)), ("wrong", Knowing(7, is_right=False)), ("right", Knowing(400))):
        record = await typed(assistant, script)
        figures[name] = RowTally((record,)).figures()
    assert figures["none"]["saved_characters"] == figures["wrong"]["saved_characters"] == 0
    assert figures["wrong"]["keys_with_text"] > 0.7
    assert figures["wrong"]["keys_with_right_line"] == 0
    assert figures["right"]["saved_characters"] > 0.7
    assert 0 < figures["right"]["saved_keys"] < figures["right"]["saved_characters"]


def test_the_last_line_compares_theirs_with_ours():
    names = (
        "first_text_p50_ms", "first_text_p95_ms", "first_line_p50_ms", "exact_first_line", "saved_characters",
        "keys_with_text", "keys_with_right_line", "unused_text", "sessions", "answered",
    )  # fmt: skip
    ours = dict.fromkeys(names, 2.0) | {"cpu_s_per_saved_character": 0.1}
    theirs = dict.fromkeys(names, 4.0) | {"cpu_s_per_saved_character": 0.5, "saved_characters": 0.0}
    found = headline(ours, theirs, 0)
    assert (found["first_text_p50_ratio"], found["exact_first_line_ratio"]) == (2.0, 0.5)
    assert found["cpu_per_saved_character_ratio"] == 0.2
    assert found["saved_characters_ratio"] is None
    assert found["stale_requests"] == 0
    alone = headline(ours, None, 0) | before(theirs, [(9, 4)])
    assert alone["first_text_p50_ratio"] is None
    assert (alone["first_text_p50_ms"], alone["before_first_text_p50_ms"]) == (2.0, 4.0)
    assert alone["session_saved_now_and_before"] == [(9, 4)]
    without_ours = headline(RowTally(()).figures(), theirs, None)
    assert without_ours.keys() == headline(ours, theirs, 0).keys()
    assert without_ours["sessions"] == without_ours["answered"] == 0
    assert {value for name, value in without_ours.items() if not name.endswith(("sessions", "answered"))} == {None}


EXPOSITION = """# TYPE draftline_cancel_seconds histogram
draftline_cancel_seconds_bucket{le="0.05"} 3.0
draftline_cancel_seconds_bucket{le="0.1"} 4.0
draftline_cancel_seconds_bucket{le="+Inf"} 5.0
draftline_cancel_seconds_count 5.0
draftline_cancel_seconds_sum 1.0
"""


def test_requests_that_run_on_for_longer_than_a_step_are_counted():
    assert above(EXPOSITION, "draftline_cancel_seconds", 0.05) == 2
    assert above(EXPOSITION, "draftline_cancel_seconds", 0.1) == 1
    assert longest(EXPOSITION.replace("5.0", "4.0"), "draftline_cancel_seconds") == 0.1


async def test_a_server_that_answers_with_an_error_ends_the_benchmark():
    editor = DraftlineEditor("draftline", {})
    answer = Future()
    editor._client.protocol.send_request = lambda *_arguments, **_options: answer
    editor.ask("expected")
    answer.set_exception(JsonRpcInternalError())
    with pytest.raises(JsonRpcInternalError):
        await editor.settle()


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_a_line_end_is_one_key_whichever_the_file_has(line_end):
    record = {"id": "a", "language": "python", "path": "", "before": BEFORE, "after": AFTER + BEFORE}
    other = record | {name: record[name].replace("\n", line_end) for name in ("before", "after")}
    assert release_scripts([other], 100) == release_scripts([record], 100) != []


async def test_the_name_of_a_file_may_have_any_characters():
    editor, uris = DraftlineEditor("draftline", {}), []
    editor._client.text_document_did_open = lambda params: uris.append(params.text_document.uri)
    for path in ("a/ä b#c%20.py", ""):
        await editor.open(Script("a", "python", path, "", (), 60))
    assert uris == ["file:///typing/1/a/%C3%A4%20b%23c%2520.py", "file:///typing/2/untitled"]


async def test_a_request_of_llama_vim_counts_only_without_a_suggestion_on_the_screen():
    editor = llama_vim.LlamaVimEditor("llama.vim", (), threads=1, seed=1)
    editor.load(Script("a", "python", "a.py", "x = 1\ny = ", (), 60))
    counts = []
    for shown in (Offer("1", "2", "", 0.0), None):
        editor.cursor, editor._shown, editor._job = len(editor.text), shown, None
        editor._fim(None, ())
        editor._job.cancel()
        counts.append(len(editor.requests))
    assert counts == [0, 1]
    await editor._http.aclose()


def test_the_last_line_says_of_how_many_sessions_and_answers_its_figures_are():
    request = RequestRecord(0.0, "x")
    request.came(0.1, "x", "", done=True)
    ours, theirs = (
        RowTally(tuple(SessionRecord(str(n), "go", requests=[request]) for n in range(count))).figures()
        for count in (3, 2)
    )
    found = headline(ours, theirs, 0)
    assert [found[name] for name in ("sessions", "answered", "their_sessions", "their_answered")] == [3, 3, 2, 2]
    assert headline(ours, None, 0)["their_sessions"] is None


async def test_a_server_that_refuses_the_chunks_of_llama_vim_ends_the_benchmark(monkeypatch):
    monkeypatch.setattr(llama_vim, "_RING_UPDATE_S", 0.0)
    editor = llama_vim.LlamaVimEditor("llama.vim", (), threads=1, seed=1)
    editor._server.url = "http://127.0.0.1:9"  # nothing listens there
    await editor.open(Script("a", "python", "a.py", BEFORE, (), 60))
    await asyncio.wait({editor._updates})
    with pytest.raises(httpx.ConnectError):
        await editor.close()
    await editor._http.aclose()
