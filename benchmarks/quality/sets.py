"""The data sets of the quality benchmark by name, and those whose places are derived from others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from random import Random

from benchmarks.data import data_dir, read_records
from benchmarks.quality.tasks import HUMANEVAL_SETS, Task, tasks_of
from completion.language_ids import language_of
from completion.request import Mode

FILES = {
    "humaneval": "open_humaneval_infilling_even.jsonl.gz",
    "santacoder": "open_santacoder_fim_even.jsonl.gz",
    "safim": "open_safim_api.jsonl.gz",
    "repo_context": "open_repo_context.jsonl.gz",
    "release_replay": "open_release_replay.jsonl.gz",
    "cursor_positions": "open_cursor_positions.jsonl.gz",
}
MID_LINE = "mid_line"
"""Data set of holes within the lines of `single_line` and `cursor_positions`, with code after the cursor."""
OPENED = "opened"
"""Data set of cursors right after the punctuation that follows a blank in a line of `cursor_positions` and
`release_replay`: an opening quote or bracket, a sigil, an operator. The rest of the line is the hole."""
NAMED = "named"
"""Data set of new files with the cursor where something gets the file's name, which nothing above tells."""
NEW_LANGUAGES = "new_languages"
"""Data set of cursors inside words in languages that the others lack; `scripts/make_language_data.py` makes it."""
SETS = (*FILES, *HUMANEVAL_SETS.values(), MID_LINE, OPENED, NAMED, NEW_LANGUAGES)
"""Names of all data sets."""

RECORDED = ("release_replay", "repo_context", "cursor_positions", "single_line", MID_LINE, "random_span")
"""Data sets that a change of the rules is judged by."""

_AT_WORDS = 0.7  # share of mid-line holes that begin and end at word boundaries, where most cursors are
_SHORTEST_LINE = 8  # minimum characters of a line with a hole
_WORD_EDGE = re.compile(r"\b|(?<=\W)(?=\W)")
_OPENING = re.compile(r"(?<= )[^\w\s]+(?=\w)")
_NEAR_CHARACTERS = 4_000  # greatest distance of such a cursor from the record's own
_DEFINES = re.compile(
    r"\b(?:class|struct|interface|function|def|enum|type|package|module|trait|func|fn|const|record)\s+(\w+)"
)
_TOP_CHARACTERS = 1_800  # of a file in which such a name is looked for
_SHORTEST_NAME = 4


def open_tasks(names: list[str], folder: str | None) -> Iterator[Task]:
    """Yield the tasks of the data sets with these names.

    Raises:
        SystemExit: A name is not in SETS.
    """
    parts = HUMANEVAL_SETS.values()
    for name in names:
        if name not in SETS:
            raise SystemExit(f"There is no data set {name!r}. Choose from: {', '.join(SETS)}.")
        if name == MID_LINE:
            yield from filter(None, map(mid_line, open_tasks(["single_line", "cursor_positions"], folder)))
            continue
        if name == OPENED:
            yield from filter(None, map(opened, open_tasks(["cursor_positions", "release_replay"], folder)))
            continue
        if name == NAMED:
            yield from named(open_tasks(["release_replay", "cursor_positions", "repo_context"], folder))
            continue
        for record in read_records(_file(name, folder), folder):
            yield from (task for task in tasks_of(record, name) if name not in parts or task.dataset == name)


def _file(name: str, folder: str | None) -> str:
    """Return the name of the file that has a data set.

    Raises:
        SystemExit: It is one that is made apart, and is missing. The message says how to make it.
    """
    if name != NEW_LANGUAGES:
        return FILES["humaneval" if name in HUMANEVAL_SETS.values() else name]
    path = data_dir(folder) / f"open_{name}.jsonl.gz"
    if not path.is_file():
        raise SystemExit(
            f"There is no file {path}. Make it with `python scripts/make_language_data.py MAKER FOLDER`, where MAKER is"
            " the program that made the other data, and name its folder with --data-dir."
        )
    return path.name


def made_apart(folder: str | None) -> list[str]:
    """Return the data sets that are made apart, if their files exist."""
    return [NEW_LANGUAGES] if (data_dir(folder) / f"open_{NEW_LANGUAGES}.jsonl.gz").is_file() else []


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


def named(tasks: Iterable[Task]) -> Iterator[Task]:
    """Yield the places at the top of these tasks' files where something gets the file's name; nothing is below them."""
    known: set[str] = set()
    for task in tasks:
        own = (task.path, task.language, task.prefix + task.reference + task.document_suffix)
        for path, language, text in (own, *((file.path, language_of(file.path), file.text) for file in task.files)):
            name = _folded(PurePosixPath(path).name.partition(".")[0])
            if path in known or len(name) < _SHORTEST_NAME:
                continue
            known.add(path)
            found = next((one for one in _DEFINES.finditer(text, 0, _TOP_CHARACTERS) if _folded(one[1]) == name), None)
            if found is not None and name not in _folded(text[: found.start(1)]):
                above, reference = text[: found.start(1)], text[found.start(1) :].partition("\n")[0].rstrip()
                id_ = f"{NAMED}/{task.id.partition(':')[0]}:{path}"
                yield Task(id_, NAMED, language, path, above, "\n", reference)


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def half_of(id_: str) -> int:
    """Return 0 or 1 by a hash of a task's package. What is chosen on one half is reported on the other.

    A task without a package has a half of its own: lines of one problem of HumanEval may be in both.
    """
    return hashlib.sha256(package_of(id_).encode()).digest()[0] % 2


def package_of(id_: str) -> str:
    """Return the package of a task; the name of a task without one."""
    return id_.removeprefix(f"{MID_LINE}/").removeprefix(f"{OPENED}/").removeprefix(f"{NAMED}/").partition("==")[0]
