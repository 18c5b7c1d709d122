"""Skipping finished items gives the same stacks as reading from the file's start."""

import random
from pathlib import Path

import pytest

import completion
from completion.grammar.parsed_documents import skippable_parts
from tests.completion.grammar.acceptors import GRAMMARS, stacks_of
from tests.completion.grammar.samples import SAMPLES

OWN_SOURCES = sorted(Path(completion.__file__).parent.rglob("*.py"))


def skips_parts(language, text, cut):
    """Return whether any part was skipped; assert equal stacks for the file and for the text before it."""
    acceptor, before = GRAMMARS.load(language).acceptor, text[:cut]
    whole = acceptor.read(acceptor.start(), before)
    assert whole is not None
    skipped = False
    for document in (text, before):
        parts = skippable_parts(language, document, cut)
        read = b"".join(
            before[start:end]
            for start, end in zip([0, *(end for _, end in parts)], [*(start for start, _ in parts), cut], strict=True)
        )
        shortened = acceptor.read(acceptor.start(), read)
        assert shortened is not None
        assert stacks_of(shortened) == stacks_of(whole)
        assert shortened.pending == whole.pending
        skipped = skipped or bool(parts)
    return skipped


def test_skipping_items_of_real_python_files_gives_the_same_stacks():
    rng = random.Random(3)
    shortened = 0
    for path in OWN_SOURCES[::6]:
        text = path.read_bytes()
        shortened += skips_parts("python", text, rng.randrange(len(text)))
    assert shortened > 2


@pytest.mark.parametrize("language", sorted(set(SAMPLES) - {"json", "typescriptreact"}))
def test_skipping_items_of_repeated_samples_gives_the_same_stacks(language):
    sample = SAMPLES[language].encode()
    head, body = (b"", sample) if language != "go" else sample.split(b"\n\n", 1)
    text = head + b"\n\n" + body * 4
    rng = random.Random(5)
    assert sum(skips_parts(language, text, rng.randrange(len(text))) for _ in range(6)) > 1
