"""Defect 1: a workspace's memory is given back when it is closed, and all of them stay within a budget."""

import pytest

from completion.request import CompletionRequest, WorkspaceFile, WorkspaceUpdate
from completion.workspace.workspaces import Workspaces
from drafting.draft_budget import StepCosts
from drafting.learned_state import default_calibration
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


def asked(workspace, number=0):
    return CompletionRequest(f"from {number} import unusual_{number}\n\n", language="python", workspace=workspace)


def test_a_closed_workspace_takes_no_memory_and_gives_no_context(make):
    workspaces, drafters = make()
    empty = workspaces.size_bytes
    workspaces.update(update_of("a"))
    drafters.recycling("a")
    assert workspaces.snippets(asked("a"), 500)
    workspaces.close("a")
    assert (len(workspaces), workspaces.size_bytes, drafters.size_bytes("a")) == (0, empty, 0)
    assert workspaces.snippets(asked("a"), 500) == ()


def test_the_least_recently_used_workspace_goes_first(make):
    workspaces, _ = make()
    workspaces.update(update_of("a"))
    workspaces, _ = make(int(2.5 * workspaces.size_bytes))
    for name in "ab":
        workspaces.update(update_of(name))
    workspaces.snippets(asked("a"), 500)
    workspaces.update(update_of("c"))
    assert len(workspaces) == 2
    assert workspaces.snippets(asked("a"), 500)
    assert not workspaces.snippets(asked("b"), 500)


def test_a_workspace_larger_than_the_budget_is_held_while_it_is_in_use(make):
    workspaces, _ = make(budget_bytes=1)
    workspaces.update(update_of("a"))
    assert workspaces.snippets(asked("a"), 500)


def test_withdrawn_files_of_an_unknown_workspace_open_nothing(make):
    workspaces, _ = make()
    workspaces.update(WorkspaceUpdate("a", removed=("0.py",)))
    assert len(workspaces) == 0
