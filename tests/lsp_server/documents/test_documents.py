"""Documents behave like a simple model that keeps one string and counts code units character by character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.documents import text_lines
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place, TextLines
from lsp_server.empty_reason import EmptyReason

ENCODINGS = list(PositionEncoding)
CHARACTERS = st.sampled_from(
    [*"ab \t\n\r\f\v\x85\u2028\u2029é漢😀👩‍💻", "\r\n", "\ud83d", "\ude00", "\udc80", "\udce9", "\x1c"]
)
TEXTS = st.lists(CHARACTERS, max_size=30).map("".join)


def naive_lines(text):
    """Return start and end of each line, found by a scan of single characters."""
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
    if "\udc80" <= character <= "\udcff":  # one byte that is not UTF-8
        return 1
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


@settings(max_examples=300)
@given(TEXTS, EDITS, st.sampled_from(ENCODINGS))
def test_any_sequence_of_edits_has_the_same_result_as_on_one_string(text, edits, encoding):
    document = Document("file:///a", "python", 0, TextLines(text), encoding)
    model = pair_up(text)
    for version, (start, end, new) in enumerate(edits, 1):
        low, high = sorted(naive_offset(model, *point, encoding) for point in (start, end))
        (edit,) = document.apply([change(start, end, new)], version)
        assert pair_up(edit.removed) == pair_up(model[low:high])
        model = pair_up(model[:low] + new + model[high:])
        assert document.lines.text() == model
        assert len(document.lines) == len(model)
        assert document.lines.end.line + 1 == len(naive_lines(model))
        assert document.lines.offset(edit.start) == len(document.lines.between(Place(0, 0), edit.start))
    assert document.lines.counts == TextLines(model).counts
    assert document.lines.without_ends() == tuple(document.lines.line(i) for i in range(document.lines.end.line + 1))
    assert [document.lines.line(i) for i in range(document.lines.end.line + 1)] == [
        model[start:end] for start, end in naive_lines(model)
    ]


@settings(max_examples=200)
@given(TEXTS, POSITIONS, st.sampled_from(ENCODINGS))
def test_a_position_has_the_offset_of_the_simple_model_and_converts_back(text, position, encoding):
    lines = TextLines(text)
    place = lines.place_at(*position, encoding)
    offset = naive_offset(lines.text(), *position, encoding)
    assert lines.offset(place) == offset
    assert lines.last_before(place, 5) == lines.text()[max(0, offset - 5) : offset]
    assert lines.first_after(place, 5) == lines.text()[offset : offset + 5]
    assert lines.place_at(place.line, lines.units_at(place, encoding), encoding) == place


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_replacing_the_whole_text_reports_only_the_part_that_differs(old, new):
    document = Document("file:///a", "python", 0, TextLines(old))
    before = TextLines(old)
    (edit,) = document.apply([types.TextDocumentContentChangeWholeDocument(new)], 1)
    assert document.lines.text() == pair_up(new)
    head = before.between(Place(0, 0), edit.start) if edit.start <= before.end else before.text()
    rest = before.text()[len(head) :]
    if "\r\n" not in old + new:  # a position is never between \r and \n
        assert rest.startswith(edit.removed)
        assert head + edit.inserted + rest[len(edit.removed) :] == pair_up(new)


@given(TEXTS, st.integers(0, 40))
def test_advance_counts_code_points_over_line_ends(text, count):
    lines = TextLines(text)
    offset = lines.offset(lines.advance(Place(0, 0), count))
    assert offset <= min(count, len(lines))
    if not set("\r") & set(text):
        assert offset == min(count, len(lines))


def test_form_feed_and_unicode_separators_are_not_line_ends():
    assert TextLines("a\fb\vc\x85d\u2028e\u2029f\x1cg").end.line == 0


def test_a_carriage_return_and_a_newline_that_become_neighbours_are_one_line_end():
    lines = TextLines("a\rX\nb")
    lines.replace(Place(1, 0), Place(1, 1), "")
    assert lines.end.line == 1
    assert lines.text() == "a\r\nb"


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_the_position_after_an_emoji_in_each_encoding(encoding, units):
    place = TextLines("x😀y").place_at(0, units, PositionEncoding(encoding))
    assert place == Place(0, 2)


@pytest.mark.parametrize(("first_byte", "left"), [(5, "é =  + 1  # ü\n"), (0, " + 1  # ü\n")])
def test_a_client_that_counts_bytes_deletes_a_byte_that_is_not_utf8_and_nothing_else(first_byte, left):
    """`wire/protocol.py` reads such a byte as a lone surrogate."""
    document = Document("file:///a", "python", 0, TextLines("é = \udc80 + 1  # ü\n"), PositionEncoding.UTF8)
    document.apply([change((0, first_byte), (0, 6), "")], 1)
    assert document.lines.text() == left
    assert document.unfit(1000) is None


def test_the_window_before_the_cursor_stays_the_same_while_a_few_lines_are_typed():
    lines = TextLines("0123456789\n" * 1000)
    starts = set()
    for _ in range(20):
        before = lines.before(lines.end, 1000)
        assert len(before) <= 1000
        starts.add(len(lines) - len(before))
        lines.replace(lines.end, lines.end, "typed\n")
    assert len(starts) <= 2


@given(TEXTS, st.integers(0, 40), st.integers(1, 12))
def test_a_window_before_or_after_the_cursor_ends_at_the_cursor_and_keeps_its_limit(text, count, limit):
    lines = TextLines(text)
    place = lines.advance(Place(0, 0), count)
    whole_before, whole_after = lines.between(Place(0, 0), place), lines.between(place, lines.end)
    before, after = lines.before(place, limit), lines.after(place, limit)
    assert max(len(before), len(after)) <= limit
    assert whole_before.endswith(before)
    assert whole_after.startswith(after)
    assert before == whole_before or len(whole_before) > limit
    assert after == whole_after or len(whole_after) > limit


def test_a_window_consists_of_whole_lines_if_they_are_shorter_than_its_limit():
    lines = TextLines("0123456789\n" * 100)
    assert lines.before(Place(50, 4), 100).startswith("0123456789\n")
    assert lines.after(Place(50, 4), 100).endswith("0123456789\n")


@settings(max_examples=200)
@given(TEXTS)
def test_lines_are_split_where_a_scan_of_single_characters_splits_them(text):
    lines = text_lines.split_lines(text)
    assert "".join(lines) == text
    assert [line.rstrip("\r\n") for line in lines] == [text[start:end] for start, end in naive_lines(text)]


def characters_read(monkeypatch, lines, line):
    """Return how many characters 100 typed keys, 100 deletions and the conversions of their positions read."""
    read = []
    for name in ("split_lines", "join_surrogates", "units_from_column", "column_from_units"):
        real = getattr(text_lines, name)
        monkeypatch.setattr(
            text_lines, name, lambda text, *rest, real=real: read.append(len(text)) or real(text, *rest)
        )
    document = Document("file:///a", "python", 0, lines)
    column = 2 * lines.line_length(line) // 3
    start = lines.units_at(Place(line, column), PositionEncoding.UTF16)
    read.clear()  # a jump to another position reads the line once
    for key in range(100):
        at = (line, start + key)
        document.apply([change(at, at, "x")], key)
        place = document.place(types.Position(line, start + key + 1))
        assert document.position(place).character == start + key + 1
    for key in reversed(range(100)):
        document.apply([change((line, start + key), (line, start + key + 1), "")], key)
    return sum(read)


@pytest.mark.parametrize(
    ("text", "line"),
    [("some line of code here\n" * 50_000, 25_000), ("x" * 1_000_000, 0), ("é漢😀, " * 200_000, 0)],
    ids=["many lines", "one line", "one line beyond ASCII"],
)
def test_a_keystroke_in_a_big_file_reads_only_the_text_near_it(monkeypatch, text, line):
    assert characters_read(monkeypatch, TextLines(text), line) < 10_000


def test_a_long_last_line_without_a_line_end_is_split_in_linear_time():
    """A pattern that backtracks takes hours here."""
    assert text_lines.split_lines("x" * 2_000_000) == ["x" * 2_000_000]
    assert TextLines("a\n" + "y" * 2_000_000).end == Place(1, 2_000_000)


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
def test_a_text_that_is_unfit_for_completion_has_a_reason(text, reason):
    assert Document("file:///a", "python", 0, TextLines(text)).unfit(limit_bytes=100) is reason


def test_a_text_becomes_fit_again_when_the_cause_is_removed():
    document = Document("file:///a", "python", 0, TextLines("a\0b"))
    assert document.unfit(100) is EmptyReason.BINARY
    document.apply([change((0, 1), (0, 2), "")], 1)
    assert document.unfit(100) is None


def cell(uri, language, text):
    kind = types.NotebookCellKind.Code
    return types.NotebookCell(kind, uri), types.TextDocumentItem(uri, language, 1, text)


def test_a_notebook_cell_is_a_document_with_the_code_of_the_cells_above():
    store = DocumentStore()
    cells, items = zip(
        cell("c1", "python", "import os\n"), cell("c2", "markdown", "# T"), cell("c3", "python", "os."), strict=True
    )
    notebook = types.NotebookDocument("n", "jupyter", 1, cells)
    store.open_notebook(types.DidOpenNotebookDocumentParams(notebook, items))
    assert store.text_above(store.get("c3"), 1000) == "import os\n\n"
    new_cell, new_item = cell("c0", "python", "import re")
    array = types.NotebookCellArrayChange(start=0, delete_count=1, cells=[new_cell])
    store.change_cells(
        "n",
        types.NotebookDocumentCellChangeStructure(
            array, did_open=[new_item], did_close=[types.TextDocumentIdentifier("c1")]
        ),
    )
    assert store.text_above(store.get("c3"), 1000) == "import re\n\n"
    assert store.text_above(store.get("c3"), 0) == ""
    assert store.get("c1") is None
