"""Tasks of the quality benchmark: records of open data, as an editor would send them."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from lsprotocol import types

from benchmarks.data import read_records
from completion.request import Mode, Suggestion, WorkspaceFile
from lsp_server.documents.documents import Document
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place, TextLines

FILES = {
    "humaneval": "open_humaneval_infilling_even.jsonl.gz",
    "santacoder": "open_santacoder_fim_even.jsonl.gz",
    "safim": "open_safim_api.jsonl.gz",
    "repo_context": "open_repo_context.jsonl.gz",
    "release_replay": "open_release_replay.jsonl.gz",
    "cursor_positions": "open_cursor_positions.jsonl.gz",
}
_HUMANEVAL_SETS = {"SingleLine": "single_line", "MultiLine": "multi_line", "RandomSpan": "random_span"}
MID_LINE = "mid_line"
"""Data set of holes within the lines of `single_line` and `cursor_positions`, with code after the cursor."""
OPENED = "opened"
"""Data set of cursors right after the punctuation that follows a blank in a line of `cursor_positions` and
`release_replay`: an opening quote or bracket, a sigil, an operator. The rest of the line is the hole."""
SETS = (*FILES, *_HUMANEVAL_SETS.values(), MID_LINE, OPENED)
"""Names of all data sets."""

_AT_WORDS = 0.7  # share of mid-line holes that begin and end at word boundaries, where most cursors are
_SHORTEST_LINE = 8  # minimum characters of a line with a hole
_WORD_EDGE = re.compile(r"\b|(?<=\W)(?=\W)")
_OPENING = re.compile(r"(?<= )[^\w\s]+(?=\w)")
_NEAR_CHARACTERS = 4_000  # greatest distance of such a cursor from the record's own
_MODES = {"multi_line": Mode.BLOCK, "random_span": Mode.BLOCK, "safim": Mode.AUTO}


@dataclass(frozen=True, slots=True)
class Task:
    """One task with its reference.

    Attributes:
        whole_lines: Whether the hole consists of whole lines. The cursor of an editor is on an empty line there, so a
            line break follows it in the document and is not part of the completion.
        tests: Python code to run after the completed program, "" where there is none.
        files: Other files of the workspace.
        history: The language server's log of the edits before the task; "" where the data has no edits.
        deleted_here: Whether its last hunk is what was deleted at the cursor.
    """

    id: str
    dataset: str
    language: str
    path: str
    prefix: str
    suffix: str
    reference: str
    mode: Mode = Mode.LINE
    whole_lines: bool = False
    tests: str = ""
    files: tuple[WorkspaceFile, ...] = ()
    history: str = ""
    deleted_here: bool = False

    @property
    def document_suffix(self) -> str:
        """Return the text after the cursor in an editor."""
        return "\n" + self.suffix if self.whole_lines else self.suffix

    def inserted(self, suggestion: Suggestion) -> str:
        """Return the new text between prefix and suffix: the suggestion without the text that its range replaces."""
        return suggestion.text.removesuffix(self.document_suffix[: suggestion.replace_after])

    def program(self, completion: str) -> str | None:
        """Return the program with its tests, None where there are no tests."""
        if self.language != "python" or not self.tests:
            return None
        line_break = "\n" if self.whole_lines else ""
        return f"{self.prefix}{completion}{line_break}{self.suffix}\n\n{self.tests}\n"


def open_tasks(names: list[str], data_dir: str | None) -> Iterator[Task]:
    """Yield the tasks of the data sets with these names.

    Raises:
        SystemExit: A name is not in SETS.
    """
    parts = _HUMANEVAL_SETS.values()
    for name in names:
        if name not in SETS:
            raise SystemExit(f"There is no data set {name!r}. Choose from: {', '.join(SETS)}.")
        if name == MID_LINE:
            yield from filter(None, map(mid_line, open_tasks(["single_line", "cursor_positions"], data_dir)))
            continue
        if name == OPENED:
            yield from filter(None, map(opened, open_tasks(["cursor_positions", "release_replay"], data_dir)))
            continue
        for record in read_records(FILES["humaneval" if name in parts else name], data_dir):
            yield from (task for task in tasks_of(record, name) if name not in parts or task.dataset == name)


def file_tasks(path: Path, mode: Mode) -> Iterator[Task]:
    """Yield the tasks of a file in the same schema, `.jsonl` or `.jsonl.gz`."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    for line in text.split("\n"):
        if line.strip():
            yield from tasks_of(json.loads(line), path.name.partition(".")[0], mode)


def tasks_of(record: dict[str, Any], name: str, mode: Mode | None = None) -> list[Task]:
    """Return the tasks of one record: one, or one for each hunk of a release replay."""
    if "before" in record and "after" in record and "prefix" not in record:
        return list(_replay(record))
    dataset = next((own for key, own in _HUMANEVAL_SETS.items() if key in record.get("source", "")), name)
    reference = record["reference"]
    whole_lines = reference.endswith("\n") and record["prefix"][-1:] in ("", "\n") and dataset != "random_span"
    return [
        Task(
            id=record["id"],
            dataset=dataset,
            language=record["language"],
            path=record.get("path", ""),
            prefix=record["prefix"],
            suffix=record["suffix"],
            reference=reference[:-1] if whole_lines else reference,
            mode=mode or _MODES.get(dataset, Mode.LINE),
            whole_lines=whole_lines,
            tests=record.get("tests", ""),
            files=tuple(WorkspaceFile(file["path"], file["text"]) for file in record.get("context", ())),
        )
    ]


def _replay(record: dict[str, Any]) -> Iterator[Task]:
    """Yield one task for each hunk, with the cursor in its first added line.

    Hunks above the cursor are applied, hunks below it are not: an editor deletes the old lines of each hunk and
    types the new ones. A hash of the record and the hunk chooses the column of the cursor from the text of the line.
    """
    before, after = record["before"].splitlines(keepends=True), record["after"].splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    document = Document("", record["language"], 0, TextLines(record["before"]))
    for number, (kind, old_start, old_end, start, end) in enumerate(matcher.get_opcodes()):
        if kind == "equal":
            continue
        gone, typed = "".join(before[old_start:old_end]), "".join(after[start:end])
        offset = len("".join(after[:start]))
        if kind == "insert":
            apply_edit(document, max(0, offset - 1), "", "\n")
        else:
            apply_edit(document, offset, gone.removesuffix("\n") if typed else gone, "")
        line = next((i for i in range(start, end) if after[i].strip()), None)
        begun = ""
        if line is not None:
            text = after[line].rstrip("\r\n")
            indent = len(text) - len(text.lstrip())
            drawn = int(hashlib.sha256(f"{record['id']}:{number}".encode()).hexdigest(), 16)
            column = indent + drawn % (len(text) - indent)
            begun = "".join(after[start:line]) + text[:column]
            cursor = apply_edit(document, offset, "", begun)
            yield Task(
                id=f"{record['id']}:{number}",
                dataset="release_replay",
                language=record["language"],
                path=record["path"],
                prefix="".join(after[:line]) + text[:column],
                suffix="\n" + "".join(before[old_end:]),
                reference=text[column:],
                history=document.edits.history(cursor.line, document.lines),
                deleted_here=document.edits.has_deleted(cursor.line),
            )
        apply_edit(document, offset + len(begun), "", typed[len(begun) :].removesuffix("\n"))


def apply_edit(document: Document, offset: int, removed: str, inserted: str) -> Place:
    """Replace text at an offset by a message of an editor, and return the position after the new text."""
    positions = (document.lines.advance(Place(0, 0), at) for at in (offset, offset + len(removed)))
    change = types.Range(*(document.position(place, PositionEncoding.UTF32) for place in positions))
    document.apply([types.TextDocumentContentChangePartial(change, inserted)], 0, PositionEncoding.UTF32)
    return document.lines.advance(Place(0, 0), offset + len(inserted))


def mid_line(task: Task) -> Task | None:
    """Return a task with a hole within the line of the cursor, None where the line is too short.

    The name of the task is the seed of the position of the hole, so each run has the same holes.
    """
    start = task.prefix.rfind("\n") + 1
    line, line_break, below = (task.prefix[start:] + task.reference + task.document_suffix).partition("\n")
    line = line.rstrip("\r")
    indent = len(line) - len(line.lstrip())
    if len(line.strip()) < _SHORTEST_LINE:
        return None
    draw = Random(task.id)
    columns = list(range(indent, len(line.rstrip())))
    if draw.random() < _AT_WORDS:
        columns = [column for column in columns if _WORD_EDGE.match(line, column)]
    begin, end = sorted(draw.sample(columns, 2)) if len(columns) > 1 else (0, 0)
    if not line[begin:end].strip():
        return None
    return replace(
        task,
        id=f"{MID_LINE}/{task.id}",
        dataset=MID_LINE,
        prefix=task.prefix[:start] + line[:begin],
        suffix=line[end:] + line_break + below,
        reference=line[begin:end],
        mode=Mode.AUTO,
        whole_lines=False,
    )


def opened(task: Task) -> Task | None:
    """Return a task with the cursor after punctuation that follows a blank, None where no such place is near.

    The name of the task is the seed of the place. A line comment has none.
    """
    text = task.prefix + task.reference + task.document_suffix
    at = len(task.prefix)
    near = list(_OPENING.finditer(text, max(0, at - _NEAR_CHARACTERS), at + _NEAR_CHARACTERS))
    places = [
        found.end()
        for found in near
        if not text[text.rfind("\n", 0, found.start()) + 1 :].lstrip().startswith(("#", "/", "*"))
    ]
    if not places:
        return None
    place = Random(task.id).choice(places)
    reference, line_break, below = text[place:].partition("\n")
    return replace(
        task,
        id=f"{OPENED}/{task.id}",
        dataset=OPENED,
        prefix=text[:place],
        suffix=line_break + below,
        reference=reference,
        mode=Mode.LINE,
        whole_lines=False,
        history="",
        deleted_here=False,
    )


def half_of(id_: str) -> int:
    """Return 0 or 1 by a hash of a task's package, by its name. What is chosen on one half is reported on the other."""
    package = id_.removeprefix(f"{MID_LINE}/").removeprefix(f"{OPENED}/").partition("==")[0]
    return hashlib.sha256(package.encode()).digest()[0] % 2


def sample(tasks: list[Task], limit: int) -> list[Task]:
    """Return at most `limit` tasks of each data set and language, chosen by a hash of their names."""
    ordered = sorted(tasks, key=lambda task: hashlib.sha256(task.id.encode()).digest())
    counts: dict[tuple[str, str], int] = {}
    chosen = []
    for task in ordered:
        key = (task.dataset, task.language)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= limit:
            chosen.append(task)
    return chosen
