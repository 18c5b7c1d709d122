"""Runs the rules of a checkout over recorded answers in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.quality.rows import BLOCK_TOKENS
from benchmarks.quality.tasks import Task
from benchmarks.replay_answers.answers import Answer
from completion.request import Mode

OWN = Path(__file__).resolve().parents[2]
"""Checkout that this file is part of."""
_PROGRAM = Path(__file__).with_name("checkout.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules make of the answer at one place.

    Attributes:
        text: The suggestion; "" if there is none.
        replaces: Number of characters after the cursor that it replaces.
        shown: What is shown before the text ends.
        dropped: Why there is none; "" otherwise.
        stop: Why decoding ended.
        ran_out: Whether the rules would read further than the record goes.
        acting: Names of the rules that did anything.
        error: What the rules raised; "" if nothing.
        without: Outcomes without each rule that did anything, and without the grammar's verdict, if that was asked.
    """

    text: str = ""
    replaces: int = 0
    shown: str = ""
    dropped: str = ""
    stop: str = ""
    ran_out: bool = False
    acting: tuple[str, ...] = ()
    error: str = ""
    without: Mapping[str, Outcome] = field(default_factory=dict)


Asked = Sequence[tuple[Task, Answer]]
"""Tasks with their recorded answers."""


def replayed(
    asked: Asked, checkout: Path, off: str = "", *, invoked: bool = True, each_off: bool = False
) -> dict[str, Outcome]:
    """Return what the rules of a checkout make of each answer, by task.

    Args:
        asked: Tasks with their recorded answers.
        checkout: Folder of the code.
        off: Names of rules that are switched off, comma-separated.
        invoked: Whether the requests are manual.
        each_off: Whether each rule is switched off in turn, too.

    Raises:
        SystemExit: The checkout's code cannot be run so. Its message has been printed.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as places:
        for task, answer in asked:
            places.write(json.dumps(_place(task, answer, invoked=invoked)) + "\n")
        places.seek(0)
        lines = _run([str(checkout), "--off", off, *["--each"] * each_off], checkout, places.fileno())
        return {line.pop("id"): _outcome(line) for line in lines}


def _outcome(line: dict[str, Any]) -> Outcome:
    without = {name: _outcome(each) for name, each in line.get("without", {}).items()}
    return Outcome(**line | {"acting": tuple(line["acting"]), "without": without})


def _run(arguments: Sequence[str], checkout: Path, places: int) -> Iterator[dict[str, Any]]:
    """Yield the objects that the program writes."""
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, str(_PROGRAM), *arguments]
    with subprocess.Popen(command, stdin=places, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        yield from map(json.loads, child.stdout)
    if child.returncode:
        raise SystemExit(f"The rules of {arguments[0]} ended with {child.returncode}. Its message stands above.")


def _place(task: Task, answer: Answer, *, invoked: bool) -> dict[str, Any]:
    """Return what the program reads of a place. The mode is that of the recorded request."""
    return {
        "id": task.id,
        "prefix": task.prefix,
        "suffix": task.document_suffix,
        "language": task.language,
        "path": task.path,
        "history": task.history,
        "deleted_here": task.deleted_here,
        "mode": Mode.AUTO if task.mode is Mode.LINE else task.mode,
        "max_tokens": BLOCK_TOKENS,
        "invoked": invoked,
        "run": answer.run,
        "tokens": [(token.id, token.data, token.log_probability) for token in answer.tokens],
        "end": answer.end,
        "branches": [
            {"tokens": [(each.id, each.data, each.log_probability) for each in branch.tokens], "total": branch.total}
            for branch in answer.branches
        ],
    }
