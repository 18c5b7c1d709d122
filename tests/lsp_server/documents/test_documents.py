"""The document store against a naive model that works on one string and on code units."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents import text_lines
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.text_lines import Place, PositionEncoding, TextLines
from lsp_server.empty_reason import EmptyReason

ENCODINGS = list(PositionEncoding)
CHARACTERS = st.sampled_from([*"ab \t\n\r\f\v\x85\u2028\u2029é漢😀👩‍💻", "\r\n", "\ud83d", "\ude00", "\x1c"])
TEXTS = st.lists(CHARACTERS, max_size=30).map("".join)


def naive_lines(text):
    """Line contents and ends by a scan of single characters."""
    lines, start, at = [], 0, 0
    while at < len(text):
        width = 2 if text[at : at + 2] == "\r\n" else 1 if text[at] in "\r\n" else 0
        if width:
            lines.append((start, at))
            start = at = at + width
        else:
            at += 1
    return [*lines, (start, len(text))]


def naive_units(character, encoding):
    if encoding == "utf-32":
        return 1
    if encoding == "utf-16":
        return 2 if ord(character) > 0xFFFF else 1
    return len(character.encode("utf-8", "surrogatepass"))


def naive_offset(text, line, units, encoding):
    lines = naive_lines(text)
    if line >= len(lines):
        return len(text)
    at, end = lines[line]
    while at < end and units >= naive_units(text[at], encoding):
        units -= naive_units(text[at], encoding)
        at += 1
    return at


def pair_up(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def change(start, end, text):
    return types.TextDocumentContentChangePartial(
        range=types.Range(types.Position(*start), types.Position(*end)), text=text
    )


POSITIONS = st.tuples(st.integers(0, 8), st.integers(0, 12))
EDITS = st.lists(st.tuples(POSITIONS, POSITIONS, TEXTS), max_size=6)


@settings(max_examples=300, deadline=None)
@given(TEXTS, EDITS, st.sampled_from(ENCODINGS))
def test_any_sequence_of_edits_gives_what_editing_one_string_gives(text, edits, encoding):
    document = Document("file:///a", "python", 0, TextLines(text))
    model = pair_up(text)
    for version, (start, end, new) in enumerate(edits, 1):
        low, high = sorted(naive_offset(model, *point, encoding) for point in (start, end))
        (edit,) = document.apply([change(start, end, new)], version, encoding)
        assert pair_up(edit.removed) == pair_up(model[low:high])
        model = pair_up(model[:low] + new + model[high:])
        assert document.lines.text() == model
        assert len(document.lines) == len(model)
        assert document.lines.end.line + 1 == len(naive_lines(model))
    assert [document.lines.line(i) for i in range(document.lines.end.line + 1)] == [
        model[start:end] for start, end in naive_lines(model)
    ]


@settings(max_examples=200, deadline=None)
@given(TEXTS, POSITIONS, st.sampled_from(ENCODINGS))
def test_a_position_splits_the_text_where_the_naive_model_does_and_converts_back(text, position, encoding):
    lines = TextLines(text)
    place = lines.place_at(*position, encoding)
    offset = naive_offset(lines.text(), *position, encoding)
    assert lines.before(place) == lines.text()[:offset]
    assert lines.after(place) == lines.text()[offset:]
    assert lines.place_at(place.line, lines.units_at(place, encoding), encoding) == place


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS)
def test_a_whole_new_text_reports_only_the_part_that_differs(old, new):
    document = Document("file:///a", "python", 0, TextLines(old))
    before = TextLines(old)
    (edit,) = document.apply([types.TextDocumentContentChangeWholeDocument(new)], 1, PositionEncoding.UTF16)
    assert document.lines.text() == pair_up(new)
    head = before.before(edit.start) if edit.start <= before.end else before.text()
    rest = before.text()[len(head) :]
    if "\r\n" not in old + new:  # a place never stands between the two
        assert rest.startswith(edit.removed)
        assert head + edit.inserted + rest[len(edit.removed) :] == pair_up(new)


@given(TEXTS, st.integers(0, 40))
def test_advance_counts_code_points_over_line_ends(text, count):
    lines = TextLines(text)
    assert len(lines.before(lines.advance(Place(0, 0), count))) <= min(count, len(lines))
    if not set("\r") & set(text):
        assert len(lines.before(lines.advance(Place(0, 0), count))) == min(count, len(lines))


def test_form_feed_and_unicode_separators_are_not_line_ends():
    assert TextLines("a\fb\vc\x85d\u2028e\u2029f\x1cg").end.line == 0


def test_a_carriage_return_and_a_newline_that_meet_become_one_line_end():
    lines = TextLines("a\rX\nb")
    lines.replace(Place(1, 0), Place(1, 1), "")
    assert lines.end.line == 1
    assert lines.text() == "a\r\nb"


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_the_place_behind_an_emoji_in_each_encoding(encoding, units):
    place = TextLines("x😀y").place_at(0, units, PositionEncoding(encoding))
    assert place == Place(0, 2)


def test_the_window_before_the_cursor_stays_the_same_while_a_few_lines_are_typed():
    lines = TextLines("0123456789\n" * 1000)
    starts = set()
    for _ in range(20):
        before = lines.before(lines.end, limit=1000)
        assert len(before) <= 1000
        starts.add(len(lines) - len(before))
        lines.replace(lines.end, lines.end, "typed\n")
    assert len(starts) <= 2


def test_an_edit_of_a_big_file_reads_its_own_line_only(monkeypatch):
    lines = TextLines("some line of code here\n" * 200_000)
    split, read = text_lines.split_lines, []
    monkeypatch.setattr(text_lines, "split_lines", lambda text: read.append(len(text)) or split(text))
    for column in range(100):
        lines.replace(Place(100_000, column), Place(100_000, column), "x")
    assert len(read) == 100
    assert max(read) <= 123


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("plain é 😀\f\n", None),
        ("MZ\0\0", EmptyReason.BINARY),
        ("\x01\x02\x03abc", EmptyReason.BINARY),
        ("caf\udce9 = 1", EmptyReason.NOT_UTF8),
        ("x" * 101, EmptyReason.TOO_LARGE),
    ],
)
def test_an_unfit_text_has_its_reason(text, reason):
    assert Document("file:///a", "python", 0, TextLines(text)).unfit(limit_bytes=100) is reason


def test_a_text_becomes_fit_again_when_the_cause_is_removed():
    document = Document("file:///a", "python", 0, TextLines("a\0b"))
    assert document.unfit(100) is EmptyReason.BINARY
    document.apply([change((0, 1), (0, 2), "")], 1, PositionEncoding.UTF16)
    assert document.unfit(100) is None


def cell(uri, language, text):
    kind = types.NotebookCellKind.Code
    return types.NotebookCell(kind, uri), types.TextDocumentItem(uri, language, 1, text)


def test_cells_of_a_notebook_are_documents_that_know_the_code_above():
    store = DocumentStore()
    cells, items = zip(
        cell("c1", "python", "import os\n"), cell("c2", "markdown", "# T"), cell("c3", "python", "os."), strict=True
    )
    notebook = types.NotebookDocument("n", "jupyter", 1, cells)
    store.open_notebook(types.DidOpenNotebookDocumentParams(notebook, items))
    assert store.text_above(store.get("c3")) == "import os\n\n"
    new_cell, new_item = cell("c0", "python", "import re")
    array = types.NotebookCellArrayChange(start=0, delete_count=1, cells=[new_cell])
    store.change_cells(
        "n",
        types.NotebookDocumentCellChangeStructure(
            array, did_open=[new_item], did_close=[types.TextDocumentIdentifier("c1")]
        ),
    )
    assert store.text_above(store.get("c3")) == "import re\n\n"
    assert store.get("c1") is None
