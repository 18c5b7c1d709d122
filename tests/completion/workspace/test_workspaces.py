"""Defect 1: a workspace's memory is given back when it is closed, and all of them stay within a budget."""

import pytest

from completion.request import CompletionRequest, WorkspaceFile, WorkspaceUpdate
from completion.workspace import context
from completion.workspace.workspaces import PIECE_CHARACTERS, Workspaces
from drafting.calibration import default_calibration
from drafting.draft_budget import StepCosts
from drafting.session import Drafters


@pytest.fixture
def make(tiny_model):
    """Make workspaces, with their drafters, under a budget."""

    def made(budget_bytes=1 << 40):
        size = tiny_model.tokenizer.vocabulary_size
        drafters = Drafters(default_calibration(), StepCosts({0: 1.0, 8: 1.2}, 8), size)
        return Workspaces(drafters, tiny_model.tokenizer, budget_bytes), drafters

    return made


def update_of(workspace, number=0):
    text = f"def unusual_{number}(first):\n    return first\n" * 50
    return WorkspaceUpdate(workspace, (WorkspaceFile(f"{number}.py", text),))


def apply(workspaces, update):
    """Apply an update without anything between its pieces; return their number."""
    return sum(1 for _ in workspaces.update(update))


def asked(workspace, number=0):
    return CompletionRequest(f"from {number} import unusual_{number}\n\n", language="python", workspace=workspace)


def test_a_closed_workspace_takes_no_memory_and_gives_no_context(make):
    workspaces, drafters = make()
    empty = workspaces.size_bytes
    apply(workspaces, update_of("a"))
    drafters.recycling("a")
    assert workspaces.snippets(asked("a"), 500)
    workspaces.close("a")
    assert (len(workspaces), workspaces.size_bytes, drafters.size_bytes("a")) == (0, empty, 0)
    assert workspaces.snippets(asked("a"), 500) == ()


def test_workspaces_that_only_conversations_name_stay_within_the_budget(make):
    workspaces, drafters = make()
    size = sum(array.nbytes for array in drafters.recycling("a"))
    workspaces, drafters = make(3 * size)
    for number in range(20):
        workspaces.use(str(number))
        drafters.session([1, 2, 3], str(number))
    assert sum(drafters.size_bytes(str(number)) for number in range(20)) <= 4 * size


def test_the_least_recently_used_workspace_goes_first(make):
    workspaces, _ = make()
    apply(workspaces, update_of("a"))
    workspaces, _ = make(int(2.5 * workspaces.size_bytes))
    for name in "ab":
        apply(workspaces, update_of(name))
    workspaces.snippets(asked("a"), 500)
    apply(workspaces, update_of("c"))
    assert len(workspaces) == 2
    assert workspaces.snippets(asked("a"), 500)
    assert not workspaces.snippets(asked("b"), 500)


def test_a_workspace_larger_than_the_budget_is_held_while_it_is_in_use(make):
    workspaces, _ = make(budget_bytes=1)
    apply(workspaces, update_of("a"))
    assert workspaces.snippets(asked("a"), 500)


def test_withdrawn_files_of_an_unknown_workspace_open_nothing(make):
    workspaces, _ = make()
    apply(workspaces, WorkspaceUpdate("a", removed=("0.py",)))
    assert len(workspaces) == 0


@pytest.mark.parametrize("line", ["a(b)[c], ", "value = 1  # é\n"])
def test_a_long_file_is_indexed_piece_by_piece_and_whole(make, tiny_model, line):
    workspaces, drafters = make()
    text = line * (10 * PIECE_CHARACTERS // len(line))
    assert apply(workspaces, WorkspaceUpdate("w", (WorkspaceFile("a.txt", text),))) > 10
    index = drafters.workspace("w")
    assert tiny_model.tokenizer.decode(index.arrays.tokens[: index.tokens]).decode() == text


def test_a_workspace_that_is_evicted_between_two_pieces_stays_within_the_budget(make):
    workspaces, drafters = make(budget_bytes=1)
    for _ in workspaces.update(update_of("a")):
        workspaces.snippets(asked("b"), 500)
    assert len(workspaces) == 1
    assert tuple(drafters.workspace("a")._documents) == ("0.py",)
    workspaces.snippets(asked("b"), 500)
    assert tuple(drafters.workspace("a")._documents) == ()


def test_a_file_that_is_sent_again_as_it_was_is_not_indexed_again(make):
    workspaces, drafters = make()
    update = update_of("a")
    first = apply(workspaces, update)
    assert apply(workspaces, update) == 1 < first
    opened = WorkspaceUpdate("a", (WorkspaceFile("0.py", update.changed[0].text, open=True),))
    assert apply(workspaces, opened) == first
    for _ in zip(range(2), workspaces.update(update), strict=False):  # the editor closes it, and a cancel comes
        pass
    assert apply(workspaces, update) == first
    workspaces.close("a")
    assert apply(workspaces, update) == first
    assert workspaces.snippets(asked("a"), 500)
    assert tuple(drafters.workspace("a")._documents) == ("0.py",)


def test_a_file_that_gives_no_snippets_is_not_indexed_again_either(make, monkeypatch):
    monkeypatch.setattr(context, "MAX_FILES", 1)
    workspaces, _ = make()
    large = WorkspaceFile("large.py", "x = 1\n" * 40_000)
    update = WorkspaceUpdate("a", (large, *update_of("a", 0).changed, *update_of("a", 1).changed))
    first = apply(workspaces, update)
    assert apply(workspaces, update) == 3 < first
    apply(workspaces, WorkspaceUpdate("a", removed=("0.py",)))
    assert apply(workspaces, update) == 4


def test_of_too_many_files_the_oldest_are_indexed_again(make, monkeypatch):
    monkeypatch.setattr(context, "_MAX_SOURCES", 2)
    workspaces, _ = make()
    for number in range(3):
        apply(workspaces, update_of("a", number))
    assert [apply(workspaces, update_of("a", number)) for number in (2, 1, 0)] == [1, 1, 2]
