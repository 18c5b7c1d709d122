"""What the acceptor reads around the cursor: parts that it skips, beginnings that it remembers, and the horizon."""

import pytest

from completion.grammar.prefix_memory import PrefixMemory
from completion.grammar.suffix_check import HORIZON_BYTES, SuffixCheck
from tests.completion.grammar.acceptors import acceptor_of


@pytest.fixture
def memory():
    return PrefixMemory(acceptor_of("python"))


def test_a_text_that_is_rejected_after_a_skipped_part_is_read_from_its_start_each_time(memory):
    text = b"if a:\n    b\nelse:\n    c\n"
    for _ in range(2):
        assert memory.read(text, lambda: [(0, text.index(b"else"))]) is not None


def test_a_beginning_that_no_file_has_is_remembered(memory):
    text = b"x = )\ny = 1\n"
    assert memory.read(text, list) is None
    assert memory.read(text + b"z = 2\n", lambda: pytest.fail("the beginning is known")) is None


@pytest.mark.parametrize(("length", "passes"), [(HORIZON_BYTES + 1, True), (HORIZON_BYTES, False)])
def test_a_line_after_the_cursor_counts_only_if_it_ends_before_the_horizon(length, passes):
    acceptor = acceptor_of("python")
    suffix = (b"y = 1\n" * HORIZON_BYTES)[: length - 10].rpartition(b"\n")[0] + b"\n"
    suffix += b"= broken".ljust(length - 1 - len(suffix)) + b"\n"
    assert len(suffix) == length
    assert SuffixCheck(acceptor, suffix).passes(acceptor.start()) is passes
