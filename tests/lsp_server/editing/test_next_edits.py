"""An edit is offered only for the version and the text that it names, whatever happens to the document."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from completion.edits import NextEdit, NextEditRequest, NextEdits
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import TextLines
from lsp_server.editing.next_edits import NextEditor, OfferedEdit
from tests.completion.host.paced_engine import likely_by_rules

TEXT = "import zstd\n\nx = zstd.open(1)\ny = zstd.read(x)  # 𝄞 zstd\n\ndef f():\n    return zstd\n"

edits = st.lists(
    st.tuples(
        st.integers(0, 9), st.integers(0, 12), st.integers(0, 12), st.sampled_from(["", "zstandard", "zstd", "\n", "𝄞"])
    ),
    min_size=1,
    max_size=12,
)


def change(document: Document, line: int, start: int, end: int, text: str) -> None:
    low, high = sorted((start, end))
    span = types.Range(types.Position(line, low), types.Position(line, high))
    document.apply([types.TextDocumentContentChangePartial(span, text)], document.version + 1)


def text_at(document: Document, span: types.Range) -> str:
    return document.lines.between(document.place(span.start), document.place(span.end))


@settings(max_examples=60)
@given(before=edits, meanwhile=edits, line_end=st.sampled_from(["\n", "\r\n"]), changes=st.booleans())
def test_offered_edits_replace_exactly_the_text_that_they_name(before, meanwhile, line_end, changes):
    document = Document("file:///a.py", "python", 1, TextLines(TEXT.replace("\n", line_end)))

    async def find(request: NextEditRequest) -> NextEdits:
        if changes:
            for each in meanwhile:
                change(document, *each)
        return likely_by_rules(request)

    change(document, 0, 7, 11, "zstandard")
    for each in before:
        change(document, *each)
        offered: list[OfferedEdit] = asyncio.run(NextEditor(find, lambda _document: "a.py").edits(document))
        assert not (changes and offered)
        for edit in offered:
            assert edit.version == document.version
            assert text_at(document, edit.range) == edit.old


def test_an_accepted_edit_leaves_the_other_lines_as_they_are():
    document = Document("file:///a.py", "python", 1, TextLines(TEXT))

    async def find(request: NextEditRequest) -> NextEdits:
        return likely_by_rules(request)

    change(document, 0, 7, 11, "zstandard")
    editor = NextEditor(find, lambda _document: "a.py")
    for _ in range(3):
        first = asyncio.run(editor.edits(document))[0]
        document.apply([types.TextDocumentContentChangePartial(first.range, first.new)], document.version + 1)
    assert document.lines.text() == TEXT.replace("zstd", "zstandard")


def test_the_engine_is_told_what_was_refused_in_this_document_so_that_it_finds_the_next_one():
    document, asked = Document("file:///a.py", "python", 1, TextLines(TEXT)), []

    async def find(request: NextEditRequest) -> NextEdits:
        asked.append(request)
        return likely_by_rules(request)

    change(document, 0, 7, 11, "zstandard")
    editor = NextEditor(find, lambda _document: "a.py")
    first = asyncio.run(editor.edits(document))[0]
    editor.refuse(first.id)
    assert all(edit.old != first.old for edit in asyncio.run(editor.edits(document)))
    other = Document("file:///b.py", "python", 1, TextLines(TEXT))
    change(other, 0, 7, 11, "zstandard")
    asyncio.run(editor.edits(other))
    assert [len(request.refused) for request in asked] == [0, 1, 0]
    assert "zstd" not in asked[1].refused[0]


def test_an_applied_edit_that_is_undone_comes_back_on_request_only():
    document = Document("file:///a.py", "python", 1, TextLines(TEXT))

    async def find(request: NextEditRequest) -> NextEdits:
        found = likely_by_rules(request).edits
        return NextEdits(tuple(edit for edit in found if edit.fingerprint not in request.refused))

    def proposed(*, invoked: bool = False) -> list[OfferedEdit]:
        return asyncio.run(editor.edits(document, invoked=invoked))

    def replace(span: types.Range, text: str) -> None:
        document.apply([types.TextDocumentContentChangePartial(span, text)], document.version + 1)

    change(document, 0, 7, 11, "zstandard")
    editor = NextEditor(find, lambda _document: "a.py")
    first, *others = proposed()
    replace(first.range, first.new)
    editor.accept(first.id)
    left = [edit.old for edit in others]
    assert [edit.old for edit in proposed()] == left
    change(document, first.range.start.line, 0, len(first.new), first.old)
    assert [edit.old for edit in proposed()] == left
    change(document, 1, 0, 0, "\n")
    assert [edit.old for edit in proposed()] == left, "also after its line has moved"
    again, *_ = proposed(invoked=True)
    assert again.old == first.old
    replace(again.range, again.new)
    editor.accept(again.id)
    assert [edit.old for edit in proposed()] == left


def test_an_applied_insertion_does_not_count_as_undone_and_is_proposed_at_other_places():
    document = Document("file:///a.py", "python", 1, TextLines("run(a, b)\n\nrun(a, b)\n\nrun(a, b)\n"))

    async def find(request: NextEditRequest) -> NextEdits:
        lines = [n for n, line in enumerate(request.lines) if line == "run(a, b)" and request.lines[n + 1] == ""]
        edits = (NextEdit(line, ("run(a, b)",), ("run(a, b)", "log(a, b)"), 1.0) for line in lines)
        return NextEdits(tuple(edit for edit in edits if edit.fingerprint not in request.refused))

    change(document, 0, 9, 9, "\nlog(a, b)")
    editor = NextEditor(find, lambda _document: "a.py")
    for line in (3, 6):
        first, *_ = asyncio.run(editor.edits(document, invoked=False))
        assert first.range.start.line == line
        document.apply([types.TextDocumentContentChangePartial(first.range, first.new)], document.version + 1)
        editor.accept(first.id)


def test_the_engine_is_not_asked_if_a_key_follows_at_once():
    document, asked = Document("file:///a.py", "python", 1, TextLines(TEXT)), []

    async def find(request: NextEditRequest) -> NextEdits:
        asked.append(request)
        return likely_by_rules(request)

    async def type_on():
        finding = asyncio.ensure_future(NextEditor(find, lambda _document: "a.py").edits(document, invoked=False))
        await asyncio.sleep(0)
        change(document, 2, 0, 0, "y")
        return await finding

    change(document, 0, 7, 11, "zstandard")
    assert asyncio.run(type_on()) == []
    assert asked == []


@pytest.mark.parametrize("new", [(), ("z",)])
def test_an_edit_names_the_line_ends_that_it_replaces_in_a_text_that_mixes_them(new):
    document = Document("file:///a.py", "python", 1, TextLines("import zstd\r\nx\ny\rz\r\nw\n"))

    async def find(_request: NextEditRequest) -> NextEdits:
        return NextEdits((NextEdit(1, ("x", "y", "z"), new, 1.0),))

    change(document, 0, 7, 11, "zstandard")
    (edit,) = asyncio.run(NextEditor(find, lambda _document: "a.py").edits(document))
    assert edit.old == text_at(document, edit.range) == ("x\ny\rz" if new else "x\ny\rz\r\n")
