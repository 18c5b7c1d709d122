"""Tasks of the quality benchmark: records of open data, as an editor would send them."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lsprotocol import types

from benchmarks.data import read_file
from completion.request import Mode, Suggestion, WorkspaceFile
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import Place, TextLines

HUMANEVAL_SETS = {"SingleLine": "single_line", "MultiLine": "multi_line", "RandomSpan": "random_span"}
"""Data sets of HumanEval-Infilling by their sources."""

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


def file_tasks(path: Path, mode: Mode) -> Iterator[Task]:
    """Yield the tasks of a file in the same schema, `.jsonl` or `.jsonl.gz`; see `read_file`."""
    for record in read_file(path):
        yield from tasks_of(record, path.name.partition(".")[0], mode)


def tasks_of(record: dict[str, Any], name: str, mode: Mode | None = None) -> list[Task]:
    """Return the tasks of one record: one, or one for each hunk of a release replay."""
    if "before" in record and "after" in record and "prefix" not in record:
        return list(_replay(record))
    dataset = next((own for key, own in HUMANEVAL_SETS.items() if key in record.get("source", "")), name)
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
            text = after[line].rstrip()  # a cursor before blanks at the end has nothing to complete
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
    change = types.Range(*(document.position(place) for place in positions))
    document.apply([types.TextDocumentContentChangePartial(change, inserted)], 0)
    return document.lines.advance(Place(0, 0), offset + len(inserted))


def distinct(tasks: Iterable[Task]) -> list[Task]:
    """Return different tasks with different names. Those that had the same one have a hash of their texts in it."""
    found = list(dict.fromkeys(tasks))
    counts = Counter(task.id for task in found)

    def renamed(task: Task) -> Task:
        content = repr((task.dataset, task.path, task.prefix, task.suffix, task.reference))
        return replace(task, id=f"{task.id}#{hashlib.sha256(content.encode()).hexdigest()[:12]}")

    return [renamed(task) if counts[task.id] > 1 else task for task in found]


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
