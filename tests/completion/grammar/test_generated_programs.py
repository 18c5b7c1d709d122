"""Generated programs that tree-sitter accepts are accepted in any pieces, and snapshots never change."""

import random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from completion.grammar.indentation import IndentationRule
from completion.syntax.trees import parse
from tests.completion.grammar.acceptors import GRAMMARS, acceptor_of
from tests.completion.grammar.programs import PROGRAMS

QUICK = settings(max_examples=12, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("language", sorted(PROGRAMS))
def test_a_generated_program_is_accepted_in_any_pieces(language):
    grammar = GRAMMARS.load(language)
    sound = []

    @QUICK
    @given(PROGRAMS[language], st.integers(0, 1000))
    def run(program, seed):
        text = program.encode()
        sound.append(not parse(text, language).root_node.has_error)
        assume(sound[-1])
        rng = random.Random(seed)
        snapshot, offset = grammar.acceptor.start(), 0
        while offset < len(text):
            piece = text[offset : offset + rng.randint(1, 7)]
            after = grammar.acceptor.read(snapshot, piece)
            assert after is not None, (text[:offset], piece)
            snapshot, offset = after, offset + len(piece)
        assert grammar.acceptor.accepts_end(snapshot)

    run()
    assert sum(sound) > len(sound) / 2, "the generator makes too few valid programs"


@settings(QUICK, max_examples=20)
@given(PROGRAMS["python"], st.data())
def test_advancing_never_changes_a_snapshot(program, data):
    acceptor = GRAMMARS.load("python").acceptor
    text = program.encode()
    cut = data.draw(st.integers(0, len(text)))
    snapshot = acceptor.read(acceptor.start(), text[:cut])
    assume(snapshot is not None)
    before = (snapshot.heads, snapshot.pending, snapshot.column)
    for branch in (b"]", b"\n", b" x", text[cut:]):
        acceptor.read(snapshot, branch)
    assert (snapshot.heads, snapshot.pending, snapshot.column) == before


@settings(QUICK, max_examples=30)
@given(st.data())
def test_the_two_lexers_agree_on_any_bytes(data):
    language = data.draw(st.sampled_from(sorted(PROGRAMS)))
    text = data.draw(PROGRAMS[language]).encode() + data.draw(st.binary(max_size=6))
    one, other = (acceptor_of(language, lexer) for lexer in ("python", "compiled"))
    ours, theirs = one.read(one.start(), text), other.read(other.start(), text)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert ours.pending == theirs.pending
        assert states_of(ours) == states_of(theirs)


def states_of(snapshot):
    return sorted((h.offset, sorted(n.state for n in h.stacks.nodes), h.scanner_state) for h in snapshot.heads)


def test_the_indentation_rule_finds_its_symbols_in_the_grammar():
    tables = GRAMMARS.load("python").tables
    assert IndentationRule(tables).start().levels == ()
