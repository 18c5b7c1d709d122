"""The workspaces and documents of benchmarks.memory, from the open data: forty documents in ten languages."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import read_records

WORKSPACES = 3
DOCUMENTS = 40
_SETS = ("open_cursor_positions.jsonl.gz", "open_safim_api.jsonl.gz")
_ENDINGS = {
    "python": ".py", "typescript": ".ts", "javascript": ".js", "rust": ".rs", "c": ".c", "cpp": ".cpp", "java": ".java",
    "go": ".go", "csharp": ".cs", "json": ".json",
}  # fmt: skip
_BACKGROUND = 50  # files of a workspace that nobody opens


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a workspace that is opened.

    Attributes:
        cursor: Line and character of the record's cursor.
    """

    path: Path
    language: str
    text: str
    cursor: tuple[int, int]

    def parts(self) -> tuple[str, str]:
        """Return the text before and after the cursor."""
        lines = self.text.split("\n")
        line, character = self.cursor
        before = "\n".join([*lines[:line], lines[line][:character]])
        return before, self.text[len(before) :]


def make_workspaces(folder: Path, data: str | None) -> tuple[list[Path], list[Document]]:
    """Write the files, and return the workspaces and the documents to open, language by language in turn."""
    workspaces = [folder / f"workspace{number}" for number in range(WORKSPACES)]
    for workspace in workspaces:
        workspace.mkdir()
    for number, record in enumerate(read_records("open_release_replay.jsonl.gz", data)[: WORKSPACES * _BACKGROUND]):
        name = f"other{number}{Path(record['path']).suffix}"
        (workspaces[number % WORKSPACES] / name).write_text(record["before"], encoding="utf-8")
    by_language: dict[str, list[dict[str, Any]]] = {language: [] for language in _ENDINGS}
    for record in itertools.chain.from_iterable(read_records(name, data) for name in _SETS):
        by_language[record["language"]].append(record)
    by_language["json"] = [_as_json(record) for record in by_language["python"]]
    in_turn = itertools.chain.from_iterable(zip(*by_language.values(), strict=False))
    documents = []
    for number, record in enumerate(itertools.islice(in_turn, DOCUMENTS)):
        path = workspaces[number % WORKSPACES] / f"document{number}{_ENDINGS[record['language']]}"
        text = record["prefix"] + record["suffix"]
        path.write_text(text, encoding="utf-8")
        above = record["prefix"].split("\n")
        documents.append(Document(path, record["language"], text, (len(above) - 1, len(above[-1]))))
    return workspaces, documents


def _as_json(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose document is the lines of another one as JSON, with the cursor in the middle."""
    lines = json.dumps((record["prefix"] + record["suffix"]).split("\n"), indent=1).split("\n")
    half = len(lines) // 2
    return {"language": "json", "prefix": "\n".join(lines[:half]) + "\n", "suffix": "\n".join(lines[half:])}
