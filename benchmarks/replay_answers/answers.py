"""What a model wrote at a place before any rule ended it, as it is kept in a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from benchmarks.data import read_kept
from benchmarks.quality.sets import RECORDED, made_apart, open_tasks
from benchmarks.quality.tasks import Task, distinct
from completion.host.process.address import normal_model


@dataclass(frozen=True, slots=True)
class Token:
    """A token that the model wrote.

    Attributes:
        id: Number of the token in the model's vocabulary.
        data: Its bytes, each as the character with this number.
        log_probability: Log-probability of the token.
    """

    id: int
    data: str
    log_probability: float


@dataclass(frozen=True, slots=True)
class Branch:
    """Another line that the search finished, because the model finds it likelier than the best one before it."""

    tokens: tuple[Token, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote at one place.

    Attributes:
        id: Name of the task.
        model: The model.
        run: Text before the cursor that the tokens repeat.
        tokens: Tokens of greedy decoding under the grammar; they go on after the end that the rules chose.
        end: Why no token follows: "stop_token", "grammar" or "enough".
        stopped: Number of the tokens up to the end that the rules of the recording checkout chose.
        total: Log-probability of that text and of its end.
        branches: Lines that the search finished, in order.
        seconds: Time of the whole answer.
    """

    id: str
    model: str
    run: str
    tokens: tuple[Token, ...]
    end: str
    stopped: int
    total: float
    branches: tuple[Branch, ...]
    seconds: float


def write(answer: Answer, out: TextIO) -> None:
    """Add an answer to a file, as one line."""
    fields = asdict(answer)
    fields["tokens"] = _rows(answer.tokens)
    fields["branches"] = [{"tokens": _rows(branch.tokens), "total": branch.total} for branch in answer.branches]
    print(json.dumps(fields), file=out, flush=True)


def read(path: Path, model: str) -> dict[str, Answer]:
    """Return the answers of a file by task, none if there is no such file.

    Raises:
        SystemExit: They are of another model.
    """
    return {line["id"]: _answer(line) for line in read_kept(path, model)}


def in_turns(tasks: Sequence[Task], limit: int) -> list[Task]:
    """Return at most `limit` tasks of each data set, 0 for all: sets and their languages take turns.

    Whoever ends a recording early has about as much of each.
    """
    counts: dict[tuple[str, ...], int] = {}

    def turn(*group: str) -> int:
        counts[group] = counts.get(group, -1) + 1
        return counts[group]

    by_language = sorted(tasks, key=lambda task: turn(task.dataset, task.language))
    turns = [(turn(task.dataset), task) for task in by_language]
    return [task for number, task in sorted(turns, key=lambda each: each[0]) if not limit or number < limit]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose recorded answers."""
    parser.add_argument("records", metavar="RECORD", type=Path, nargs="+", help="files of recorded answers")
    parser.add_argument("--sets", help="data sets, comma-separated; all whose files are there if it is not given")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model of the records (default: %(default)s)")
    parser.add_argument("--automatic", action="store_true", help="requests are automatic, not manual")


def asked_of(given: argparse.Namespace) -> list[tuple[Task, Answer]]:
    """Return the tasks of the chosen data sets that have an answer.

    Raises:
        SystemExit: There are none.
    """
    answers = {id_: each for path in given.records for id_, each in read(path, normal_model(given.model)).items()}
    sets = given.sets.split(",") if given.sets else [*RECORDED, *made_apart(given.data_dir)]
    found = [(task, answers[task.id]) for task in distinct(open_tasks(sets, given.data_dir)) if task.id in answers]
    if not found:
        raise SystemExit("The records have no answer at a place of these sets. Give other records or --sets.")
    return found


def _rows(tokens: Sequence[Token]) -> list[tuple[int, str, float]]:
    return [(token.id, token.data, round(token.log_probability, 4)) for token in tokens]


def _answer(line: dict[str, Any]) -> Answer:
    branches = (Branch(_tokens(branch["tokens"]), branch["total"]) for branch in line["branches"])
    return Answer(**line | {"tokens": _tokens(line["tokens"]), "branches": tuple(branches)})


def _tokens(rows: Sequence[tuple[int, str, float]]) -> tuple[Token, ...]:
    return tuple(Token(*row) for row in rows)
