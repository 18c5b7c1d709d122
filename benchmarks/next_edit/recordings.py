"""Recorded editing sessions with rated edits: what is offered where the user stopped, and how it is rated.

Each recording is a folder with two files:

- `recording.w.json` has `log`: documents (`documentEncountered`, `setContent`) and edits of them (`changed`). An edit
  is a list of `[start, end, text]`, offsets in UTF-16 units of the text before it.
- `scoredEdits.w.json` has `edits`, each with `edit`, null for silence, and `scoreCategory`: `nextEdit` and `valid` are
  good, `bad` is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from pathlib import Path, PurePosixPath

from benchmarks.next_edit.replay import State
from benchmarks.quality.tasks import apply_edit
from completion.language_ids import language_of
from completion.next_edit.rewrites import Candidate
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import TextLines

_CELL_LANGUAGE = re.compile(r"#%% vscode\.cell .*\[language=(\w+)\]")


class Rating(StrEnum):
    """What the raters say of what is offered."""

    GOOD = "good"  # the document becomes what a good edit makes of it
    PART = "part"  # each offered edit is one of the changes of the same good edit
    BAD = "bad"  # the document becomes what a bad edit makes of it
    UNRATED = "unrated"  # nobody has rated it
    SILENT = "silent"  # nothing is offered


@dataclass(frozen=True, slots=True)
class Recording:
    """Where the user stopped, and what the raters say.

    Attributes:
        state: The document that was edited last; nothing is known of what changes later.
        good: Texts that good edits make of it.
        bad: Texts that bad edits make of it.
    """

    state: State
    good: frozenset[str]
    bad: frozenset[str]

    def rating(self, offered: Sequence[Candidate]) -> Rating:
        """Return the rating of the offered edits, the first one first: it is shown alone, or with those that follow."""
        if not offered:
            return Rating.SILENT
        lines = self.state.lines
        made = {_applied(lines, offered[:count]) for count in range(1, len(offered) + 1)}
        if not made.isdisjoint(self.bad):
            return Rating.BAD
        if not made.isdisjoint(self.good):
            return Rating.GOOD
        wanted = {(each.line, each.old, each.new) for each in offered}
        is_part = any(wanted <= _line_changes(lines, text.split("\n")) for text in self.good)
        return Rating.PART if is_part else Rating.UNRATED


def recordings(folder: Path) -> list[Recording]:
    """Return the recordings of a folder.

    Raises:
        SystemExit: The folder has none, or one has no edit. The message says which.
    """
    found = [_recording(path.parent) for path in sorted(folder.glob("*/recording.w.json"))]
    if not found:
        raise SystemExit(f"{folder} has no recordings: folders with recording.w.json and scoredEdits.w.json.")
    return found


def summary(ratings: Sequence[Rating]) -> dict[str, int]:
    """Return the number of recordings, and of those with each rating."""
    return {"recordings": len(ratings), **{str(kind): ratings.count(kind) for kind in Rating}}


def _recording(folder: Path) -> Recording:
    log = json.loads((folder / "recording.w.json").read_text(encoding="utf-8"))["log"]
    rated = json.loads((folder / "scoredEdits.w.json").read_text(encoding="utf-8"))["edits"]
    paths: dict[int, str] = {}
    documents: dict[int, Document] = {}
    last = None
    for entry in log:
        if entry["kind"] == "documentEncountered":
            paths[entry["id"]] = str(PurePosixPath(entry["relativePath"].replace("\\", "/")))
        elif entry["kind"] == "setContent":
            documents[entry["id"]] = Document("", "", 0, TextLines(entry["content"]))
        elif entry["kind"] == "changed":
            last = entry["id"]
            _change(documents[last], entry["edit"])
    if last is None:
        raise SystemExit(f"{folder} has no edit before which something could be offered.")
    document, path = documents[last], paths[last]
    text = document.lines.text()
    cell = _CELL_LANGUAGE.match(text)
    lines = document.lines.without_ends()
    edits = document.edits.edits(document.lines)
    language = cell[1] if cell else language_of(path)
    state = State(folder.name, folder.name, language, path, 0, lines, edits, ())
    good, bad = (
        frozenset(
            _edited(text, each["edit"])
            for each in rated
            if each["edit"] and (each["scoreCategory"] != "bad") is is_good
        )
        for is_good in (True, False)
    )
    return Recording(state, good, bad - good)


def _change(document: Document, edit: Sequence[tuple[int, int, str]]) -> None:
    """Make an edit, as an editor with several cursors does."""
    for start, end, inserted in sorted(edit, key=lambda each: -each[0]):
        text = document.lines.text()
        at, to = _characters(text, start), _characters(text, end)
        apply_edit(document, at, text[at:to], inserted)


def _edited(text: str, edit: Sequence[tuple[int, int, str]]) -> str:
    """Return a text after an edit, with line ends as in `_applied`."""
    document = Document("", "", 0, TextLines(text))
    _change(document, edit)
    return "\n".join(document.lines.without_ends())


def _characters(text: str, units: int) -> int:
    """Return an offset in characters that was given in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass"))


def _applied(lines: Sequence[str], changes: Sequence[Candidate]) -> str:
    made = list(lines)
    for change in sorted(changes, key=lambda each: -each.line):
        made[change.line : change.end] = change.new
    return "\n".join(made)


def _line_changes(lines: Sequence[str], wanted: Sequence[str]) -> set[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Return the changes between two texts; one of as many lines as before is also one of each of them."""
    found: set[tuple[int, tuple[str, ...], tuple[str, ...]]] = set()
    for kind, start, end, new_start, new_end in SequenceMatcher(None, lines, wanted, autojunk=False).get_opcodes():
        if kind != "equal":
            old, new = tuple(lines[start:end]), tuple(wanted[new_start:new_end])
            found.add((start, old, new))
            if len(old) == len(new):
                found |= {(start + at, (old[at],), (new[at],)) for at in range(len(old))}
    return found
