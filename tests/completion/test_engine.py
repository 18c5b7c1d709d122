"""The life of a request with a tiny real model: streaming, losslessness, seeds, healing, cancellation."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from completion.cache import kv_sessions
from completion.cache.kv_session import SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.stop_rules import StopRules
from completion.ending.context import Context
from completion.ending.rule import Stop
from completion.engine import Engine, EngineSettings
from completion.errors import CancelledError
from completion.model.loading import load_model
from completion.request import (
    Alternatives,
    CacheMode,
    Closing,
    CompletionRequest,
    ContextFile,
    GrammarMode,
    Layout,
    Mode,
    Sampling,
    StopReason,
    WorkspaceFile,
    WorkspaceUpdate,
)
from completion.syntax.parsing import IN_PROCESS
from completion.syntax.parsing.process import ParserProcess
from tests.completion.tasks import prompt_of
from tests.tiny_models import write_tiny_model

PREFIX = "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        self.it"
SUFFIX = "\n\n    def pop(self):\n        return self.items.pop()\n"
RAW = CompletionRequest(PREFIX, SUFFIX, "python", mode=Mode.BLOCK, max_tokens=24, filters=False, document="d")
FREE = dataclasses.replace(RAW, grammar=GrammarMode.OFF)


@pytest.fixture(scope="module")
def engine(tiny_model):
    return Engine(tiny_model)


def last(engine, request, cancel=None):
    *_, event = engine.complete(request, cancel or CancelToken())
    return event


def index(engine, *files):
    for _ in engine.update_workspace(WorkspaceUpdate("w", files), CancelToken()):
        pass


def texts_of(event):
    """Return the suggestions' texts. Who drafted them, and rounding, depend on what was drafted for other documents."""
    return [suggestion.text for suggestion in event.suggestions]


def text_of(event):
    return event.suggestions[0].text if event.suggestions else ""


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafting_changes_no_text(engine, layout, temperature):
    sampling = Sampling(temperature=temperature, seed=11)
    request = dataclasses.replace(RAW, layout=layout, sampling=sampling, cache=CacheMode.EXACT)
    drafted = last(engine, request)
    plain = last(engine, dataclasses.replace(request, drafting=False))
    assert text_of(drafted) == text_of(plain)
    assert plain.statistics.drafted_tokens == 0


def test_a_client_may_hear_of_greedy_text_that_is_not_for_the_screen(engine):
    request = dataclasses.replace(RAW, filters=True, mode=Mode.LINE)
    plain, told = (
        [*engine.complete(dataclasses.replace(request, tells_greedy=tells), CancelToken())] for tells in (False, True)
    )
    assert texts_of(told[-1]) == texts_of(plain[-1])
    assert not any(event.greedy for event in plain)
    growing = [event.greedy for event in told if event.statistics is None]
    assert all(later.startswith(sooner) for sooner, later in itertools.pairwise(growing))
    assert any(event.greedy and not event.suggestions for event in told)


def test_a_seed_reproduces_the_text_and_another_seed_changes_it(engine):
    sampled = dataclasses.replace(RAW, sampling=Sampling(temperature=1.5, seed=1))
    other = dataclasses.replace(RAW, sampling=Sampling(temperature=1.5, seed=2))
    assert text_of(last(engine, sampled)) == text_of(last(engine, sampled))
    assert text_of(last(engine, sampled)) != text_of(last(engine, other))


def test_a_seed_repeats_its_text_after_others_met_dead_ends_of_the_grammar(engine):
    requests = [
        dataclasses.replace(
            RAW, grammar=GrammarMode.STRICT, sampling=Sampling(temperature=1.0, seed=seed), cache=CacheMode.EXACT
        )
        for seed in range(8)
    ]
    found = [text_of(last(engine, request)) for request in requests]
    assert [text_of(last(engine, dataclasses.replace(each, drafting=False))) for each in requests] == found
    assert any(engine._sessions.open(RAW.document).dead_ends._texts.values())


@pytest.mark.parametrize("grammar", list(GrammarMode))
@pytest.mark.parametrize("seed", range(4))
def test_streamed_text_only_grows_into_the_result(engine, grammar, seed):
    sampling = Sampling(temperature=1.0, seed=seed)
    request = dataclasses.replace(RAW, grammar=grammar, sampling=sampling, filters=True)
    events = list(engine.complete(request, CancelToken()))
    texts = [text_of(event) for event in events]
    assert all(after.startswith(before) for before, after in itertools.pairwise(texts))
    assert [event.done for event in events] == [False] * (len(events) - 1) + [True]


@given(cut=st.integers(1, len(PREFIX)))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_healed_output_never_contradicts_the_text_before_the_cursor(engine, cut):
    request = dataclasses.replace(RAW, prefix=PREFIX[:cut], suffix=PREFIX[cut:] + SUFFIX, max_tokens=8)
    event = last(engine, request)
    assert event.stop_reason in set(StopReason)
    assert "\ufffd" not in text_of(event)


def test_a_cancelled_request_leaves_no_trace(engine):
    alone = text_of(last(engine, dataclasses.replace(RAW, document="alone")))
    cancel = CancelToken()
    stream = engine.complete(dataclasses.replace(RAW, document="other"), cancel)
    next(stream)
    cancel.cancel()
    with pytest.raises(CancelledError):
        list(stream)
    assert text_of(last(engine, dataclasses.replace(RAW, document="other"))) == alone


def test_a_second_request_computes_nothing_again(engine):
    request = dataclasses.replace(RAW, document="kept")
    first = last(engine, request).statistics
    second = last(engine, request).statistics
    assert first.computed_tokens == first.prompt_tokens - 1
    assert second.computed_tokens == 0


def test_the_maximum_of_tokens_and_of_bytes_ends_the_text(engine):
    assert last(engine, dataclasses.replace(RAW, max_tokens=3)).stop_reason is StopReason.MAX_TOKENS
    assert last(engine, dataclasses.replace(RAW, max_bytes=4)).stop_reason is StopReason.MAX_BYTES


@pytest.mark.parametrize("alternatives", list(Alternatives))
def test_a_maximum_of_one_token_gives_text_although_more_tokens_are_before_the_cursor(engine, alternatives):
    prefix = PREFIX + "self._entries"
    request = dataclasses.replace(RAW, prefix=prefix, max_tokens=1, suggestions=3, alternatives=alternatives)
    event = last(engine, request)
    assert event.statistics.generated_tokens > 1
    assert all(texts_of(event))


@pytest.mark.parametrize("mode", [Mode.LINE, Mode.BLOCK])
def test_the_maximum_of_lines_ends_the_text_after_that_many_lines_with_text(engine, mode):
    request = dataclasses.replace(FREE, mode=mode, max_tokens=96, sampling=Sampling(temperature=1.5, seed=3))
    for bound in (1, 2, 3):
        event = last(engine, dataclasses.replace(request, max_lines=bound))
        assert len([line for line in text_of(event).split("\n") if line.strip()]) <= bound


def test_a_blank_line_does_not_count_and_an_earlier_end_of_the_block_stays():
    context = Context.of(PREFIX, SUFFIX, "python", Mode.BLOCK)
    whole, bounded = StopRules(RAW, context), StopRules(dataclasses.replace(RAW, max_lines=2), context)
    text = "ems:\n\n            b(\n                c"
    assert bounded.text_end(text) == Stop(text.rindex("\n"), StopReason.MAX_LINES)
    ended = "ems += [item]\n\n    def pop"
    assert bounded.text_end(ended) == whole.text_end(ended) == Stop(13, StopReason.BLOCK_END)


@pytest.mark.parametrize("parsing", [IN_PROCESS, ParserProcess()], ids=["here", "in the parser's process"])
def test_a_request_that_wants_nothing_in_comments_or_strings_gets_nothing_there(tiny_model, parsing):
    engine = Engine(tiny_model, parsing=parsing)
    code, comment, string = (dataclasses.replace(FREE, prefix=prefix) for prefix in ("x = ", "# x", "x = 'y"))
    no_comments, no_strings = {"in_comments": False}, {"in_strings": False}
    for request, unwanted, reason in ((comment, no_comments, "in_comment"), (string, no_strings, "in_string")):
        (event,) = engine.complete(dataclasses.replace(request, **unwanted), CancelToken())
        assert (event.done, event.suggestions, event.dropped) == (True, (), reason)
    for request, unwanted in ((code, no_comments | no_strings), (comment, no_strings), (string, no_comments)):
        assert last(engine, dataclasses.replace(request, **unwanted)).suggestions
    engine.close()


def test_suggestions_for_a_crlf_document_have_crlf(engine):
    crlf = dataclasses.replace(
        RAW, prefix=PREFIX.replace("\n", "\r\n"), suffix=SUFFIX.replace("\n", "\r\n"), max_tokens=64, document="crlf"
    )
    plain = text_of(last(engine, dataclasses.replace(RAW, max_tokens=64, document="lf")))
    assert text_of(last(engine, crlf)) == plain.replace("\n", "\r\n")


def test_the_text_of_fim_tokens_in_a_document_does_not_become_special_tokens(tiny_model):
    prompt = prompt_of(tiny_model, dataclasses.replace(RAW, prefix="x = '<|fim_middle|>' + <|endoftext|>\n" + PREFIX))
    special = tiny_model.tokenizer.special
    counts = {
        name: prompt.tokens.count(special[name]) for name in ("<|fim_prefix|>", "<|fim_middle|>", "<|endoftext|>")
    }
    assert counts == {"<|fim_prefix|>": 1, "<|fim_middle|>": 1, "<|endoftext|>": 0}


@given(prefix=st.text(max_size=60), suffix=st.text(max_size=60))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_document_gets_a_suggestion_or_a_reason(engine, prefix, suffix):
    event = last(engine, CompletionRequest(prefix, suffix, "python", max_tokens=6))
    assert event.done
    assert event.suggestions or event.dropped


@pytest.mark.parametrize("character", ["龘", "𠀀", "-"])
def test_a_long_run_before_the_cursor_is_completed_however_many_tokens_it_has(tmp_path, character):
    """A pass of the processor's path has at most 256 rows."""
    engine = Engine(load_model(str(write_tiny_model(tmp_path / "tiny", head_dim=32)), backend="int8", threads=1))
    request = dataclasses.replace(FREE, prefix=f"# {character * 120}", max_tokens=120)
    assert text_of(last(engine, request))


def test_alternatives_follow_the_plain_suggestion_and_differ(engine):
    request = dataclasses.replace(FREE, suggestions=4, document="several")
    events = list(engine.complete(request, CancelToken()))
    plain = text_of(last(engine, dataclasses.replace(FREE, document="single")))
    texts = [suggestion.text for suggestion in events[-1].suggestions]
    assert texts[0] == plain
    assert len(texts) > 1
    assert len({"".join(text.split()) for text in texts}) == len(texts)
    complete = next(event for event in events if text_of(event) == plain)
    assert len(complete.suggestions) == 1


def test_an_alternative_has_the_log_probability_of_its_own_text(engine):
    request = dataclasses.replace(RAW, suggestions=3, document="several", drafting=False)
    for suggestion in last(engine, request).suggestions:
        assert len(suggestion.token_log_probabilities) >= 1
        assert suggestion.log_probability == pytest.approx(sum(suggestion.token_log_probabilities))
        assert all(value <= 1e-4 for value in suggestion.token_log_probabilities)


ABOVE = "".join(f"value_{number} = compute({number * 7919 % 1000})\n" for number in range(120))
LONG = dataclasses.replace(RAW, prefix=ABOVE + PREFIX, document="long")


def test_a_cold_start_is_answered_from_a_short_prompt_until_the_full_one_is_prepared(tiny_model):
    engine = Engine(tiny_model, EngineSettings(cold_prompt_s=0.0))
    full = last(Engine(tiny_model), LONG).statistics.prompt_tokens
    engine.prepare(dataclasses.replace(LONG, document="another"), CancelToken())  # measures the machine's speed
    cold = last(engine, LONG).statistics
    typed = last(engine, dataclasses.replace(LONG, prefix=LONG.prefix + "e")).statistics
    assert cold.prompt_tokens < full / 2
    assert typed.prompt_tokens < full / 2
    assert typed.computed_tokens < 8
    engine.prepare(LONG, CancelToken())
    warm = last(engine, LONG)
    assert warm.statistics.prompt_tokens == full
    assert text_of(warm) == text_of(last(Engine(tiny_model), LONG))


@pytest.mark.parametrize(("cache", "cold_prompt_s"), [(CacheMode.EXACT, 0.0), (CacheMode.PIE, 1e9)])
def test_with_exact_caching_or_on_a_fast_machine_the_prompt_is_never_short(tiny_model, cache, cold_prompt_s):
    request = dataclasses.replace(LONG, cache=cache)
    full = last(Engine(tiny_model), request).statistics.prompt_tokens
    engine = Engine(tiny_model, EngineSettings(cold_prompt_s=cold_prompt_s))
    engine.prepare(dataclasses.replace(request, document="another"), CancelToken())
    assert last(engine, request).statistics.prompt_tokens == full


def test_a_closed_document_and_workspace_leave_no_trace_in_the_next_answer(tiny_model):
    """The next request computes its whole prompt, has no snippets, and gets the text of an engine without files."""
    engine = Engine(tiny_model)
    request = dataclasses.replace(FREE, workspace="w", document="closed")
    before = last(engine, request)
    index(engine, WorkspaceFile("a.py", PREFIX + SUFFIX))
    with_snippet, cached = last(engine, request), last(engine, request)
    engine.forget(Closing(("closed",), ("w",)))
    after = last(engine, request)
    assert with_snippet.statistics.prompt_tokens > before.statistics.prompt_tokens
    assert cached.statistics.kept_tokens > 0
    assert (after.statistics.kept_tokens, after.statistics.computed_tokens) == (0, before.statistics.computed_tokens)
    assert text_of(after) == text_of(before)


def test_what_drafters_learned_outside_of_workspaces_goes_with_the_last_document(tiny_model):
    engine = Engine(tiny_model)
    last(engine, FREE)
    assert engine._drafters.recycling("").used > 0
    engine.forget(Closing((FREE.document,)))
    assert engine._drafters.recycling("").used == 0


def test_the_grammar_of_an_open_document_stays_loaded_when_another_one_closes(tiny_model):
    """An editor takes a header of Objective-C for one of C."""
    engine = Engine(tiny_model)
    engine.prepare(dataclasses.replace(RAW, prefix="@interface A : B\n", suffix="@end\n", language="c"), CancelToken())
    engine.forget(Closing(("another",)))
    assert engine.grammars.size_bytes > 0


CJK = "".join(chr(0x4E00 + number * 37 % 20_000) for number in range(30_000))
UNUSUAL = {
    "a class head of 20,000 characters": dataclasses.replace(
        RAW, prefix="class A(" + "B, " * 7_000 + "C):\n" + "    x = 1\n" * 2_000
    ),
    "200 nested levels": dataclasses.replace(
        RAW, prefix="".join(" " * depth + f"if level_{depth}:\n" for depth in range(200)) + " " * 200 + "x"
    ),
    "dense text everywhere": dataclasses.replace(
        RAW, prefix=CJK, suffix=CJK, path=CJK, repository=CJK, context=(ContextFile(CJK[:90], CJK[:900]),)
    ),
}


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("kind", UNUSUAL)
def test_every_document_gets_a_prompt_that_fits(tiny_model, kind, layout):
    sessions = SessionSettings(capacity=1536)
    engine = Engine(tiny_model, EngineSettings(sessions=sessions))
    request = dataclasses.replace(UNUSUAL[kind], layout=layout, max_tokens=2)
    assert 0 < last(engine, request).statistics.prompt_tokens <= sessions.capacity - sessions.spare_slots + 1


@pytest.mark.parametrize(("language", "text"), [("java", "A<" * 30_000), ("python", "/*\n" * 5_000)])
def test_a_document_that_exceeds_the_parsers_limits_is_completed_without_its_grammar(tiny_model, language, text):
    engine = Engine(tiny_model, parsing=ParserProcess(cpu_limit_s=0.5))
    index(engine, WorkspaceFile("hostile", text))
    request = dataclasses.replace(RAW, prefix=text, suffix="", language=language, mode=Mode.AUTO, max_tokens=4)
    event = last(engine, dataclasses.replace(request, in_comments=False))
    engine.close()
    assert event.done
    assert event.statistics.grammar_off_reason == "parse_limit"


def test_requests_and_their_cancels_between_the_pieces_of_an_update_change_neither(tiny_model):
    files = tuple(WorkspaceFile(f"{number}.py", f"{PREFIX}_{number}{SUFFIX}" * 100) for number in range(2))
    alone, engine = (Engine(tiny_model, parsing=ParserProcess()) for _ in range(2))
    index(alone, *files)
    request, pieces = dataclasses.replace(RAW, workspace="w", max_tokens=2), 0
    for pieces, _ in enumerate(engine.update_workspace(WorkspaceUpdate("w", files), CancelToken()), start=1):  # noqa: B007
        assert last(engine, dataclasses.replace(request, document="")).done
        cancel = CancelToken()
        answer = engine.complete(request, cancel)
        next(answer)
        cancel.cancel()
        with pytest.raises(CancelledError):
            list(answer)
    assert pieces > len(files)
    request = dataclasses.replace(request, document="new", max_tokens=24)
    assert text_of(last(engine, request)) == text_of(last(alone, request))
    engine.close()
    alone.close()


def test_two_documents_step_by_step_get_what_each_gets_alone(tiny_model):
    texts = (PREFIX, "def area(width, height):\n    total = wid")
    requests = [dataclasses.replace(RAW, prefix=text, document=text, suggestions=3) for text in texts]
    engine, found = Engine(tiny_model), {}
    for events in itertools.zip_longest(*(engine.complete(request, CancelToken()) for request in requests)):
        found |= {number: event for number, event in enumerate(events) if event is not None}
    for number, request in enumerate(requests):
        assert texts_of(found[number]) == texts_of(last(Engine(tiny_model), request))


def test_the_cancel_of_one_document_does_not_end_another_whose_request_has_begun(tiny_model):
    engine = Engine(tiny_model, parsing=ParserProcess())
    cancel, kept = CancelToken(), engine.complete(dataclasses.replace(RAW, suggestions=3), CancelToken())
    next(kept)
    other = engine.complete(dataclasses.replace(RAW, document="other"), cancel)
    assert not next(other).done
    cancel.cancel()
    with pytest.raises(CancelledError):
        list(other)
    *_, event = kept
    engine.close()
    assert texts_of(event) == texts_of(last(Engine(tiny_model), dataclasses.replace(RAW, suggestions=3)))


def test_more_typists_than_the_memory_has_room_for_get_smaller_prompts_instead_of_no_cache(tiny_model, monkeypatch):
    monkeypatch.setattr(kv_sessions, "IN_USE_S", math.inf)
    lines = "".join(f"def function_{number}(value):\n    return value + {number}\n\n" for number in range(100))
    request = dataclasses.replace(
        RAW, prefix=lines + "def last(value):\n    return ", max_tokens=1, cache=CacheMode.EXACT
    )
    engine = Engine(tiny_model)
    full = last(engine, request).statistics
    size = engine._sessions.open("d").cache.size_bytes
    room = EngineSettings(sessions=SessionSettings(budget_bytes=4 * size, shared=True))

    def computed(typists: int) -> list[int]:
        """Return the tokens that each typist's sixth key costs."""
        engine, rounds = Engine(tiny_model, room), []
        for key in range(6):
            typed = [
                dataclasses.replace(request, prefix=request.prefix + "x" * key, document=str(one))
                for one in range(typists)
            ]
            rounds.append([last(engine, each).statistics.computed_tokens for each in typed])
        return rounds[-1]

    assert full.computed_tokens > 500
    for typists in (4, 5, 8):
        assert max(computed(typists)) <= 32, typists


def test_the_session_of_a_running_request_stays_whatever_others_need(tiny_model):
    settings = EngineSettings(sessions=SessionSettings(budget_bytes=1))
    engine, other = Engine(tiny_model, settings), dataclasses.replace(RAW, document="other", max_tokens=2)
    running = engine.complete(RAW, CancelToken())
    next(running)
    session = engine._sessions.open(RAW.document)
    last(engine, other)
    assert engine._sessions.open(RAW.document) is session
    assert not session.edits.any()
    assert list(running)[-1].done
    last(engine, other)
    assert engine._sessions.open(RAW.document) is not session


def test_a_cancelled_update_ends_within_one_piece(tiny_model):
    engine, cancel = Engine(tiny_model), CancelToken()
    update = engine.update_workspace(WorkspaceUpdate("w", (WorkspaceFile("a.py", PREFIX * 1000),)), cancel)
    next(update)
    cancel.cancel()
    with pytest.raises(CancelledError):
        next(update)


@pytest.mark.real_model
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_after_a_complete_line_the_next_one_is_suggested_if_the_request_allows_it(line_break):
    engine = Engine(load_model("default"))
    lines = ("def fibonacci(n):", "    if n < 2:", "        return n")
    suffix = line_break.join(("", "", "", "print(fibonacci(10))", ""))
    request = CompletionRequest(line_break.join(lines), suffix, "python", document="d", cache=CacheMode.EXACT)
    assert last(engine, request).suggestions == ()
    *growing, event = engine.complete(dataclasses.replace(request, next_line=True), CancelToken())
    (suggestion,) = event.suggestions
    assert suggestion.text.startswith(f"{line_break}    else:{line_break}        return fibonacci(n-1) + ")
    assert "".join(text for _, text in suggestion.pieces).startswith(line_break)
    assert growing
    assert all(suggestion.text.startswith(text_of(early)) for early in growing)
    inside = dataclasses.replace(request, prefix=lines[0], suffix=" # nothing" + suffix, next_line=True)
    assert "\n" not in text_of(last(engine, inside))


@pytest.mark.real_model
def test_the_next_line_comes_with_the_comma_that_was_left_out_because_a_bracket_followed():
    engine = Engine(load_model("default"))
    columns = "CREATE TABLE loans (\n    id bigint PRIMARY KEY,\n    member_id bigint NOT NULL"
    for request, beginning in (
        (CompletionRequest(columns, "\n);\n", "sql", document="d"), ",\n    "),
        (CompletionRequest('{\n  "name": "web",\n  "version": "1.0.0"', "\n}\n", "json", document="e"), ',\n  "'),
    ):
        event = last(engine, request)
        assert (event.suggestions, event.dropped) == ((), "last_comma")
        assert text_of(last(engine, dataclasses.replace(request, next_line=True))).startswith(beginning)
