"""Branches that are decoded together have the texts that each has alone, and leave nothing in the KV session."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from itertools import islice

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from completion.alternatives.branch_tree import MAX_STEP_ROWS, BranchTree
from completion.alternatives.further_suggestions import (
    alternatives,
    begin_branches,
    is_abandoned,
    is_new,
    max_alternative_tokens,
    max_tokens_after_branch,
    may_be_new,
)
from completion.cache.kv_session import SessionSettings
from completion.cancellation import CancelToken
from completion.ending.rule import DropReason, Stop
from completion.engine import Engine
from completion.errors import CancelledError
from completion.model.loading import load_model
from completion.request import (
    Alternatives,
    CacheMode,
    CompletionRequest,
    GrammarMode,
    Layout,
    Mode,
    Sampling,
    StopReason,
    Suggestion,
)
from tests.completion.reference import decode_plainly
from tests.completion.tasks import prompt_of, task_at
from tests.tiny_models import SPECIALS, STACK, tiny_tokenizer, write_tiny_model

CURSORS = range(8, len(STACK), 41)
TOKENS = 20


def request_at(cursor: int, **changes: object) -> CompletionRequest:
    request = CompletionRequest(
        STACK[:cursor],
        STACK[cursor:],
        "python",
        document="stack",
        mode=Mode.BLOCK,
        cache=CacheMode.EXACT,
        grammar=GrammarMode.OFF,
        max_tokens=TOKENS,
        filters=False,
        suggestions=4,
    )
    return dataclasses.replace(request, **changes)


def last(engine, request):
    *_, event = engine.complete(request, CancelToken())
    return event


@pytest.fixture(scope="module")
def loaded(tiny_qwen2):
    return load_model(str(tiny_qwen2), backend="fp32", threads=1)


@pytest.fixture(scope="module")
def engine(loaded):
    return Engine(loaded)


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    """A tiny random model that often ends a text at once."""
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "brief")
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][[*map(tiny_tokenizer().token_to_id, SPECIALS)]] *= 2
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return load_model(str(folder), backend="fp32", threads=1)


def branches_decoded_alone(loaded, request) -> list[bytes]:
    """Return the plain text, and each text that takes one of the next best tokens somewhere, all decoded alone."""
    prompt = prompt_of(loaded, request)

    def decode(written: list[int]) -> list[int]:
        spelled = loaded.tokenizer.decode(written)
        options = {"max_tokens": TOKENS + len(prompt.forced), "forced": prompt.forced[len(spelled) :]}
        tokens = [*prompt.tokens, *written]
        return [*written, *decode_plainly(loaded.model, loaded.tokenizer, tokens, sampling=Sampling(), **options)]

    plain = decode([])
    texts = [plain]
    for start in range(min(len(plain), TOKENS)):
        forced = prompt.forced[len(loaded.tokenizer.decode(plain[:start])) :]
        tokens = np.array([*prompt.tokens, *plain[:start]], dtype=np.int32)
        slots = np.arange(len(tokens), dtype=np.int32)
        scores = loaded.model.prefill(tokens, slots, loaded.model.new_cache(512), [len(tokens) - 1]).row(0)
        allowed = loaded.tokenizer.tokens_with_prefix(forced) if forced else np.arange(len(scores))
        ranked = [int(token) for token in allowed[np.argsort(-scores[allowed])] if token != plain[start]]
        texts += [decode([*plain[:start], token]) for token in ranked[:7]]
    return [loaded.tokenizer.decode(tokens)[len(prompt.forced) :] for tokens in texts]


@pytest.mark.parametrize("layout", [Layout.SUFFIX_FIRST, Layout.PREFIX_FIRST])
def test_every_alternative_is_what_decoding_it_alone_gives(loaded, engine, layout):
    others = 0
    for cursor in CURSORS:
        alone = [
            one.decode("utf-8", "ignore") for one in branches_decoded_alone(loaded, request_at(cursor, layout=layout))
        ]
        for drafting in (True, False):
            request = request_at(cursor, drafting=drafting, layout=layout)
            texts = [suggestion.text for suggestion in last(engine, request).suggestions]
            assert alone[0].startswith(texts[0])
            for text in texts[1:]:
                assert any(one.startswith(text) for one in alone[1:]), (cursor, text)
            others += len(texts) - 1
    assert others > 2 * len(CURSORS)


@pytest.mark.parametrize("grammar", list(GrammarMode))
def test_drafting_changes_no_alternative(engine, grammar):
    for cursor in CURSORS:
        request = request_at(cursor, grammar=grammar)
        drafted, plain = (last(engine, dataclasses.replace(request, drafting=on)).suggestions for on in (True, False))
        assert [one.text for one in drafted] == [one.text for one in plain]


def test_the_first_suggestion_is_complete_before_the_first_alternative(engine):
    for cursor in CURSORS:
        alone = last(engine, request_at(cursor, suggestions=1)).suggestions[0].text
        events = list(engine.complete(request_at(cursor), CancelToken()))
        complete = next(index for index, event in enumerate(events) if event.suggestions[0].text == alone)
        assert all(len(event.suggestions) == 1 for event in events[: complete + 1])
        assert all(event.suggestions[0].text == alone for event in events[complete:])


def test_a_manual_request_gets_an_alternative_if_the_first_suggestion_is_dropped(loaded, engine):
    replaced = 0
    for cursor in range(1, 125, 4):
        manual = request_at(cursor, filters=True, grammar=GrammarMode.STRICT, invoked=True)
        one, several = (last(engine, dataclasses.replace(manual, suggestions=count)) for count in (1, 3))
        assert len(one.suggestions) <= 1
        assert [each.text for each in one.suggestions] == [each.text for each in several.suggestions[:1]]
        assert bool(one.dropped) != bool(one.suggestions)
        automatic = last(engine, dataclasses.replace(manual, suggestions=3, invoked=False))
        assert bool(automatic.dropped) != bool(automatic.suggestions)
        task = task_at(loaded, cursor, filters=True, invoked=True, grammar=GrammarMode.STRICT, max_tokens=TOKENS)
        replaced += isinstance(task.finish(first_attempt_of(task)), DropReason) and bool(one.suggestions)
    assert replaced


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("prefix", "suffix", "language"),
    [
        ("import os\nimpo", "\nimport sys\n\nprint(sys.argv, os.getcwd())\n", "python"),
        ("import a.b.Context;\nimport a.b", "\nimport a.b.pm.PackageManager;\n\nclass A {}\n", "java"),
        ('NAMES = [\n    "first_letter",\n    "second_letter",\n    ', '\n    "third_letter",\n]\n', "python"),
    ],
)
def test_what_stands_below_the_cursor_is_replaced_by_the_next_likely_text(prefix, suffix, language):
    engine = Engine(load_model("default"))
    for invoked in (False, True):
        found = last(engine, CompletionRequest(prefix, suffix, language, invoked=invoked, max_tokens=16))
        assert prefix.rpartition("\n")[2] + found.suggestions[0].text not in suffix
        assert not found.dropped


@pytest.mark.real_model
def test_what_stands_below_the_cursor_does_not_come_back_because_a_filter_cuts_the_bracket_after_it():
    names = "".join(f'    "{name}_matching",\n' for name in ("maximum", "hopcroft_karp", "eppstein"))
    imported = "from networkx.algorithms.bipartite.matrix import biadjacency_matrix\n\n"
    prefix = f"{imported}__all__ = [\n{names}    "
    used = '\nINFINITY = float("inf")\n\n\n@nx._dispatchable\ndef hopcroft_karp_matching(G):\n    pass\n'
    suffix = f'\n    "minimum_weight_full_matching",\n]\n{used}'
    engine = Engine(load_model("default"))
    for invoked in (False, True):
        found = last(engine, CompletionRequest(prefix, suffix, "python", invoked=invoked, max_tokens=16))
        assert all(each.text not in suffix for each in found.suggestions)


def test_alternatives_are_ordered_by_falling_probability(engine):
    for cursor in CURSORS:
        for event in engine.complete(request_at(cursor, suggestions=6), CancelToken()):
            values = [suggestion.log_probability for suggestion in event.suggestions[1:]]
            assert values == sorted(values, reverse=True)


def test_the_first_suggestion_stays_cached_and_a_cancelled_request_leaves_no_trace(engine):
    request = request_at(100, document="cancelled")
    alone = [suggestion.text for suggestion in last(engine, dataclasses.replace(request, document="alone")).suggestions]
    for count in range(3, 12, 2):  # number of events before the cancel; the last ones are of alternatives
        cancel = CancelToken()
        with contextlib.suppress(CancelledError):  # a request that has fewer events ends before the cancel
            for number, _ in enumerate(engine.complete(request, cancel)):
                if number == count:
                    cancel.cancel()
        event = last(engine, request)
        assert [suggestion.text for suggestion in event.suggestions] == alone
        assert event.statistics.computed_tokens == 0


def test_a_text_is_new_if_more_than_whitespace_differs():
    assert is_new("a + b", ["a - b"])
    assert not is_new("a  +b\n", ["a + b"])
    assert not is_new("a", ["a + b"])
    assert not is_new("a + b + c", ["a + b"])
    assert not is_new(" \n", [])


@pytest.mark.parametrize("alternatives", list(Alternatives))
def test_a_hurried_request_has_the_first_suggestion_only(engine, alternatives):
    cancel = CancelToken()
    events = []
    for event in engine.complete(request_at(100, alternatives=alternatives), cancel):
        events.append(event)
        if event.whole:
            cancel.hurry()
    assert [(event.whole, event.done) for event in events[-2:]] == [(1, False), (1, True)]


def test_the_length_of_alternatives_is_bounded_by_the_first_suggestion(loaded):
    assert [max_alternative_tokens(tokens) for tokens in (2, 40)] == [10, 60]
    assert [max_tokens_after_branch(tokens) for tokens in (2, 160)] == [24, 40]
    for cursor in range(6, 130, 31):
        task = task_at(loaded, cursor, suggestions=6, max_tokens=60)
        first = first_attempt_of(task)
        tokens = first.output.new_tokens
        healed = first.output.tokens - tokens
        for branch, other in begin_branches(task, first, [], task.request.suggestions - 1):
            while other.rules.size_end(other.output) is None:
                other.output.extend(b"a", "model")
            max_end = max(branch.start - healed, 0) + 1 + max_tokens_after_branch(tokens)
            assert other.output.new_tokens == min(60, max_alternative_tokens(tokens), max_end)


def decoded_together(task, first, branches, max_tokens):
    """Decode branches in one tree; return the text and the log-probabilities of each."""
    shared = min(branch.start for branch in branches)
    tree = BranchTree(task.model, task.session, len(task.prompt.tokens) + shared)
    others = [task.branch_attempt(first, branch, max_tokens) for branch in branches]
    drafter = task.drafter_of_branches(first)
    for branch, other in zip(branches, others, strict=True):
        other.source.drafter = drafter.branch((*first.source.tokens[: branch.start], branch.token))
        if other.stop is None:
            tree.add(other, branch.start - shared)
    while tree.growing:
        tree.step(lambda _: True)
    assert all(other.stop is not None for other in others)
    tree.close()
    return [(other.output.whole(), other.log_probabilities) for other in others]


def decoded_alone(task, first, branch, max_tokens):
    """Decode one branch alone, and return its attempt."""
    task.session.truncate(len(task.prompt.tokens) + branch.start)
    other = task.branch_attempt(first, branch, max_tokens)
    if other.stop is None:
        for _ in other.stream(CancelToken()):
            continue
    return other


def first_attempt_of(task):
    first = task.first_attempt()
    for _ in first.stream(CancelToken()):
        continue
    return first


def test_stopping_at_the_likeliest_branches_changes_no_alternative(loaded):
    """The alternatives are those of decoding all branches to their ends, though decoding stops before that."""
    offered = 0
    for cursor in range(6, 130, 17):
        task = task_at(loaded, cursor, suggestions=3)
        first = first_attempt_of(task)
        known = [result for result in (task.finish(first),) if isinstance(result, Suggestion)]
        found = [suggestion.text for suggestion in alternatives(task, first, known, CancelToken())]
        kept = [suggestion.text for suggestion in known]
        branches = sorted(
            (branch for branch, _ in begin_branches(task, first, kept, task.request.suggestions - 1)),
            key=lambda one: -one.start,
        )
        others = [decoded_alone(task, first, branch, 16) for branch in branches]  # each truncates the first attempt
        for other in sorted(others, key=lambda other: -sum(other.log_probabilities)):
            result = task.finish(other)
            if len(kept) < 3 and isinstance(result, Suggestion) and is_new(result.text, kept):
                kept.append(result.text)
        assert found == kept[len(known) :]
        offered += len(found)
    assert offered > 8


def test_other_texts_take_the_place_of_one_that_ends_at_once(brief):
    offered = 0
    for cursor in range(6, 130, 5):
        task = task_at(brief, cursor, healing=False)
        first = first_attempt_of(task)
        if not first.output.tokens:
            before = list(task.session.tokens)
            offered += any(alternatives(task, first, [], CancelToken()))
            assert task.session.tokens == before
    assert offered > 4


def test_a_manual_request_counts_what_it_decoded_before_the_text_of_the_next_line(brief):
    engine, counted = Engine(brief), 0
    for cursor in (found.start() for found in re.finditer(r"(?<=\S)\n", STACK)):
        request = request_at(cursor, filters=True, drafting=False, suggestions=1)
        line = last(engine, request)
        below = last(engine, dataclasses.replace(request, prefix=f"{request.prefix}\n", invoked=True))
        if line.dropped == DropReason.EMPTY and below.suggestions:
            whole = last(engine, dataclasses.replace(request, invoked=True))
            assert whole.suggestions[0].text == f"\n{below.suggestions[0].text}"
            assert whole.statistics.steps == line.statistics.steps + below.statistics.steps
            counted += 1
    assert counted


def test_branches_that_would_be_hopeless_are_not_started(loaded):
    hopeless = 0
    for cursor in range(6, 130, 31):
        task = task_at(loaded, cursor, filters=True, suggestions=100)
        first = first_attempt_of(task)
        likely = [
            other for _, other in begin_branches(task, first, [], task.request.suggestions - 1) if other.stop is None
        ]
        for other in likely:
            assert not other.rules.soon_unlikely(other.output.tokens, sum(other.log_probabilities))
        hopeless += len(list(first.branches())) - len(likely)
    assert hopeless > 10


def test_branches_that_repeat_a_known_suggestion_are_not_started(loaded):
    for cursor in range(6, 130, 31):
        task = task_at(loaded, cursor, suggestions=6)
        first = first_attempt_of(task)
        start = first.output.whole()[:1]
        branches = begin_branches(task, first, [start], task.request.suggestions - 1)
        assert not any(other.output.whole().startswith(start) for _, other in branches)


def test_an_alternative_that_was_cut_short_needs_a_complete_line_of_a_block(loaded):
    block, line = (task_at(loaded, 60, filters=True, mode=mode) for mode in (Mode.BLOCK, Mode.LINE))
    for reason in (StopReason.UNLIKELY, StopReason.MAX_TOKENS):
        for text, task, abandoned in (
            ("a = b(", block, True),
            ("a = b\nc(", block, False),
            ("\n\na = b", block, True),
            ("a = b\nc(", line, True),
        ):
            other = task.first_attempt()
            other.output.extend(text.encode(), "model")
            other.stop = Stop(len(text), reason)
            assert is_abandoned(task, other) is abandoned
    other.stop = Stop(len(text), StopReason.LINE_END)
    assert not is_abandoned(line, other)


def test_a_text_that_starts_with_a_known_one_cannot_be_new():
    assert may_be_new("a", ["a + b"])
    assert not may_be_new("a +b\n", ["a + b"])
    assert not may_be_new("a + b - c", ["a + b"])
    assert may_be_new("a + b", [])


def test_a_branch_that_the_cache_has_no_room_for_is_left_out(loaded):
    prompt_tokens = len(task_at(loaded, 100).prompt.tokens)
    for spare, grows in ((40, False), (40 + MAX_STEP_ROWS, True)):
        task = task_at(loaded, 100, SessionSettings(capacity=prompt_tokens + spare, spare_slots=spare))
        first = first_attempt_of(task)
        before = list(task.session.tokens)
        branch = next(first.branches())
        tree = BranchTree(task.model, task.session, prompt_tokens + branch.start)
        other = task.branch_attempt(first, branch, 16)
        tree.add(other, 0)
        tree.step(lambda _: True)
        assert (other.output.tokens > branch.start + 1) is grows
        assert bool(tree.growing) is grows
        tree.close()
        assert task.session.tokens == before


@pytest.mark.real_model
def test_branches_of_the_real_model_are_bit_for_bit_what_each_gives_alone():
    """The int8 kernels give a row the same result whatever other rows the pass has."""
    loaded = load_model("default")
    for cursor in (59, 100, 127):
        task = task_at(loaded, cursor, max_tokens=12, suggestions=4, grammar=GrammarMode.STRICT)
        first = first_attempt_of(task)
        branches = list(islice(first.branches(), 3))
        together = decoded_together(task, first, branches, 12)
        latest_first = sorted(range(len(branches)), key=lambda index: -branches[index].start)
        for index in latest_first:  # decoding a branch alone truncates the session to what it shares
            alone = decoded_alone(task, first, branches[index], 12)
            assert together[index] == (alone.output.whole(), alone.log_probabilities)


@pytest.mark.real_model
def test_the_next_likely_branch_takes_the_place_of_an_unsafe_suggestion():
    engine = Engine(load_model("default"))
    prefix = "import hashlib\n\n\ndef etag(body: bytes) -> str:\n    return "
    request = CompletionRequest(prefix, "\n", "python", mode=Mode.LINE, max_tokens=24)
    *_, raw = engine.complete(dataclasses.replace(request, filters=False, search=False), CancelToken())
    *_, safe = engine.complete(request, CancelToken())
    assert "md5" in raw.suggestions[0].text
    assert [suggestion.text for suggestion in safe.suggestions] == ["hashlib.sha256(body).hexdigest()"]
