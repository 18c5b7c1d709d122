"""The items of answers as editors get them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place
from lsp_server.settings.experiment import NO_ARM
from lsp_server.settings.table import DEFAULTS
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.items import inline_items, list_items, partial_params
from lsp_server.suggesting.narrowing import Remainder
from lsp_server.suggesting.query import Answer, Query, situation_at


def opened(text, encoding):
    documents = DocumentStore()
    documents.encoding = encoding
    return documents.open(types.TextDocumentItem("file:///a.py", "python", 1, text))


def answered(before, after, left, encoding=PositionEncoding.UTF16):
    """Return a query between two texts of a document, and its answer."""
    document = opened(before + after, encoding)
    place = document.lines.advance(Place(0, 0), len(before))
    situation = situation_at(document, place)
    position = document.position(place)
    query = Query(document, 1, place, position, situation, True, 0.0, DEFAULTS, NO_ARM, single=True)
    return query, Answer(Generation("id", situation), (left,))


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_label_of_a_list_item_is_the_first_line_without_its_line_end(line_end):
    text = f"f x:{line_end}        return x"
    query, answer = answered(f"def f():{line_end}    i", "", Remainder(0, text, 0))
    (item,) = list_items(query, answer)
    assert item.label == "if x:"
    assert item.text_edit.new_text == f"i{text}"


@pytest.mark.parametrize(
    ("before", "text", "label", "word"),
    [
        ("return self.item_1", "0()", "item_10()", "item_1"),
        ("x.", "name", "name", None),
        ("def f():", "\n    return 1\n    # two", "return 1", None),
    ],
)
def test_a_list_item_completes_the_word_before_the_cursor_and_is_named_by_its_first_line(before, text, label, word):
    """Clients filter a list by the word that is typed."""
    query, answer = answered(before, "", Remainder(0, text, 0))
    (item,) = list_items(query, answer)
    assert (item.label, item.filter_text) == (label, word)
    assert item.text_edit.new_text == (word or "") + text
    assert list_items(query, Answer()) == []


CODE = st.text(alphabet="a_1 (\n€𝒳", max_size=12)


@given(CODE, st.text(alphabet=')"; €𝒳', max_size=4), CODE, st.sampled_from(PositionEncoding))
@example("𝒳 = 𝒳", "𝒳)", "(a)", PositionEncoding.UTF16)
def test_every_form_of_an_item_replaces_what_its_remainder_names_and_nothing_else(before, replaced, text, encoding):
    """Editors count in code units, of which characters beyond the first plane have several."""
    after = "\nx = 1\n"
    query, answer = answered(before, replaced + after, Remainder(0, text, len(replaced)), encoding)
    (inline,) = inline_items(query, answer)
    (partial,) = partial_params(query, answer, done=True)["items"]
    (listed,) = list_items(query, answer)
    edits = [(one["range"], one["insertText"]) for one in (inline, partial)]
    for range_, new in (*edits, (listed.text_edit.range, listed.text_edit.new_text)):
        changed = opened(before + replaced + after, encoding)
        changed.apply([types.TextDocumentContentChangePartial(range_, new)], 2)
        assert changed.lines.text() == before + text + after
