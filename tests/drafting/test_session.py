"""A request's drafts help where text repeats, change no token, and never use another workspace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting.calibration import NAMES, default_calibration
from drafting.draft_budget import SharedStep, StepCosts
from drafting.draft_tree import ROOT, DraftTree
from drafting.session import Drafters
from drafting.sources.token_recycling import ALONE, find_row
from drafting.verifier import MODEL, AcceptedPath, accept_path

VOCABULARY = 40
COSTS = StepCosts({0: 25.0, 3: 29.0, 7: 41.0, 15: 58.0}, 15)
NO_TOPS = np.zeros((16, 0), dtype=np.int32)


def drafters(enabled=NAMES, costs=COSTS) -> Drafters:
    return Drafters(default_calibration(), costs, VOCABULARY, enabled, special=(30, 31, 32), line_ends=(33,))


def model(context: tuple[int, ...], table: int) -> np.ndarray:
    """Return the logits of a small table model that often loops: scores depend on the last two tokens."""
    seed = (table, *(token % 7 for token in context[-2:]))
    return np.random.default_rng(seed).normal(size=VOCABULARY)


def decode(shared, prompt, count, table, seed, forced=None):
    """Decode with the table model in the engine's steps: propose, score, accept, observe."""
    context, steps, session = tuple(prompt), 0, shared.session(prompt)
    while len(context) < len(prompt) + count:
        allowed = forced if steps == 0 else None
        tree = session.propose(context, allowed)
        assert len(tree) <= shared.costs.max_nodes
        paths = [context]
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            paths.append((*paths[parent + 1], int(token)))

        def choose(row, paths=paths):
            return choice(paths[row], table, seed, forced if len(paths[row]) == len(prompt) else None)

        path = accept_path(tree, choose)
        tops = np.array([np.argsort(-model(p, table))[:8] for p in paths])
        session.observe(tree, tops, path, 20.0)
        context, steps = context + path.tokens, steps + 1
    return context[len(prompt) : len(prompt) + count], steps


def choice(context, table, seed, allowed):
    scores = model(context, table)
    if seed is not None:
        scores = scores + np.random.default_rng((seed, len(context))).gumbel(size=VOCABULARY)
    if allowed is not None:
        scores = np.where([allowed(token) for token in range(VOCABULARY)], scores, -np.inf)
    return int(np.argmax(scores))


def plain(prompt, count, table, seed, forced):
    context = tuple(prompt)
    for step in range(count):
        context += (choice(context, table, seed, forced if step == 0 else None),)
    return context[len(prompt) :]


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=60),
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.sampled_from([0, 1, 4, 15, 40]),
    st.booleans(),
)
def test_drafting_changes_no_token(prompt, table, seed, max_nodes, healing):
    forced = (lambda token: token % 3 == 1) if healing else None
    shared = drafters(costs=StepCosts({0: 25.0, max_nodes + 1: 25.0}, max_nodes))
    written, _ = decode(shared, prompt, 30, table, seed, forced)
    assert written == plain(prompt, 30, table, seed, forced)


def test_repeated_text_takes_fewer_steps():
    prompt = list(range(20)) * 2
    session = drafters().session(prompt)
    context, steps = prompt[:], 0
    while len(context) < 80:
        tree = session.propose(context)
        depths, count = tree.depths, len(context)
        path = accept_path(tree, lambda row, d=depths, n=count: (n + (d[row - 1] if row else 0)) % 20)
        session.observe(tree, NO_TOPS, path, 20.0)
        context += path.tokens
        steps += 1
    assert context[:80] == [i % 20 for i in range(80)]
    assert steps <= 10


def test_the_likeliest_path_comes_first_and_parents_before_children():
    shared = drafters()
    rng = np.random.default_rng(3)
    tops = rng.integers(0, VOCABULARY, size=(16, 8))
    context = rng.integers(0, 6, size=200).tolist()
    session = shared.session(context)
    for _ in range(20):
        tree = session.propose(context)
        spine = 0
        while spine < len(tree) and tree.parents[spine] == spine - 1:
            spine += 1
        if len(tree):
            assert spine >= 1
            pool = session._pool
            first = np.flatnonzero(pool.parents[: pool.size[0]] == ROOT)
            assert tree.tokens[0] == pool.tokens[first[pool.chances[first].argmax()]]
        path = accept_path(tree, lambda _row: int(rng.integers(0, 6)))
        session.observe(tree, tops[: len(tree) + 1], path, 20.0)
        context += path.tokens


def test_the_first_guess_obeys_the_constraint():
    prompt = [1, 2, 3, 1, 2, 4, 1, 2, 5, 1, 2, 3, 1, 2]
    tree = drafters().session(prompt).propose(prompt, lambda token: token == 4)
    assert set(tree.tokens[tree.parents == ROOT].tolist()) == {4}


def test_the_suffix_is_a_source_when_the_prompt_does_not_end_at_the_cursor():
    prefix, suffix = [1, 2, 3, 4, 5], [11, 12, 3, 4, 5, 6, 7, 8]
    prompt = [30, *prefix, 31, *suffix, 32]
    tree = drafters().session(prompt, tail=prefix).propose(prompt)
    assert tree.tokens[0] == 6


def test_a_single_line_draft_ends_at_the_line_break():
    prompt = [*range(10), 33, *range(11, 20), 5, 6, 7, 8, 9]
    whole = drafters().session(prompt).propose(prompt).tokens.tolist()
    line = drafters().session(prompt, single_line=True).propose(prompt).tokens.tolist()
    assert whole[:3] == [33, 11, 12]
    assert line == [33]


def test_a_new_name_is_followed_by_what_followed_another_name():
    prompt = [1, 2, 3, 9, 4, 5, 6, 7, 8, 1, 2, 3, 10]
    tree = drafters(enabled=("pattern_lookup",)).session(prompt).propose(prompt)
    assert tree.tokens[0] == 4


def test_a_workspaces_tokens_are_not_drafted_in_another():
    shared = drafters()
    shared.workspace("a").update("f.py", [5, 6, 7, 8, 9, 10])
    tokens = {key: set(shared.session([5, 6, 7], key).propose([5, 6, 7]).tokens.tolist()) for key in ("a", "b", "")}
    assert 8 in tokens["a"]
    assert not {8, 9, 10} & (tokens["b"] | tokens[""])
    shared.close_workspace("a")
    assert len(shared.session([5, 6, 7], "a").propose([5, 6, 7])) == 0


def test_disabled_sources_guess_nothing():
    assert len(drafters(enabled=()).session([1, 2, 3] * 9).propose([1, 2, 3] * 9)) == 0


def test_recycling_learns_from_a_pruned_tree():
    shared = drafters(enabled=("token_recycling",))
    session = shared.session([1, 2, 3])
    session.propose([1, 2, 3])
    tree = DraftTree.empty()
    best = np.array([[9, 8, 7, 6, 5, 4, 3, 2]], dtype=np.int32)
    session.observe(tree, best, accept_path(tree, lambda _row: 9), 20.0)
    assert _recycled(shared, 2, 3) == _recycled(shared, ALONE, 3) == [9, 8]


def test_no_special_token_is_guessed():
    shared = drafters(enabled=("token_recycling",))
    best = np.array([[30, 9, 31, 8, 32, 7, 6, 5]], dtype=np.int32)
    for _ in range(3):
        shared.session([1, 2, 3]).observe(DraftTree.empty(), best, AcceptedPath((0,), (9,), (MODEL,)), 20.0)
    tokens = shared.session([1, 2, 3]).propose([1, 2, 3]).tokens
    assert not {30, 31, 32} & set(tokens.tolist())


def _recycled(shared, before, token):
    memory = shared.recycling("")
    return memory.candidates[find_row(memory, before, token), :2].tolist()


@pytest.mark.parametrize("cost", [1000.0])
def test_nothing_is_proposed_if_a_row_costs_more_than_a_step(cost):
    costs = StepCosts({0: 1.0, 15: cost}, 15)
    expensive = Drafters(default_calibration(), costs, VOCABULARY)
    assert len(expensive.session(list(range(20)) * 2).propose(list(range(20)) * 2)) == 0


def test_certain_tokens_come_before_the_guesses_and_count_against_the_budget():
    prompt = [1, 2, 3, 4, 5, 6, 7, 8, 1]
    shared = drafters()
    session = shared.session(prompt)
    tree = session.propose([*prompt, 2, 3])
    assert tree.tokens[0] == 4
    assert len(tree) <= COSTS.max_nodes - 2
    scored = tree.after((2, 3), "healing")
    best = np.zeros((len(scored) + 1, 8), dtype=np.int32)
    session.observe(scored, best, accept_path(scored, lambda row: (2, 3, 4, 9)[min(row, 3)]), 20.0)
    assert session.propose([*prompt, 2, 3, 4, 9]).tokens.tolist()[:1] != [4]


def test_a_step_that_others_pay_for_or_fill_has_no_room_for_guesses():
    prompt = list(range(20)) * 2
    session = drafters().session(prompt)
    assert len(session.propose(prompt)) > 0
    assert len(session.propose(prompt, shared=SharedStep(attempts=1000))) == 0
    assert len(session.propose(prompt, shared=SharedStep(rows=COSTS.max_nodes))) == 0


def test_what_one_branch_writes_is_not_guessed_in_another():
    prompt = [1, 2, 3, 4, 5]
    session = drafters(enabled=("prompt_lookup",)).session(prompt)
    for branch, written, guesses in ((session.branch((6,)), (7, 8, 6, 7), [8]), (session.branch((6,)), (7,), [])):
        path = AcceptedPath((0,), written, (MODEL,) * len(written))
        branch.observe(DraftTree.empty(), NO_TOPS[:1], path, 20.0)
        assert branch.propose([*prompt, 6, *written]).tokens[:1].tolist() == guesses
