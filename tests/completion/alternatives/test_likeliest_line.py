"""The line that a search finds is the likeliest of the greedy line and its branches, and starts with what was shown."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from completion.alternatives.likeliest_line import (
    MAX_BRANCHES,
    WEIGHT,
    are_back,
    are_followed,
    likeliest_line,
)
from completion.cancellation import CancelToken
from completion.decoding.attempt import with_weight
from completion.engine import Engine
from completion.errors import CancelledError
from completion.model.loading import load_model
from completion.request import CompletionRequest, GrammarMode, Mode, Sampling, StopReason, Suggestion
from tests.completion.tasks import Sessions, task_at

ENDS = {StopReason.LINE_END, StopReason.STOP_TOKEN}
DOCUMENT = '''"""Reads orders of a shop and sends invoices."""

import csv
from pathlib import Path


def read_orders(folder: Path) -> list[dict[str, str]]:
    # one file a day, the oldest first
    orders = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8") as lines:
            orders.extend(csv.DictReader(lines))
    return orders


def overdue(orders, today, grace_days=14):
    # customers who pay late get a reminder
    limit = today - timedelta(days=grace_days)
    late = [order for order in orders if order["due"] < limit.isoformat()]
    return sorted(late, key=lambda order: order["due"])


def print_reminders(orders, letters):
    for order in orders:
        name = order["customer"].title()
        letters.write(f"Dear {name}, please pay {order['total']} euros.")
'''
_UNSURE_AT = ("the oldest", "ldest first", "rs, today", "nders(", "name = order", "euros")
UNSURE = [DOCUMENT.index(text) for text in _UNSURE_AT]
"""Cursors at which the model does not know how to go on."""
ORDERS = [found.start() for found in re.finditer(r"orders\b", DOCUMENT)]
"""Cursors before a name."""
CURSORS = [*UNSURE, *range(70, len(DOCUMENT), 300)]
SESSIONS: Sessions = {}


pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def loaded():
    yield load_model("default")
    SESSIONS.clear()


def line_task(loaded, cursor, **changes):
    defaults = {
        "prefix": DOCUMENT[:cursor],
        "suffix": DOCUMENT[cursor:],
        "mode": Mode.LINE,
        "filters": True,
        "invoked": True,
        "max_tokens": 24,
        "grammar": GrammarMode.OFF,
    }
    return task_at(loaded, cursor, sessions=SESSIONS, **{**defaults, **changes})


def streamed(task):
    """Return the first attempt, streamed to its end, and what was shown on the way."""
    first = task.first_attempt()
    return first, list(task.stream(first, CancelToken()))


def branches_alone(task, first):
    """Yield each branch of an attempt, decoded alone to its end."""
    kept = task.tokens_that_stay(first)
    followed = islice((each for each in first.branches() if each.start >= kept), MAX_BRANCHES)
    yield from decoded_alone(task, first, followed)


def decoded_alone(task, first, branches):
    """Yield the attempts of these branches."""
    for branch in sorted(branches, key=lambda each: -each.start):  # each overwrites the cached attempt from there on
        task.session.truncate(len(task.prompt.tokens) + branch.start)
        other = task.branch_attempt(first, branch, task.request.max_tokens)
        if other.stop is None:
            for _ in other.stream(CancelToken()):
                continue
        yield other


def test_the_line_is_the_likeliest_of_all_branches_after_what_may_have_been_shown(loaded):
    changed = 0
    for cursor in CURSORS:
        task = line_task(loaded, cursor)
        first, _ = streamed(task)
        found = likeliest_line(task, first, CancelToken())
        if first.stop.reason not in ENDS:
            assert found is first
            continue
        totals = [first.total()]
        for other in branches_alone(task, first):
            result = task.finish(other) if other.stop.reason in ENDS else None
            if isinstance(result, Suggestion):
                totals.append(other.total())
        assert found.total() == max(totals)
        changed += found is not first
    assert changed > 2


def test_a_search_leaves_the_cache_as_it_was(loaded):
    for cursor in UNSURE[::2]:
        task = line_task(loaded, cursor)
        first, _ = streamed(task)
        tokens, edits = list(task.session.tokens), task.session.edits.copy()
        likeliest_line(task, first, CancelToken())
        assert task.session.tokens == tokens
        assert np.array_equal(task.session.edits, edits)


def test_only_likely_text_is_shown_before_the_search(loaded):
    shown = 0
    for cursor in CURSORS:
        task = line_task(loaded, cursor, suffix="", drafting=False)
        first, visible = streamed(task)
        for text in visible:
            tokens = first.output.tokens_within(len(text))
            begins_block = "\n" in first.output.whole().strip() and "\n" not in text
            assert sum(first.log_probabilities[: tokens - 1]) >= math.log(0.2 if begins_block else 0.5)
        shown += bool(visible)
    assert 0 < shown < len(CURSORS)


def test_a_likely_word_is_shown_although_what_follows_it_is_unlikely(loaded):
    shown = 0
    for cursor in [*UNSURE, *ORDERS]:
        task = line_task(loaded, cursor, suffix="\n", invoked=False)
        first, visible = streamed(task)
        kept = task.tokens_that_stay(first)
        whole = first.output.whole()
        ends = [0, *(end for _, end in first.output.parts(len(whole)))]
        likely, word = whole[: ends[kept]], re.match(r"\w*", whole).group()
        if word and len(word) <= len(likely) and kept + 1 < len(first.log_probabilities):
            assert visible[0].startswith(word)
            shown += 1
        assert not visible or likely.startswith(visible[-1])
    assert shown > 3


@pytest.mark.parametrize(
    "changes",
    [{"search": False}, {"filters": False}, {"mode": Mode.BLOCK}, {"sampling": Sampling(temperature=0.5, seed=1)}],
)
def test_only_greedy_lines_with_filters_are_searched(loaded, changes):
    for cursor in UNSURE[::2]:
        task = line_task(loaded, cursor, **changes)
        first, _ = streamed(task)
        assert likeliest_line(task, first, CancelToken()) is first


def test_a_cancelled_search_leaves_the_cache_as_it_was(loaded):
    cancelled = 0
    for cursor in UNSURE[:3]:
        task = line_task(loaded, cursor)
        first, _ = streamed(task)
        tokens = list(task.session.tokens)
        cancel = CancelToken()
        cancel.cancel()
        try:
            likeliest_line(task, first, cancel)
        except CancelledError:
            cancelled += 1
        assert task.session.tokens == tokens
    assert cancelled


def test_all_likely_ends_of_a_line_count_together(loaded):
    """How many line breaks follow a line says nothing about the line."""
    seen = 0
    for cursor in CURSORS:
        task = line_task(loaded, cursor, search=False)
        first, _ = streamed(task)
        if first.stop.reason in ENDS:
            plain = sum(first.log_probabilities[: first.output.end_token(first.stop.length) + 1])
            assert first.total() >= plain - 1e-5 or first.stop.reason is StopReason.STOP_TOKEN
            seen += first.total() > plain + 1e-5
    assert seen


def test_what_was_shown_stays_and_the_greedy_line_becomes_an_alternative(loaded):
    engine = Engine(loaded)
    swapped = 0
    for cursor in UNSURE:
        request = CompletionRequest(
            DOCUMENT[:cursor], DOCUMENT[cursor:], "python", document="a", mode=Mode.LINE, max_tokens=24, suggestions=6,
            invoked=True, grammar=GrammarMode.OFF,
        )  # fmt: skip
        events = list(engine.complete(request, CancelToken()))
        texts = [event.suggestions[0].text for event in events if event.suggestions]
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
        plain = events_without_search(engine, request)
        if plain and texts and plain != texts[-1]:
            swapped += plain in [suggestion.text for suggestion in events[-1].suggestions]
    assert swapped


LONGER_NAMES = """fn build(schema: &Dict, config: Option<&Dict>) -> Result<Self> {
    let min_length: Option<usize> = schema_or_config(schema, config, "min_length", "str_min_length")?;
    let max_length: Option<usize> = schema_or_config(schema, config, "max_length", "str_max_length")?;
    let to_lower: bool = schema_or_config(schema, config, "to_lower", "str_to_lower")?.unwrap_or(false);
    let to_upper: bool = schema_or_config(schema, config, "to_upper", "str_to_upper")?.unwrap_or(false);
    let coerce_numbers_to_str: bool = schema_or_config_same(schema, config, "coerce_numbers_to_str")?.unwrap_or(false);
    let strict: bool"""
"""Code in which one name is the start of another one, which the search finds likelier."""
BELOW_LONGER_NAMES = """
    Ok(Self { min_length, max_length, to_lower, to_upper, coerce_numbers_to_str, ascii_only, forbid_nul })
}
"""


def test_a_word_that_was_shown_does_not_become_a_longer_one(loaded):
    """The client showed schema_or_config, for which schema_or_config_same came: what may be shown of it was less."""
    kept = 0
    for typed in ("", " =", " = "):
        task = line_task(
            loaded, 0, prefix=LONGER_NAMES + typed, suffix=BELOW_LONGER_NAMES, language="rust", invoked=False
        )
        first, visible = streamed(task)
        text = task.finish(likeliest_line(task, first, CancelToken())).text
        for shown in visible:
            assert re.match(rf"{re.escape(shown)}(?!(?<=\w)\w)", text)
            kept += 1
    assert kept


def line_at(cursor):
    """Return the line of the document."""
    start = DOCUMENT.rfind("\n", 0, cursor) + 1
    return DOCUMENT[start : DOCUMENT.index("\n", cursor)]


def deletion(cursor):
    """Return the history of a user who has deleted the cursor's line."""
    return f"@@\n-{line_at(cursor)}\n"


def rename(cursor):
    """Return the history of a user who has renamed `orders` in the lines before, then deleted the cursor's line."""
    hunks = "@@\n-    return orders\n+    return invoices\n@@\n-    orders = []\n+    invoices = []\n"
    return hunks + deletion(cursor)


@pytest.mark.parametrize("history", [deletion, rename])
def test_what_the_last_edits_tell_counts(loaded, history):
    """A line that brings back the deleted one counts a fiftieth of its probability, one that follows fifty times."""
    back = followed = 0
    for cursor in (*CURSORS, *ORDERS):
        prefix, suffix = DOCUMENT[:cursor], DOCUMENT[DOCUMENT.index("\n", cursor) :]
        if history is rename:
            prefix = prefix.replace("orders", "invoices")
        task = line_task(loaded, cursor, prefix=prefix, suffix=suffix, history=history(cursor))
        first, visible = streamed(task)
        if first.stop.reason not in ENDS:
            continue
        found = likeliest_line(task, first, CancelToken())
        is_back = are_back(task, first)
        trunk = first.reweighted(1 / WEIGHT) if is_back else first
        first_score = first.total() + weight_of(task, first) - (with_weight(0.0, first.total(), 1 / WEIGHT) * is_back)
        begun = branches_that_may_be_likeliest(task, trunk, first_score)
        if len(begun) > MAX_BRANCHES:
            continue
        scores = {first.output.whole(): first_score}
        for other in decoded_alone(task, trunk, begun):
            if other.stop.reason in ENDS and not are_back(task, other) and isinstance(task.finish(other), Suggestion):
                scores[other.output.whole()] = other.total() + weight_of(task, other)
        assert found.output.whole() == max(scores, key=scores.get)
        assert found.output.whole().startswith(visible[-1] if visible else "")
        back += are_back(task, first) and found is not first
        followed += are_followed(task, found)
    assert back
    assert (followed > 0) == (history is rename)


def weight_of(task, attempt):
    return math.log(WEIGHT) * (are_followed(task, attempt) - are_back(task, attempt))


def branches_that_may_be_likeliest(task, first, least):
    kept = task.tokens_that_stay(first)
    most_gain = math.log(WEIGHT) if task.replaced.expected else 0.0
    return [each for each in first.branches() if each.start >= kept and each.total + most_gain > least]


def test_a_reweighted_text_leaves_all_others_as_likely_to_each_other(loaded):
    compared = 0
    for weight in (1 / WEIGHT, WEIGHT):
        for cursor in UNSURE:
            first, _ = streamed(line_task(loaded, cursor, search=False))
            if first.stop.reason not in ENDS:
                continue
            whole = math.log1p((weight - 1) * math.exp(first.total()))
            plain = {(each.start, each.token): each.total for each in first.branches()}
            changed = {(each.start, each.token): each.total for each in first.reweighted(weight).branches()}
            own = first.reweighted(weight)
            for top, log_probability in zip(own.top_tokens, own.log_probabilities, strict=False):
                taken = top.log_probabilities[top.tokens == top.taken]
                assert taken == pytest.approx([log_probability] * len(taken))
            common = plain.keys() & changed.keys()
            assert all(changed[each] == pytest.approx(plain[each] - whole, abs=1e-3) for each in common)
            compared += len(common)
    assert compared


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("history", [None, deletion, rename])
def test_drafts_do_not_change_the_line(loaded, after, history):
    """With drafts a step adds several tokens, so less may be shown before the line is complete."""
    for cursor in UNSURE:
        changes = {} if after else {"suffix": ""}
        changes |= {"history": history(cursor)} if history else {}
        found = []
        for drafting in (True, False):
            task = line_task(loaded, cursor, drafting=drafting, **changes)
            first, _ = streamed(task)
            found.append(likeliest_line(task, first, CancelToken()).output.whole())
        assert found[0] == found[1]


def events_without_search(engine, request) -> str:
    """Return the line of plain decoding."""
    *_, last = engine.complete(replace(request, search=False, suggestions=1), CancelToken())
    return last.suggestions[0].text if last.suggestions else ""
