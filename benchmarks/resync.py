"""`python -m benchmarks.resync`: texts that say again what stands after the cursor, and the documents they give.

It needs no model: each text is made of the true middle of an open task. A text is right if the document is the original
one, apart from blanks. Run it with another checkout's code in PYTHONPATH to compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.quality.sets import FILES, MID_LINE, half_of, open_tasks
from benchmarks.quality.tasks import Task
from completion.ending.context import cursor_context
from completion.ending.decision import finished, stop
from completion.ending.rule import DropReason
from completion.request import CompletionRequest, Mode, Suggestion

_MOST_OF_A_SET = 400
_CLOSERS = re.compile(r"[)\]}]")
_LAST_WORD = re.compile(r"\w+(?=\W*\Z)")


def texts(task: Task) -> Iterator[tuple[str, str, str]]:
    """Yield kinds of texts for a task, each with the middle that is right."""
    middle, after = task.reference, task.document_suffix
    rest, *below = after.split("\n")
    lines = [line for line in below if line.strip()]
    yield "middle", middle, middle
    for count in range(1, min(3, len(lines)) + 1):
        yield f"runs on {count}", "\n".join([middle + rest, *below[: below.index(lines[count - 1]) + 1]]), middle
    if rest.strip():
        yield "rest again", middle + rest, middle
        yield "rest with other blanks", middle + _other_blanks(rest), middle
        yield "rest changed", middle + _changed(rest), middle
    if lines:
        yield "line with other blanks", f"{middle}{rest}\n{_other_blanks(lines[0])}", middle
        yield "line changed", f"{middle}{rest}\n{_changed(lines[0])}", middle
    if closer := _CLOSERS.search(after):
        yield "closer too many", middle + closer.group(), middle
    first, line_break, further = middle.partition("\n")
    if line_break and further.strip() and lines:
        yield "line in the middle", f"{first}\n{lines[0]}\n{further}", first


def _other_blanks(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return indent + re.sub(r"(?<=\S) (?=\S)|(?<=\w)(?=[-+*/=<>(])", "  ", line.strip())


def _changed(line: str) -> str:
    return _LAST_WORD.sub(lambda found: found.group()[::-1] + "2", line)


def outcome(task: Task, text: str) -> str:
    """Return the document that a generated text gives."""
    mode = Mode.BLOCK if "\n" in task.reference.strip("\n") else task.mode
    request = CompletionRequest(task.prefix, task.document_suffix, task.language, mode=mode, invoked=True)
    context = cursor_context(request)
    end = stop(text, context)
    result = finished(Suggestion(text[: end.length] if end else text), context)
    if isinstance(result, DropReason):
        return task.prefix + task.document_suffix
    return task.prefix + result.text + task.document_suffix[result.replace_after :]


def is_right(task: Task, text: str, middle: str) -> bool:
    """Return whether the document is the one with `middle`, but for blanks."""
    expected = task.prefix + middle + task.document_suffix
    return "".join(outcome(task, text).split()) == "".join(expected.split())


def chosen(tasks: list[Task]) -> list[Task]:
    """Return the tasks of each set, at most so many, by their names' hashes."""
    taken: Counter[str] = Counter()
    found = []
    for task in sorted(tasks, key=lambda task: hashlib.sha256(task.id.encode()).digest()):
        taken[task.dataset] += 1
        if taken[task.dataset] <= _MOST_OF_A_SET:
            found.append(task)
    return found


def main() -> None:
    """Print a table by kind and by language, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resync", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the open data")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only tasks of one half of the packages")
    parser.add_argument("--out", help="file for each outcome, a JSON object a line")
    given = parser.parse_args()
    tasks = [task for task in open_tasks([*FILES, MID_LINE], given.data_dir) if given.half in (None, half_of(task.id))]
    if not tasks:
        raise SystemExit("The data has no task. Name another folder with --data-dir.")
    tried, right, lines = Counter[str](), Counter[str](), []
    for task in chosen(tasks):
        for kind, text, middle in texts(task):
            is_good = is_right(task, text, middle)
            lines.append(json.dumps({"id": task.id, "kind": kind, "right": is_good}) + "\n")
            for name in (kind, task.language):
                tried[name] += 1
                right[name] += is_good
    if given.out:
        Path(given.out).write_text("".join(lines), encoding="utf-8")
    table = Table("kind or language", "texts", "right")
    for name, count in tried.items():
        table.add_row(name, str(count), f"{100 * right[name] / count:.1f} %")
    Console(width=110).print(table)
    total = sum(json.loads(line)["right"] for line in lines)
    print(json.dumps({"texts": len(lines), "right": total, "by": dict(right)}))


if __name__ == "__main__":
    main()
