"""Starting at the enclosing item gives the stacks that reading from the file's start gives."""

import random
from pathlib import Path

import pytest

import completion
from completion.grammar.enclosing_item import skippable_parts
from completion.grammar.grammar import load_grammar
from tests.completion.grammar.samples import SAMPLES

OWN_SOURCES = sorted(Path(completion.__file__).parent.rglob("*.py"))


def stacks_of(snapshot):
    """All but the scanner's state: Rust's keeps the length of the last raw string's fence, which nothing reads."""
    return [(head.offset, head.stacks, head.layout) for head in snapshot.heads]


def starts_alike(grammar, text, cut):
    """Whether anything was passed over; asserts that it made no difference, whichever tree says what to pass over."""
    acceptor, before = grammar.acceptor, text[:cut]
    whole = acceptor.read(acceptor.start(), before)
    assert whole is not None
    passed = False
    for tree in (grammar.parse(text), grammar.parse(before)):
        parts = skippable_parts(tree, before)
        read = b"".join(
            before[start:end]
            for start, end in zip([0, *(end for _, end in parts)], [*(start for start, _ in parts), cut], strict=True)
        )
        shortened = acceptor.read(acceptor.start(), read)
        assert shortened is not None
        assert stacks_of(shortened) == stacks_of(whole)
        assert shortened.pending == whole.pending
        passed = passed or bool(parts)
    return passed


def test_real_python_files_start_alike_at_their_last_items():
    rng = random.Random(3)
    grammar = load_grammar("python")
    shortened = 0
    for path in OWN_SOURCES[::6]:
        text = path.read_bytes()
        shortened += starts_alike(grammar, text, rng.randrange(len(text)))
    assert shortened > 2


@pytest.mark.parametrize("language", sorted(set(SAMPLES) - {"json", "typescriptreact"}))
def test_repeated_samples_start_alike(language):
    grammar = load_grammar(language)
    sample = SAMPLES[language].encode()
    head, body = (b"", sample) if language != "go" else sample.split(b"\n\n", 1)
    text = head + b"\n\n" + body * 4
    rng = random.Random(5)
    assert sum(starts_alike(grammar, text, rng.randrange(len(text))) for _ in range(6)) > 1
