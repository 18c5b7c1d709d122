"""The incremental joined parse gives the same result as a parse from scratch."""

import random

import pytest

from completion.grammar.joined_check import JoinedCheck
from tests.completion.grammar.acceptors import GRAMMARS
from tests.completion.grammar.samples import SAMPLES


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_a_removed_part_that_is_inserted_again_makes_the_document_sound(language):
    grammar = GRAMMARS.load(language)
    text = SAMPLES[language].encode()
    rng = random.Random(11)
    for _ in range(60):
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        document = grammar.document(text[:start] + text[end:])
        joined, tree = document.parse_with(start, start, text[start:end])
        assert joined == text
        assert grammar.errors_of(tree) == 0
        assert document.tree.root_node.end_byte <= len(document.text)  # the document's own tree is unchanged


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_a_documents_tree_equals_that_of_a_parse_from_scratch_after_any_edits(language):
    grammar = GRAMMARS.load(language)
    sound = text = SAMPLES[language].encode()
    rng = random.Random(13)
    for _ in range(150):
        at = rng.randrange(len(text) + 1)
        put_in = rng.choice([b"x", b" ", b"\n", b")", b"{", b'"', b"1", b"\xc3\xa9"])
        text = text[:at] + put_in + text[at + rng.choice([0, 0, 1, 4]) :]
        tree = grammar.document(text).tree
        assert str(tree.root_node) == str(grammar.parse(text).root_node)
        if tree.root_node.has_error:
            text = sound
        sound = text
    assert sound != SAMPLES[language].encode()


@pytest.mark.parametrize("language", sorted(set(SAMPLES) - {"python"}))
def test_added_errors_equal_those_of_a_parse_from_scratch(language):
    grammar = GRAMMARS.load(language)
    text = SAMPLES[language].encode()
    rng = random.Random(12)
    for _ in range(30):
        at = rng.randrange(len(text) + 1)
        middle = rng.choice([b")", b"x", b" {", b"\n", b'"', b"1 1", b"\xc3\xa9"])
        check = JoinedCheck(grammar.document(text), grammar.errors_of, at, at)
        scratch = grammar.errors_of(grammar.parse(text[:at] + middle + text[at:]))
        assert check.adds_errors(middle) == (scratch > 0)
        assert check.sound(middle) == (scratch == 0)
