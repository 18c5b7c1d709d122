"""The workspace index finds exactly its documents' tokens: after every edit, not after removal, within its budget."""

from __future__ import annotations

import sys
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.memory import Held, resident_bytes
from drafting.sources import workspace_index
from drafting.sources.ngram_index import GAP, NONE, find
from drafting.sources.workspace_index import INITIAL_SLOTS, WorkspaceIndex

documents = st.lists(st.integers(0, 3), max_size=12)  # together no more tokens than the slots that one lookup visits
edits = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | documents, st.booleans()), max_size=30)


def occurrences(index: WorkspaceIndex, tail: list[int]) -> set[tuple[int, ...]]:
    """Return what the index finds: the matched tokens with their continuation."""
    slots, lengths = np.zeros(200, dtype=np.int32), np.zeros(200, dtype=np.int32)
    count = find(index.arrays, np.array(tail, dtype=np.int32), slots, lengths)
    tokens = index.arrays.tokens
    return {
        tuple(tokens[slot - length + 1 : slot + 2].tolist())
        for slot, length in zip(slots[:count], lengths[:count], strict=True)
    }


def longest_match(expected: dict[str, list[int]], tail: list[int]) -> int:
    best = 0
    for tokens in expected.values():
        for end in range(len(tokens) - 1):
            length = 0
            while length < min(len(tail), end + 1, 24) and tokens[end - length] == tail[-1 - length]:
                length += 1
            best = max(best, length)
    return best if best > 1 else 0


def assert_chains_are_sound(index: WorkspaceIndex) -> None:
    arrays = index.arrays
    for order in range(len(arrays.heads)):
        for bucket, head in enumerate(arrays.heads[order]):
            slot, before = int(head), -2 - bucket
            while slot != NONE:
                assert arrays.newer[order, slot] == before
                assert arrays.tokens[slot] != GAP
                before, slot = slot, int(arrays.older[order, slot])


@pytest.mark.parametrize("initial_slots", [INITIAL_SLOTS, 40])  # with 40 the second document moves all
@settings(max_examples=80)
@given(edits, st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_after_any_edits_it_finds_what_is_in_the_documents(initial_slots, steps, tail):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace_index, "INITIAL_SLOTS", initial_slots)
        index, expected = WorkspaceIndex(), {}
        for path, tokens, is_open in steps:
            if tokens is None:
                index.remove(path)
                expected.pop(path, None)
            else:
                index.update(path, tokens, is_open=is_open)
                expected[path] = tokens
    texts = [",".join(map(str, tokens)) for tokens in expected.values()]
    found = occurrences(index, tail)
    assert all(any(",".join(map(str, piece)) in text for text in texts) for piece in found)
    assert max((len(piece) - 1 for piece in found), default=0) == longest_match(expected, tail)
    assert index.tokens == sum(map(len, expected.values()))
    kept = index.arrays.tokens[index.arrays.tokens > 0]  # slots that were never used are 0
    assert sorted(kept.tolist()) == sorted(filter(None, chain.from_iterable(expected.values())))
    assert_chains_are_sound(index)


def test_a_removed_documents_tokens_are_not_in_memory():
    index = WorkspaceIndex()
    index.update("kept.py", [1, 2, 3] * 50)
    index.update("secret.py", [777, 778, 779] * 50)
    index.remove("secret.py")
    assert not np.isin(index.arrays.tokens, [777, 778, 779]).any()
    assert occurrences(index, [777, 778]) == set()
    assert (1, 2, 3) in {piece[-3:] for piece in occurrences(index, [1, 2])}
    index.remove("secret.py")  # removing it twice is no error


def test_growth_keeps_every_document():
    index = WorkspaceIndex()
    for number in range(60):
        index.update(f"{number}.py", [1000 + number] * 3 + list(range(1000)))
    for number in range(60):
        assert occurrences(index, [1000 + number] * 2)


def test_the_newest_occurrence_comes_first():
    index = WorkspaceIndex()
    index.update("old.py", [1, 2, 3, 4, 50, 0])
    index.update("new.py", [1, 2, 3, 4, 60, 0])
    index.update("old.py", [1, 2, 3, 4, 70, 0])
    slots, lengths = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    assert find(index.arrays, np.array([1, 2, 3, 4], dtype=np.int32), slots, lengths) == 1
    assert index.arrays.tokens[slots[0] + 1] == 60  # only what follows the edit is newer
    index.remove("new.py")
    find(index.arrays, np.array([1, 2, 3, 4], dtype=np.int32), slots, lengths)
    assert index.arrays.tokens[slots[0] + 1] == 70


def test_closed_documents_make_room_before_open_ones():
    index = WorkspaceIndex(budget_tokens=100)
    index.update("open.py", [1] * 40, is_open=True)
    index.update("closed.py", [2] * 40)
    index.update("new.py", [3] * 40)
    assert set(index._documents) == {"open.py", "new.py"}
    index.update("huge.py", [4] * 101)
    assert "huge.py" not in index._documents
    assert index.tokens == 80


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_room_for_later_documents_takes_no_memory():
    index = WorkspaceIndex()
    index.update("file.py", range(1, 100_001))
    held = Held.arrays(index.arrays[:-1])
    assert sum(array.nbytes for array in index.arrays[:-1]) > 1.5 * resident_bytes(held.spans)


def test_removed_documents_memory_is_reused():
    index = WorkspaceIndex()
    for number in range(300):
        index.update(f"{number}", [number] * 1000)
        index.remove(f"{number}")
    assert index.size_bytes < 2_000_000
