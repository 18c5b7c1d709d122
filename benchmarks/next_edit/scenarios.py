"""Scenarios of next edits, as folders of text files.

Each scenario is a folder with three files:

- `buffer.EXTENSION` is the document as it is. The extension tells the language.
- `history.diff` has the user's edits, the oldest first, as hunks of a unified diff. The `+` side of a hunk's header is
  the place of its lines in the buffer. Lines of context are allowed, headers of files are ignored.
- `expected.EXTENSION` is the document after the next edits. If it equals the buffer, silence is right.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.next_edit.replay import Later, State
from completion.edits import LineEdit, changed_span
from completion.language_ids import language_of

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def scenarios(folder: Path) -> list[list[State]]:
    """Return each scenario as a replay of one state.

    Raises:
        SystemExit: The folder has no scenarios, or a scenario lacks a file. The message says which.
    """
    found = [[_scenario(history.parent)] for history in sorted(folder.glob("*/history.diff"))]
    if not found:
        raise SystemExit(f"{folder} has no scenarios: folders with buffer.*, history.diff and expected.*.")
    return found


def _scenario(folder: Path) -> State:
    buffers = sorted(folder.glob("buffer.*"))
    expected = buffers[0].with_stem("expected") if buffers else folder / "expected"
    if not expected.is_file():
        raise SystemExit(f"{folder} must have buffer.EXTENSION and expected.EXTENSION.")
    lines, wanted = (path.read_text(encoding="utf-8").splitlines() for path in (buffers[0], expected))
    edits = tuple(history_edits((folder / "history.diff").read_text(encoding="utf-8").splitlines()))
    for edit in edits:
        if tuple(lines[edit.line : edit.line + len(edit.new)]) != edit.new:
            raise SystemExit(f"{folder}: the buffer has other lines at {edit.line + 1} than history.diff.")
    later = tuple(_later(lines, wanted))
    return State(folder.name, folder.name, language_of(buffers[0]), buffers[0].name, 0, tuple(lines), edits, later)


def history_edits(diff: Sequence[str]) -> Iterator[LineEdit]:
    """Yield the hunks of a unified diff as edits, without their context.

    Args:
        diff: Lines of the diff.
    """
    heads = [number for number, line in enumerate(diff) if _HUNK.match(line)]
    for head, end in zip(heads, [*heads[1:], len(diff)], strict=True):
        body = diff[head + 1 : end]
        if [line[:4] for line in body[-2:]] == ["--- ", "+++ "] and end < len(diff):  # the next file's header
            body = body[:-2]
        old, new = ([line[1:] for line in body if line[:1] in marks] for marks in ("- ", "+ "))
        place = _HUNK.match(diff[head])
        assert place is not None
        first = int(place[1]) - (place[2] != "0")  # without lines, the header names the line before
        start, old_end, new_end = changed_span(old, new)
        yield LineEdit(first + start, tuple(old[start:old_end]), tuple(new[start:new_end]))


def _later(lines: list[str], wanted: list[str]) -> Iterator[Later]:
    matcher = difflib.SequenceMatcher(None, lines, wanted, autojunk=False)
    for number, (kind, start, end, new_start, new_end) in enumerate(matcher.get_opcodes()):
        if kind != "equal":
            yield Later(number, start, end, tuple(wanted[new_start:new_end]))
