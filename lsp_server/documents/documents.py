"""The documents that the editor has open: text, version, notebook, and whether their text is fit for completion."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types

from completion.edits import Diagnostic, changed_span
from lsp_server.documents.edit_log import MAX_NOTED, EditLog
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Edit, Place, TextLines, join_surrogates
from lsp_server.empty_reason import EmptyReason
from lsp_server.wire.document_uri import path_of

_BINARY_SHARE = 0.01  # of control characters
_BEGUN_NAME = re.compile(r"(?<![\w$])[\w$]*\Z")
_HEAD_CHARACTERS = 8_000  # among which a document's imports are


@dataclass(frozen=True, slots=True)
class NamesAt:
    """The names that the editor's other servers know at a place: where one begins that follows `head` in its line."""

    line: int
    head: str
    names: tuple[str, ...]


@dataclass(slots=True)
class Document:
    """One open document, or one cell of a notebook.

    Attributes:
        uri: In the server's spelling (`lsp_server/wire/document_uri.py`).
        language: LSP language identifier.
        version: The client's number of the last change.
        encoding: Unit of the columns in the client's positions.
        notebook: URI of the notebook that the cell belongs to; "" for a plain document.
        edits: What was changed since the document was opened.
        diagnostics: What other tools report about the text as it is now.
        names: The names that other servers know where the user typed last.
    """

    uri: str
    language: str
    version: int
    lines: TextLines
    encoding: PositionEncoding = PositionEncoding.UTF16
    notebook: str = ""
    edits: EditLog = field(default_factory=EditLog)
    diagnostics: tuple[Diagnostic, ...] = ()
    names: NamesAt | None = None

    @property
    def home(self) -> str:
        """The URI of the file that it belongs to: of a notebook's cell, the notebook."""
        return self.notebook or self.uri

    @property
    def line_end(self) -> str:
        r"""The line end of the first line, which new lines get: \r\n or \n."""
        return "\r\n" if self.lines.first_after(Place(0, len(self.lines.line(0))), 2) == "\r\n" else "\n"

    def apply(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int) -> list[Edit]:
        """Apply changes to the text, and return what each of them replaced."""
        self.version, self.diagnostics = version, ()
        dropped = len(changes) - MAX_NOTED
        return [self._apply_one(change, is_noted=number >= dropped) for number, change in enumerate(changes)]

    def place(self, position: types.Position) -> Place:
        """Return the position in the text of an LSP position. One outside the text moves to the nearest inside."""
        return self.lines.place_at(position.line, position.character, self.encoding)

    def position(self, place: Place) -> types.Position:
        """Return the LSP position of a position in the text."""
        return types.Position(place.line, self.lines.units_at(place, self.encoding))

    def names_at(self, place: Place) -> tuple[str, ...]:
        """Return the names that other servers know at a position; those of the name that is begun there."""
        is_here = self.names is not None and (place.line, self._head(place)) == (self.names.line, self.names.head)
        return self.names.names if self.names is not None and is_here else ()

    def _head(self, place: Place) -> str:
        """Return the line up to the name before a position."""
        return _BEGUN_NAME.sub("", self.lines.line(place.line)[: place.column])

    def unfit(self, limit_bytes: int) -> EmptyReason | None:
        """Return why this text gets no completion: too large, binary, or not UTF-8; None if it is fit."""
        if len(self.lines) > limit_bytes:
            return EmptyReason.TOO_LARGE
        counts = self.lines.counts
        if counts.nul or counts.control > len(self.lines) * _BINARY_SHARE:
            return EmptyReason.BINARY
        return EmptyReason.NOT_UTF8 if counts.surrogate else None

    def _apply_one(self, change: types.TextDocumentContentChangeEvent, *, is_noted: bool) -> Edit:
        last_line = self.lines.end.line
        if isinstance(change, types.TextDocumentContentChangePartial):
            end = self.place(change.range.end)
            start = self.place(change.range.start)  # after the end: the edit looks up this position next
            edit = self.lines.replace(start, end, change.text)
        else:
            edit = self._replace_all(change.text)
        added = self.lines.end.line - last_line
        if is_noted:
            self.edits.note(edit, self.lines, added)
        else:
            self.edits.drop(edit, added)
        return edit

    def _replace_all(self, text: str) -> Edit:
        """Replace the whole text, and return the smallest edit that does the same."""
        text = join_surrogates(text)
        old = self.lines.text()
        start, old_end, new_end = changed_span(old, text)
        place = self.lines.advance(Place(0, 0), start)
        self.lines = TextLines(text)
        return Edit(place, old[start:old_end], text[start:new_end])


class DocumentStore:
    """All open documents, those that were opened or changed last at the end, and the order of cells in notebooks."""

    def __init__(self) -> None:
        self.encoding = PositionEncoding.UTF16
        self._documents: dict[str, Document] = {}
        self._in_folder: Counter[Path] = Counter()  # open files
        self._notebooks: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def get(self, uri: str) -> Document | None:
        """Return the open document of a URI, or None."""
        return self._documents.get(uri)

    def get_by_path(self, path: Path) -> Document | None:
        """Return the open document of a file, or None."""
        return self._documents.get(path.as_uri())

    def has_open_in(self, folder: Path) -> bool:
        """Return whether a file directly in a folder is open."""
        return self._in_folder[folder] > 0

    def open(self, item: types.TextDocumentItem, notebook: str = "") -> Document:
        """Add an opened document, and return it. It replaces an open document of the same URI."""
        language = item.language_id if isinstance(item.language_id, str) else ""  # clients send anything
        document = Document(item.uri, language, item.version, TextLines(item.text), self.encoding, notebook)
        self.close(item.uri)
        self._documents[item.uri] = document
        if path := path_of(item.uri):
            self._in_folder[path.parent] += 1
        return document

    def close(self, uri: str) -> Document | None:
        """Remove a document, and return it; None if it was not open."""
        document = self._documents.pop(uri, None)
        if document is not None and (path := path_of(uri)):
            self._in_folder[path.parent] -= 1
            if not self._in_folder[path.parent]:
                del self._in_folder[path.parent]
        return document

    def change(self, params: types.DidChangeTextDocumentParams) -> tuple[Document, list[Edit]] | None:
        """Apply a client's changes; return the document and its edits, None if it is not open."""
        document = self._documents.pop(params.text_document.uri, None)
        if document is None:
            return None
        self._documents[document.uri] = document
        return document, document.apply(params.content_changes, params.text_document.version)

    def words(self) -> set[str]:
        """Return the words at the start of the open documents, the names that they import among them."""
        heads = (document.lines.after(Place(0, 0), _HEAD_CHARACTERS) for document in self)
        return {word for head in heads for word in re.findall(r"\w+", head)}

    def report(self, uri: str, version: int, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Keep what other tools report about a document; nothing if it has another version."""
        if document := self._at(uri, version):
            document.diagnostics = diagnostics

    def note_names(self, uri: str, version: int, position: types.Position, names: tuple[str, ...]) -> None:
        """Keep the names that other servers know at a position of a document; nothing if it has another version."""
        if document := self._at(uri, version):
            place = document.place(position)
            document.names = NamesAt(place.line, document._head(place), names)  # noqa: SLF001 - its own store

    def _at(self, uri: str, version: int) -> Document | None:
        document = self._documents.get(uri)
        return document if document is not None and document.version == version else None

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> list[Document]:
        """Add the cells of an opened notebook as documents, and return them in order."""
        notebook = params.notebook_document
        self._notebooks[notebook.uri] = [cell.document for cell in notebook.cells]
        return [self.open(item, notebook.uri) for item in params.cell_text_documents]

    def close_notebook(self, params: types.DidCloseNotebookDocumentParams) -> list[Document]:
        """Remove a notebook, and return the documents of its cells."""
        self._notebooks.pop(params.notebook_document.uri, None)
        return self._close_all(params.cell_text_documents)

    def change_cells(self, notebook_uri: str, structure: types.NotebookDocumentCellChangeStructure) -> list[Document]:
        """Add, remove and move cells of a notebook, and return the documents of the removed ones."""
        order = self._notebooks.setdefault(notebook_uri, [])
        array = structure.array
        order[array.start : array.start + array.delete_count] = [cell.document for cell in array.cells or ()]
        closed = self._close_all(structure.did_close or ())
        for opened in structure.did_open or ():
            self.open(opened, notebook_uri)
        return closed

    def _close_all(self, items: Sequence[types.TextDocumentIdentifier]) -> list[Document]:
        closed = [self.close(item.uri) for item in items]
        return [document for document in closed if document is not None]

    def text_above(self, document: Document, limit: int) -> str:
        """Return the text of the cells above a notebook's cell that are in its language; "" for a plain document.

        Cells that end more than `limit` code points above are left out.
        """
        order = self._notebooks.get(document.notebook, [])
        if document.uri not in order:
            return ""
        texts: list[str] = []
        for uri in reversed(order[: order.index(document.uri)]):
            cell = self._documents.get(uri)
            if cell is not None and cell.language == document.language and limit > 0:
                texts.append(cell.lines.before(cell.lines.end, limit).rstrip("\r\n") + "\n\n")
                limit -= len(texts[-1])
        return "".join(reversed(texts))
