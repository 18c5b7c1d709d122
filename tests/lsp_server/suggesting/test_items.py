"""The items of answers as editors get them."""

import pytest
from lsprotocol import types

from lsp_server.documents.documents import DocumentStore
from lsp_server.settings.experiment import NO_ARM
from lsp_server.settings.table import DEFAULTS
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.items import list_items
from lsp_server.suggesting.narrowing import Remainder
from lsp_server.suggesting.query import Answer, Query, situation_at


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_label_of_a_list_item_is_the_first_line_without_its_line_end(line_end):
    document = DocumentStore().open(types.TextDocumentItem("file:///a.py", "python", 1, f"def f():{line_end}    i"))
    position = types.Position(1, 5)
    place = document.place(position)
    situation = situation_at(document, place)
    query = Query(document, 1, place, position, situation, True, 0.0, DEFAULTS, NO_ARM, single=True)
    text = f"f x:{line_end}        return x"
    answer = Answer(Generation("id", situation), (Remainder(0, text, 0),))
    (item,) = list_items(query, answer)
    assert item.label == "if x:"
    assert item.text_edit.new_text == f"i{text}"
