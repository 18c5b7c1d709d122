"""Any tree changes speed only: the accepted path is what plain decoding emits, greedy and sampled."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting.draft_tree import ROOT, DraftTree
from drafting.verifier import MODEL, accept_path

VOCABULARY = 5
END = 0


def logits(context: tuple[int, ...], table: int) -> np.ndarray:
    """Return scores that depend on the table's number and the last three tokens."""
    key = hashlib.blake2b(repr((table, context[-3:])).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(key, "little")).normal(size=VOCABULARY)


def plain_choice(context: tuple[int, ...], table: int, seed: int | None, banned: int) -> int:
    scores = logits(context, table)
    scores[banned] = -np.inf  # a constraint applies before the choice
    if seed is not None:  # Gumbel noise keyed by seed and absolute position
        scores = scores + np.random.default_rng((seed, len(context))).gumbel(size=VOCABULARY)
    return int(np.argmax(scores))


def plain(prompt: tuple[int, ...], count: int, table: int, seed: int | None, banned: int) -> tuple[int, ...]:
    context = prompt
    while len(context) < len(prompt) + count and (context == prompt or context[-1] != END):
        context += (plain_choice(context, table, seed, banned),)
    return context[len(prompt) :]


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    """Any valid tree: random, wrong, too deep, with duplicate children."""
    count = draw(st.integers(0, 12))
    tokens = draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=count, max_size=count))
    deep = draw(st.booleans())
    parents = [node - 1 if deep else draw(st.integers(ROOT, node - 1)) for node in range(count)]
    names = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    return DraftTree(
        np.array(tokens, dtype=np.int32),
        np.array(parents, dtype=np.int32),
        np.array(names, dtype=np.int32),
        ("lookup", "recycling"),
    )


@settings(max_examples=300)
@given(st.lists(trees(), min_size=1, max_size=8), st.integers(0, 99), st.none() | st.integers(0, 99), st.integers(1, 4))
def test_any_sequence_of_trees_emits_what_plain_decoding_emits(steps, table, seed, banned):
    prompt = (1, 2, 3)
    context = prompt
    for tree in steps:
        paths = [context]
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            paths.append((*paths[parent + 1], int(token)))
        path = accept_path(tree, lambda row, p=paths: plain_choice(p[row], table, seed, banned), ends={END})
        assert path.rows[0] == 0
        assert [int(tree.tokens[row - 1]) for row in path.rows[1:]] == list(path.tokens[:-1])
        assert [int(tree.parents[row - 1]) + 1 for row in path.rows[1:]] == list(path.rows[:-1])
        assert len(path.drafters) == len(path.tokens)
        context += path.tokens
        if END in path.tokens:
            break
    written = context[len(prompt) :]
    assert written == plain(prompt, len(written), table, seed, banned)
    assert END not in written[:-1]


def test_an_empty_tree_emits_the_models_own_token():
    path = accept_path(DraftTree.empty(), lambda _row: 7)
    assert (path.rows, path.tokens, path.drafters) == ((0,), (7,), (MODEL,))


def test_a_right_chain_is_accepted_whole_and_followed_by_the_models_own_token():
    tree = DraftTree.empty().after((4, 5), "lookup")
    path = accept_path(tree, lambda row: (4, 5, 6)[row])
    assert path.rows == (0, 1, 2)
    assert path.tokens == (4, 5, 6)
    assert path.drafters == ("lookup", "lookup", MODEL)


def test_the_model_chooses_only_at_rows_of_the_path():
    tree = DraftTree(
        np.array([4, 9, 5], dtype=np.int32),
        np.array([ROOT, ROOT, 0], dtype=np.int32),
        np.zeros(3, dtype=np.int32),
        ("lookup",),
    )
    visited = []
    accept_path(tree, lambda row: visited.append(row) or (4, 5, 0, 8)[row])
    assert visited == [0, 1, 3]


@pytest.mark.parametrize("ends", [{5}, frozenset({5})])
def test_the_path_stops_at_an_end_token_even_if_the_tree_continues(ends):
    tree = DraftTree.empty().after((4, 5, 6), "lookup")
    assert accept_path(tree, lambda row: (4, 5, 6, 7)[row], ends).tokens == (4, 5)
