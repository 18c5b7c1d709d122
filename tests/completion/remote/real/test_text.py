"""What the real vLLM writes with the default model: the text of the local engine, forced bytes, the grammar."""

from __future__ import annotations

import os

import pytest

from benchmarks.team.agreement import cursors, errors, exact, kept, texts
from benchmarks.team.vllm_process import READY_S
from completion.remote import connection
from completion.remote.engine import RemoteEngine
from completion.request import GrammarMode

CURSORS = int(os.environ.get("DRAFTLINE_CURSORS", "24"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a processor, vLLM may compute a long prompt for longer than a typist waits."""
    monkeypatch.setattr(connection, "SILENCE_S", READY_S)


@pytest.mark.parametrize("in_word", [False, True])
def test_as_many_cursors_as_locally_get_what_the_author_wrote(connect, local, in_word):
    tasks = cursors(CURSORS, 1, None, in_word=in_word)
    assert len(tasks) == CURSORS
    ours, theirs = exact(tasks, texts(local, tasks)), exact(tasks, texts(RemoteEngine(connect()), tasks))
    print(f"exact matches of {CURSORS} cursors, in words: {in_word}: {ours} locally, {theirs} on vLLM")
    assert theirs >= ours - max(1, (0.02 if in_word else 0.01) * CURSORS)


def test_the_servers_text_starts_with_the_forced_bytes_at_every_cursor(connect):
    tasks = cursors(max(CURSORS, 50), 2, None, in_word=True)
    assert kept(connect(), tasks) == len(tasks)


def test_the_grammar_prevents_errors(connect):
    found = errors(RemoteEngine(connect()), max(6, CURSORS // 24), None)  # 27 of each: 27 alone had no error
    without, strict = found[GrammarMode.OFF].worse, found[GrammarMode.STRICT].worse
    print(f"errors in {found[GrammarMode.OFF].records} completions: {without} without, {strict} with the grammar")
    assert without > 0
    assert strict <= 0.1 * without
