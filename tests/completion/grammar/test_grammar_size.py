"""The size that a grammar reports is what its objects take."""

import gc
import sys
import tracemalloc
from types import FunctionType, ModuleType

import pytest

from completion.grammar.grammar import Grammar, Grammars
from completion.syntax.table import row_of
from tests.completion.grammar.samples import SAMPLES

_NOT_OWNED = (type, ModuleType, FunctionType)


def size_of(*roots):
    """Return the bytes of all objects that are reachable from `roots`."""
    seen, waiting, total = set(), list(roots), 0
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, _NOT_OWNED):
            seen.add(id(each))
            total += sys.getsizeof(each)
            waiting += gc.get_referents(each)
    return total


@pytest.mark.parametrize("language", ["python", "typescript", "rust", "cpp", "java", "go"])
def test_a_grammars_size_is_that_of_its_objects_within_a_third(language):
    grammar = Grammar(row_of(language))
    text = SAMPLES[language].encode()
    for end in range(0, len(text), max(1, len(text) // 100)):
        snapshot = grammar.prefixes.read(text[:end], list)
        if snapshot is not None:
            grammar.acceptor.advance(snapshot, b"value")

    machine, tables = grammar.acceptor.machine, grammar.tables
    exact = size_of(
        tables._rows,
        tables._entries,
        machine._nodes,
        machine._sets,
        grammar.acceptor._probed,
        grammar.acceptor.literals._by_start,
        grammar.prefixes._known,
        grammar.prefixes._broken,
        {
            name: value
            for name, value in vars(grammar.shortest._rests).items()
            if name.startswith("_") and name != "_tables"
        },
    )

    assert exact > 200_000
    assert grammar.size_bytes == pytest.approx(exact, rel=1 / 3)


def test_making_the_largest_shipped_grammar_takes_little_memory():
    Grammar(row_of("json"))  # with what all grammars share
    tracemalloc.start()
    try:
        grammar = Grammar(row_of("cpp"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 25_000_000  # 9 of them would be a table of all states and symbols
    assert grammar.size_bytes < 6_000_000


def test_grammars_that_are_unloaded_take_nothing():
    grammars = Grammars()
    assert grammars.size_bytes == 0
    grammars.load("python")
    grammars.load("go")
    both = grammars.size_bytes
    grammars.keep({"go"})
    assert 0 < grammars.size_bytes < both
