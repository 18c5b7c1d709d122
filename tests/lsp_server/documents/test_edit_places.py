"""Where the user types after the edits of an event, compared with a mark that moves with the text."""

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.documents.edit_log import last_insertion
from lsp_server.documents.text_lines import Place, TextLines

MARK = "¦"
TEXTS = st.text("ab\n", max_size=12)
RANGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted), max_size=4)


@given(TEXTS, RANGES, RANGES, st.integers(0, 12), TEXTS)
def test_the_last_inserted_text_is_found_after_the_deletions_that_follow_it(text, before, after, at, inserted):
    lines = TextLines(text)

    def replace(start, end, new):
        return lines.replace(lines.advance(Place(0, 0), start), lines.advance(Place(0, 0), end), new)

    edits = [replace(*span, "a") for span in before]
    edits.append(replace(at, at, MARK + inserted))
    for start, end in after:
        mark = lines.text().index(MARK)
        is_before = start < mark
        edits.append(replace(start, min(end, mark), "") if is_before else replace(mark + 1, max(end, mark + 1), ""))
    found = last_insertion(edits)
    assert found.inserted == MARK + inserted
    assert lines.offset(found.start) == lines.text().index(MARK)


def test_without_inserted_text_it_is_the_last_deletion():
    lines = TextLines("abc")
    edits = [lines.replace(Place(0, at), Place(0, at + 1), "") for at in (2, 0)]
    assert last_insertion(edits).start == Place(0, 0)
