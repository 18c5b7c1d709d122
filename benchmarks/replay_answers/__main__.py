"""`python -m benchmarks.replay_answers RECORD… --before CHECKOUT`: what two checkouts' rules make of the same answers.

RECORD is written by `python -m benchmarks.record_answers`. Without `--before`, the rules of this checkout alone run.
Each resulting document is compared with the true one, and those that differ between the checkouts are printed. What
needs the model again is not replayed: an alternative in the place of a dropped suggestion, another text of the search.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.quality.tasks import Task
from benchmarks.replay_answers.answers import add_options, asked_of
from benchmarks.replay_answers.judging import Grade, Right, document, excerpt, grade, share, true_excerpt
from benchmarks.replay_answers.running import OWN, Asked, Outcome, replayed

VERDICTS = ("worse", "better", "other", "same")
"""What a document has become; "other" is another document that is worth the same."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcomes of two checkouts at one place."""

    task: Task
    before: Outcome
    after: Outcome
    grade_before: Grade
    grade_after: Grade

    @property
    def verdict(self) -> str:
        """One of VERDICTS."""
        if self.grade_after.worth != self.grade_before.worth:
            return "better" if self.grade_after.worth > self.grade_before.worth else "worse"
        same = document(self.task, self.before) == document(self.task, self.after)
        return "same" if same and self.before.error == self.after.error else "other"


def compared(asked: Asked, before: dict[str, Outcome], after: dict[str, Outcome]) -> list[Compared]:
    """Return the outcomes of two checkouts, place by place."""
    pairs = [(task, before[task.id], after[task.id]) for task, _ in asked]
    return [Compared(task, old, new, grade(task, old), grade(task, new)) for task, old, new in pairs]


def print_table(found: Sequence[Compared], console: Console) -> None:
    """Print a row for each language of each set."""
    table = Table("set", "language", "places", *VERDICTS, "first lines before", "after", "unsound before", "after")
    for group in sorted({(each.task.dataset, each.task.language) for each in found}):
        table.add_row(*group, *_cells([each for each in found if (each.task.dataset, each.task.language) == group]))
    table.add_section()
    for language in sorted({each.task.language for each in found}):
        table.add_row("all", language, *_cells([each for each in found if each.task.language == language]))
    table.add_row("all", "all", *_cells(found))
    console.print(table)


def _cells(part: Sequence[Compared]) -> Iterator[str]:
    counts = Counter(each.verdict for each in part)
    yield str(len(part))
    yield from (str(counts[verdict] or "") for verdict in VERDICTS)
    for figures in zip(*(tuple(_figures(grades).values()) for grades in _sides(part)), strict=True):
        yield from ("" if figure is None else f"{100 * figure:.1f}" for figure in figures)


def _sides(part: Sequence[Compared]) -> tuple[list[Grade], list[Grade]]:
    return [each.grade_before for each in part], [each.grade_after for each in part]


def _figures(grades: Sequence[Grade]) -> dict[str, float | None]:
    return {
        "first_lines": share(each.right >= Right.FIRST_LINE for each in grades),
        "unsound": share(not each.sound for each in grades if each.sound is not None),
    }


def report(found: Sequence[Compared]) -> dict[str, Any]:
    """Return the figures of the last line."""
    sides = zip(("before", "after"), _sides(found), strict=True)
    counts = Counter(each.verdict for each in found)
    by_language = Counter((each.task.language, each.verdict) for each in found)
    return {
        "places": len(found),
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "languages": {
            language: {verdict: by_language[language, verdict] for verdict in VERDICTS}
            for language in sorted({each.task.language for each in found})
        },
        **{f"{side}_{name}": value for side, grades in sides for name, value in _rounded(_figures(grades)).items()},
        "failed_before": sum(bool(each.before.error) for each in found),
        "failed_after": sum(bool(each.after.error) for each in found),
        "taken_back_before": sum(_takes_back(each.before) for each in found),
        "taken_back_after": sum(_takes_back(each.after) for each in found),
        "beyond_record": sum(each.after.ran_out for each in found),
    }


def _rounded(figures: dict[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 4) for name, value in figures.items()}


def _takes_back(outcome: Outcome) -> bool:
    """Return whether a suggestion does not begin with what was shown of it."""
    return not outcome.error and not outcome.text.startswith(outcome.shown)


def described(each: Compared) -> str:
    """Return a difference for a person to judge: both documents around the cursor, and the true one."""
    task, sides = each.task, (("before", each.before), ("after", each.after))
    parts = [f"=== {each.verdict}: {task.id} ({task.dataset}, {task.language}, {task.path})"]
    for name, outcome in sides:
        why = outcome.error or f"{outcome.dropped or 'suggested'}, ended by {outcome.stop}"
        parts.append(f"--- {name}: {why}; {', '.join(outcome.acting)}\n{excerpt(task, outcome)}")
    return "\n".join([*parts, f"--- true\n{true_excerpt(task)}", ""])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay_answers", description=__doc__)
    add_options(parser)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="folder of an older version")
    parser.add_argument("--after", type=Path, metavar="CHECKOUT", default=OWN, help="folder of the newer version")
    parser.add_argument("--show", type=int, default=10, help="maximum number of printed differences of each verdict")
    parser.add_argument("--out", type=Path, help="file of all differences")
    given = parser.parse_args()
    asked = asked_of(given)
    after = replayed(asked, given.after, invoked=not given.automatic)
    before = replayed(asked, given.before, invoked=not given.automatic) if given.before else after
    found = compared(asked, before, after)
    print_differences(found, given.show, given.out)
    print_table(found, Console(width=150))
    print(json.dumps(report(found)))


def print_differences(found: Sequence[Compared], most: int, out: Path | None) -> None:
    """Print some of the documents that differ, and write all of them to a file."""
    for verdict in VERDICTS[:-1]:
        for each in [each for each in found if each.verdict == verdict][:most]:
            print(described(each))
    if out is not None:
        differing = [each for verdict in VERDICTS[:-1] for each in found if each.verdict == verdict]
        out.write_text("\n".join(map(described, differing)), encoding="utf-8")


if __name__ == "__main__":
    main()
