"""`python -m benchmarks.filter_worth RECORD…`: the documents that each rule mends and harms.

Each rule of `completion.ending.decision.RULES` is switched off in turn, and the answers that
`python -m benchmarks.record_answers` has recorded are finished without it. `grammar` is the verdict on finished texts.
A document is mended if it is worth more with the rule than without it; see `benchmarks.replay_answers.judging`. A rule
without benefit mends no more documents than it harms. What `unsafe` prevents is seen in `benchmarks.safety` alone.
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

from benchmarks.replay_answers.__main__ import Compared, compared, described
from benchmarks.replay_answers.answers import add_options, asked_of
from benchmarks.replay_answers.checkout import GRAMMAR
from benchmarks.replay_answers.running import OWN, Asked, replayed
from completion.ending.decision import RULES

EFFECTS = {"better": "mended", "worse": "harmed", "other": "changed"}
"""What a rule does to a document that differs, by the verdict on it."""


@dataclass(frozen=True, slots=True)
class RuleWorth:
    """What one rule does.

    Attributes:
        name: Name of the rule.
        tried: Number of places where it reads the text as unfinished, or does anything.
        differing: Places where the document is another one without it.
    """

    name: str
    tried: int
    differing: Sequence[Compared]

    def count(self, effect: str, language: str = "") -> int:
        """Return the number of documents with an effect, of one language or of all."""
        of_language = (each for each in self.differing if language in ("", each.task.language))
        return sum(EFFECTS[each.verdict] == effect for each in of_language)

    @property
    def benefit(self) -> int:
        """Number of documents that it mends less those that it harms."""
        return self.count("mended") - self.count("harmed")

    @property
    def languages(self) -> list[str]:
        """Languages of the documents that it mends or harms."""
        return sorted({each.task.language for each in self.differing if each.verdict != "other"})


def worths(asked: Asked, *, invoked: bool) -> Iterator[RuleWorth]:
    """Yield the worth of each rule. Where a rule does nothing, nothing is finished again without it."""
    whole = replayed(asked, OWN, invoked=invoked, each_off=True)
    for name in (*(rule.__name__ for rule in RULES), GRAMMAR):
        tried = [each for each in asked if name in whole[each[0].id].without]
        found = compared(tried, {id_: each.without[name] for id_, each in whole.items() if name in each.without}, whole)
        yield RuleWorth(name, len(tried), [each for each in found if each.verdict != "same"])


def print_table(found: Sequence[RuleWorth], console: Console) -> None:
    """Print a row for each rule."""
    table = Table("rule", "tried", *EFFECTS.values(), "benefit", "mended − harmed by language")
    for rule in found:
        by_language = (f"{each} {rule.count('mended', each)}−{rule.count('harmed', each)}" for each in rule.languages)
        counts = (str(rule.count(effect)) for effect in EFFECTS.values())
        table.add_row(rule.name, str(rule.tried), *counts, str(rule.benefit), ", ".join(by_language))
    console.print(table)


def report(found: Sequence[RuleWorth]) -> dict[str, Any]:
    """Return the figures of the last line."""
    return {
        "rules": {
            rule.name: {
                "tried": rule.tried,
                **{effect: rule.count(effect) for effect in EFFECTS.values()},
                "languages": {
                    each: {"mended": rule.count("mended", each), "harmed": rule.count("harmed", each)}
                    for each in rule.languages
                },
            }
            for rule in found
        },
        "without_benefit": [rule.name for rule in found if rule.benefit <= 0],
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filter_worth", description=__doc__)
    add_options(parser)
    parser.add_argument("--out", type=Path, help="file of all documents that a rule changes, the harmed ones first")
    given = parser.parse_args()
    asked = asked_of(given)
    found = list(worths(asked, invoked=not given.automatic))
    print_table(found, Console(width=150))
    if given.out is not None:
        given.out.write_text("\n".join(_documents(found)), encoding="utf-8")
    for rule in found:
        if rule.benefit <= 0:
            print(f"{rule.name} mends {rule.count('mended')} documents and harms {rule.count('harmed')}: no benefit.")
    print(json.dumps({"places": len(asked), "languages": Counter(task.language for task, _ in asked)} | report(found)))


def _documents(found: Sequence[RuleWorth]) -> Iterator[str]:
    """Yield each document that a rule changes; "before" is without the rule."""
    for rule in found:
        for verdict in ("worse", "better", "other"):
            yield from (f"{rule.name}\n{described(each)}" for each in rule.differing if each.verdict == verdict)


if __name__ == "__main__":
    main()
