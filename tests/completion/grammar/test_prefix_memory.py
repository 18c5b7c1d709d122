"""What the acceptor reads around the cursor: parts that it skips, beginnings that it remembers, and the horizon."""

import random

import pytest

from completion.errors import GrammarBoundError, PrefixTooLargeError
from completion.grammar.joint import HORIZON_BYTES, Fit, Joint
from completion.grammar.lr.acceptor import Acceptor
from completion.grammar.parsed_documents import skippable_parts
from completion.grammar.prefix_memory import MAX_READ_BYTES, PrefixMemory
from tests.completion.grammar.acceptors import GRAMMARS, acceptor_of, stacks_of
from tests.completion.grammar.samples import SAMPLES

CLASS = b"""class C%d:
    def f(self, a: int) -> dict[str, list[int]]:
        if a:
            return {a: [y for y in range(a) if y > 2]}
        return f(a)(b)[1:2]

"""


@pytest.fixture
def memory():
    return PrefixMemory(acceptor_of("python"))


@pytest.fixture
def read_bytes(monkeypatch):
    """A list of the numbers of bytes that acceptors read."""
    read, counts = Acceptor.read, []
    monkeypatch.setattr(Acceptor, "read", lambda self, at, data: counts.append(len(data)) or read(self, at, data))
    return counts


def read_document(memory, language, text, cursor):
    """Return the snapshot at a cursor in a whole document."""
    return memory.read(text[:cursor], lambda: skippable_parts(language, text, cursor))


def state_of(snapshot):
    return None if snapshot is None else (snapshot.pending, snapshot.column, stacks_of(snapshot))


def edited(rng, text, cursor):
    """Return a text with a line, a part of one or nothing at the cursor; removes the line after the cursor at times."""
    lines = [b"", b"", b"x", b"x = 1\n", b"else:\n", b"    pass\n", b"}\n", b"{\n", b"x = 1;\n"]
    after = text[cursor:].partition(b"\n")[2] if rng.random() < 0.2 else text[cursor:]
    return text[:cursor] + rng.choice(lines) + after


@pytest.mark.parametrize("language", sorted(set(SAMPLES) - {"json", "typescriptreact"}))
def test_edits_and_jumps_give_what_an_empty_memory_gives(language):
    acceptor = GRAMMARS.load(language).acceptor
    sample = SAMPLES[language].encode()
    head, body = (b"", sample) if language != "go" else sample.split(b"\n\n", 1)
    sound = text = head + b"\n\n" + body * 8
    memory, rng = PrefixMemory(acceptor), random.Random(7)
    accepted = 0
    for _ in range(40):
        cursor = rng.choice([text.rfind(b"\n", 0, rng.randrange(len(text))) + 1, rng.randrange(len(text))])
        text = edited(rng, text, cursor)
        for place in (cursor, min(cursor + 2, len(text))):
            snapshot = read_document(memory, language, text, place)
            assert state_of(snapshot) == state_of(read_document(PrefixMemory(acceptor), language, text, place))
            accepted += snapshot is not None
        if rng.random() < 0.3:
            text = sound
    assert 8 < accepted < 80


def test_a_jump_down_the_file_reads_little(memory, read_bytes):
    """An import typed at the top and a return to the bottom is the common case."""
    head, classes = b"import os\nimport sys\n", b"".join(CLASS % number for number in range(1400))
    assert len(classes) > MAX_READ_BYTES
    text = head + classes
    read_document(memory, "python", text, text.rfind(b"        if a:"))
    text = head + b"import re\n" + classes
    read_document(memory, "python", text, len(head) + 9)
    end = text.rfind(b"        if a:")
    read_bytes.clear()
    assert read_document(memory, "python", text, end) is not None
    assert sum(read_bytes) < 2000
    read_bytes.clear()
    read_document(memory, "python", text, end + len(b"        i"))
    assert sum(read_bytes) < 100


def test_a_jump_from_the_middle_of_a_body_reads_little(memory, read_bytes):
    text = b"".join(CLASS % number for number in range(300))
    middle = text.index(b"class C150") + 60
    memory.read(text[:middle], list)
    read_bytes.clear()
    assert read_document(memory, "python", text, len(text) - 20) is not None
    assert sum(read_bytes) < 2000
    read_bytes.clear()
    assert read_document(memory, "python", text, middle) is not None
    assert sum(read_bytes) < 100


def test_a_text_that_is_too_large_leaves_what_is_known_of_its_beginning(memory, read_bytes):
    text = b"x = 1\n" * 1000
    memory.read(text, list)
    with pytest.raises(PrefixTooLargeError):
        memory.read(text + b"y = 1\n" * MAX_READ_BYTES, list)
    read_bytes.clear()
    assert memory.read(text + b"z", lambda: pytest.fail("the beginning is known")) is not None
    assert sum(read_bytes) < 100


def test_a_rejected_line_leaves_what_is_known_before_it(memory, read_bytes):
    text = b"x = 1\n" * 1000
    memory.read(text, list)
    assert memory.read(text + b"x = )\ny", list) is None
    read_bytes.clear()
    assert memory.read(text + b"x = (1", lambda: pytest.fail("the beginning is known")) is not None
    assert sum(read_bytes) < 100


def test_a_bound_that_the_last_line_exceeds_leaves_what_is_known_before_it(memory, read_bytes):
    text = b"x = 1\n" * 10_000 + b"y = " + b"(" * 10_000
    with pytest.raises(GrammarBoundError):
        memory.read(text, list)
    first = sum(read_bytes)
    read_bytes.clear()
    with pytest.raises(GrammarBoundError):
        memory.read(text + b"(", list)
    assert sum(read_bytes) < first / 10


def test_the_sound_words_of_a_broken_line_are_read_and_those_of_a_long_one_are_not_tried(memory, read_bytes):
    text = b"y = ) + [" + b"1, " * 1000
    for part in (text[:60], text):
        assert memory.read(part, list) is None
    assert memory.read_sound_words(text[:60]) is not None
    read_bytes.clear()
    assert memory.read_sound_words(text) is None
    assert not read_bytes


def test_a_text_that_is_rejected_after_a_skipped_part_is_read_from_its_start_each_time(memory):
    text = b"if a:\n    b\nelse:\n    c\n"
    for _ in range(2):
        assert memory.read(text, lambda: [(0, text.index(b"else"))]) is not None


def test_a_beginning_that_no_file_has_is_remembered(memory):
    text = b"x = )\ny = 1\n"
    assert memory.read(text, list) is None
    assert memory.read(text + b"z = 2\n", lambda: pytest.fail("the beginning is known")) is None


@pytest.mark.parametrize(("length", "fit"), [(HORIZON_BYTES + 1, Fit.YES), (HORIZON_BYTES, Fit.SO_FAR)])
def test_a_line_after_the_cursor_counts_only_if_it_ends_before_the_horizon(length, fit):
    acceptor = acceptor_of("python")
    suffix = (b"y = 1\n" * HORIZON_BYTES)[: length - 10].rpartition(b"\n")[0] + b"\n"
    suffix += b"= broken".ljust(length - 1 - len(suffix)) + b"\n"
    assert len(suffix) == length
    assert Joint(acceptor, suffix).fit(acceptor.start()) is fit


@pytest.mark.parametrize("word", ["e", "é", "名1"])
def test_a_broken_line_after_the_cursor_may_begin_with_a_word_of_any_letters(word):
    acceptor = acceptor_of("python")
    assert Joint(acceptor, f"{word} {word}\n".encode()).fit(acceptor.start()) is Fit.BEGUN
