"""How good a document is that an outcome leaves, beside the true one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from benchmarks.quality.scoring import first_line
from benchmarks.quality.tasks import Task
from benchmarks.replay_answers.running import Outcome
from completion.request import Suggestion
from completion.syntax.languages import LANGUAGES, true_language
from completion.syntax.trees import error_count, parse

CURSOR, OPENED, CLOSED = "‸", "⟦", "⟧"
"""Marks of the cursor and of the suggested text in a printed document."""


class Right(IntEnum):
    """How much of a suggestion is right."""

    NOTHING = 0
    START = 1  # the true document goes on with the suggested line
    FIRST_LINE = 2
    DOCUMENT = 3


@dataclass(frozen=True, slots=True)
class Grade:
    """How good a resulting document is.

    Attributes:
        right: How much of the suggestion is right.
        sound: Whether the document has no more syntax errors than the true one or the one without the suggestion; None
            in a language without a grammar.
    """

    right: Right
    sound: bool | None

    @property
    def worth(self) -> int:
        """The place of the document in an order: a broken one is the worst, whatever it begins with.

        No suggestion is as good as a wrong one that breaks nothing.
        """
        return 0 if self.sound is False else 1 + self.right


def document(task: Task, outcome: Outcome) -> str:
    """Return the document with the suggestion."""
    return task.prefix + outcome.text + task.document_suffix[outcome.replaces :]


def grade(task: Task, outcome: Outcome) -> Grade:
    """Return the worth of the document that an outcome leaves."""
    is_known = task.language in LANGUAGES
    if not outcome.text.strip():
        return Grade(Right.NOTHING, sound=True if is_known else None)
    inserted = task.inserted(Suggestion(outcome.text, outcome.replaces))
    line, expected = first_line(inserted), first_line(task.reference)
    right = Right.NOTHING
    if inserted.rstrip() == task.reference.rstrip():
        right = Right.DOCUMENT
    elif line == expected:
        right = Right.FIRST_LINE
    elif line and "\n" not in inserted.strip() and expected.startswith(line):
        right = Right.START
    return Grade(right, sound=right is Right.DOCUMENT or _is_sound(task, outcome) if is_known else None)


def _is_sound(task: Task, outcome: Outcome) -> bool:
    before, after = task.prefix, task.document_suffix
    most = max(_errors(task.language, before + task.reference + after), _errors(task.language, before + after))
    return _errors(task.language, document(task, outcome)) <= most


@lru_cache(maxsize=4096)
def _errors(language: str, text: str) -> int:
    tree = parse(text, true_language(language, text))
    return 0 if tree is None else error_count(tree)


def excerpt(task: Task, outcome: Outcome, below: int = 3) -> str:
    """Return the lines around the cursor with the suggestion between marks, and what it replaces struck out."""
    above = task.prefix[task.prefix[: task.prefix.rfind("\n")].rfind("\n") + 1 :]
    replaced, rest = task.document_suffix[: outcome.replaces], task.document_suffix[outcome.replaces :]
    middle = f"{OPENED}{outcome.text}{CLOSED}" if outcome.text else CURSOR
    return above + middle + (f"{{-{replaced}-}}" if replaced else "") + "\n".join(rest.split("\n")[: below + 1])


def true_excerpt(task: Task, below: int = 3) -> str:
    """Return the same lines of the true document."""
    return excerpt(task, Outcome(task.reference), below)


def share(part: Iterable[bool]) -> float | None:
    """Return the share of what is true, None of nothing."""
    values = list(part)
    return sum(values) / len(values) if values else None
