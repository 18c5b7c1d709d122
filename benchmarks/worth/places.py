"""The places of benchmarks.worth: the cursor before each key of a session, with what the engine suggests there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import read_kept
from benchmarks.quality.tasks import apply_edit
from benchmarks.typing.scripts import Script, key_unit
from completion.cancellation import CancelToken
from completion.engine import Engine
from completion.request import CompletionRequest, Suggestion
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place as Position
from lsp_server.documents.text_lines import TextLines

MAX_TOKENS = 128
"""Default of the language server."""
_BEFORE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Place:
    """The cursor before a key.

    Attributes:
        session: Name of the session.
        passage: Number of the passage in the session.
        index: Number of characters of the passage before the cursor.
        rest: What is left to type of the passage.
        before: End of the text before the cursor.
        after: Rest of the line of the cursor.
        offset: Number of characters of the document before the cursor.
        remaining: Number of characters after it.
        suggestion: The engine's first suggestion, None if it has none.
    """

    session: str
    passage: int
    index: int
    rest: str
    before: str
    after: str
    offset: int
    remaining: int
    suggestion: Suggestion | None

    @property
    def line_before(self) -> str:
        """The line of the cursor up to it."""
        return self.before.rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class Key:
    """The moment before a key of a session.

    Attributes:
        request: An editor's request there, with the edits so far as its server logs them.
        passage: Number of the passage in the session.
        index: Number of characters of the passage before the cursor.
        rest: What is left to type of the passage.
        unit: The text that the key writes.
    """

    request: CompletionRequest
    passage: int
    index: int
    rest: str
    unit: str


def opening(script: Script) -> CompletionRequest:
    """Return the request of an editor that opens a session's file where typing begins."""
    return _request(script, _document(script), script.passages[0].offset)


def keys(script: Script) -> Iterator[Key]:
    """Yield the keys of a session, while it is typed."""
    document, left = _document(script), script.length
    for number, passage in enumerate(script.passages):
        text = document.lines.text()
        apply_edit(document, passage.offset, text[passage.offset : passage.offset + passage.deleted], "")
        before, index = document.lines.text(), 0
        while index < len(passage.typed) and left > 0:
            unit = key_unit(passage, before, index)
            request = _request(script, document, passage.offset + index)
            yield Key(request, number, index, passage.typed[index:], unit)
            apply_edit(document, passage.offset + index, "", unit)
            index += len(unit)
            left -= len(unit)
        if left <= 0:
            return


def places(engine: Engine, script: Script) -> Iterator[Place]:
    """Type a session, and ask the engine before each key."""
    engine.prepare(opening(script), CancelToken())
    for key in keys(script):
        request = key.request
        *_, last = engine.complete(request, CancelToken())
        yield Place(
            session=script.id,
            passage=key.passage,
            index=key.index,
            rest=key.rest,
            before=request.prefix[-_BEFORE_CHARACTERS:],
            after=request.suffix.partition("\n")[0],
            offset=len(request.prefix),
            remaining=len(request.suffix),
            suggestion=last.suggestions[0] if last.suggestions else None,
        )


def _document(script: Script) -> Document:
    return Document(script.id, script.language, 0, TextLines(script.text))


def _request(script: Script, document: Document, cursor: int) -> CompletionRequest:
    text = document.lines.text()
    line = document.lines.advance(Position(0, 0), cursor).line
    return CompletionRequest(
        prefix=text[:cursor],
        suffix=text[cursor:],
        language=script.language,
        path=script.path,
        document=script.id,
        history=document.edits.history(line, document.lines),
        deleted_here=document.edits.has_deleted(line),
        max_tokens=MAX_TOKENS,
    )


def write_places(path: Path, model: str, script: Script, found: list[Place]) -> None:
    """Add the places of a session to a file, as one line."""
    line = {"model": model, "session": script.id, "length": script.length, "places": [asdict(place) for place in found]}
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def read_places(path: Path, model: str) -> dict[tuple[str, int], list[Place]]:
    """Return the places of a file by session and number of characters that are written; none if there is no such file.

    Raises:
        SystemExit: They are of another model.
    """
    return {
        (line["session"], line["length"]): [_place(fields) for fields in line["places"]]
        for line in read_kept(path, model)
    }


def _place(fields: dict[str, Any]) -> Place:
    known = fields["suggestion"]
    suggestion = None if known is None else Suggestion(**known | {"ends": tuple(map(tuple, known["ends"]))})
    return Place(**fields | {"suggestion": suggestion})
