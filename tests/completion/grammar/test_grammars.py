"""The loaded grammars of two engines share nothing that one of them changes."""

from __future__ import annotations

import sys
import threading

import pytest

from completion.grammar.constraint import GrammarConstraint
from completion.grammar.grammar import Grammars
from completion.request import GrammarMode
from tests.completion.grammar.samples import SAMPLES

PIECE_BYTES = 5


@pytest.fixture
def often_switched():
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def typed(language, grammars, cursors):
    """Return the cursors at which the rest of a sound text is not accepted."""
    text, faults = SAMPLES[language], []
    for at in cursors:
        opened = GrammarConstraint(grammars, language, text[:at], text[at:], GrammarMode.STRICT)
        snapshot = opened.root
        for start in range(at, len(text), PIECE_BYTES):
            if snapshot is not None:
                snapshot = opened.advance(snapshot, text[start : start + PIECE_BYTES].encode())
        if snapshot is None:
            faults.append(at)
    return faults


def test_a_text_that_another_engine_loads_is_not_what_this_one_reads():
    ours, theirs = (Grammars().load("python").acceptor.lexer for _ in range(2))
    mode = Grammars().load("python").tables.lex_mode(1)
    ours.load(b"name = 1", 0)
    before = ours.lex(mode, 0, ours.initial_state)
    theirs.load(b"x", 0)
    assert ours.lex(mode, 0, ours.initial_state) == before
    assert before.end == len(b"name")


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("language", ["python", "typescript"])
def test_two_engines_on_two_threads_accept_a_sound_text_at_every_cursor(language):
    faults = {}

    def run(name, cursors):
        faults[name] = typed(language, Grammars(), cursors)

    cursors = range(0, len(SAMPLES[language]), max(1, len(SAMPLES[language]) // 12))
    threads = [threading.Thread(target=run, args=each) for each in (("one", cursors), ("other", reversed(cursors)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == {"one": [], "other": []}
