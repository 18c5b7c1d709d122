"""`python -m benchmarks.next_edit`: how often a next edit is right, and how often silence is.

Release replays are edited change by change. After each change the rules propose, the model judges and the gate decides.
The gate is trained on one half of the packages, its threshold is chosen there, and both are tested on the other half,
in both directions. `--train FILE` trains a gate on all packages and writes its weights; the one that ships is from the
open data alone, without the packages of `packages.txt` (`--more-data`).
`--shipped` tests it, which is fair on others; `--data FOLDER` tests
it on scenarios (`benchmarks/next_edit/scenarios.py` says how they are written), `--recordings FOLDER` on recorded
sessions with rated edits (`benchmarks/next_edit/recordings.py`): what is shown where each ends is rated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import read_kept, read_records
from benchmarks.next_edit import elsewhere
from benchmarks.next_edit.choosing import (
    Key,
    Way,
    by_both,
    by_rules,
    chosen_thresholds,
    constant,
    crossed,
    errors_by_kind,
    key,
    ranking,
    ratio,
    report,
    resampled,
    rows_by_state,
    shipped,
    shown,
)
from benchmarks.next_edit.elsewhere import pairs
from benchmarks.next_edit.latency import times
from benchmarks.next_edit.recordings import Recording, recordings, summary
from benchmarks.next_edit.replay import Outcome, State, states
from benchmarks.next_edit.scenarios import scenarios
from benchmarks.next_edit.training import Row, half, to_json, train_gate
from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.host.process.address import normal_model
from completion.model.loading import LoadedModel, load_model
from completion.next_edit.finder import worth_judging
from completion.next_edit.gate import SHOWN_FROM, SURE_FROM, Gate
from completion.next_edit.judge import Judge, Judgement
from completion.next_edit.proposals import Proposal, proposals
from completion.prompt.fim_format import detect_format
from completion.prompt.planner import PromptPlanner
from completion.syntax.parsing import IN_PROCESS

FILE = "open_release_replay.jsonl.gz"
"""Data file: files in two consecutive releases of open packages."""


@dataclass(slots=True)
class Judgements:
    """The model's judgements, kept in a file between runs.

    Attributes:
        path: The file; None to keep nothing.
        model: Name of the model, as the file has it.
        known: What the file had, by proposal.
    """

    path: Path | None
    model: str
    judge: Judge
    loaded: LoadedModel
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path | None, model: str, threads: int | None) -> Judgements:
        """Load the model and the file. The errors are those of `read_kept`."""
        model = normal_model(model)
        known = {row["key"]: row for row in read_kept(path, model)}
        loaded = load_model(model, threads=threads or None)
        planner = PromptPlanner(loaded.tokenizer, detect_format(loaded.tokenizer.special, loaded.name))
        return cls(path, model, Judge(loaded.model, loaded.tokenizer, planner), loaded, known)

    def session(self) -> KVSession:
        """Return an empty session for the proposals of one document."""
        return KVSession(self.loaded.model, SessionSettings())

    def of(self, state: State, proposal: Proposal, session: KVSession) -> Judgement | None:
        """Return the judgement of a proposal, None if its texts are too long."""
        candidate = proposal.candidate
        name = json.dumps([state.record, state.number, candidate.line, candidate.old, candidate.new])
        if (found := self.known.get(name)) is not None:
            return Judgement(np.array(found["new"]), np.array(found["old"]), found["shared"])
        question = self.judge.question(state.request(), candidate)
        if question.is_too_long:
            return None
        made = self.judge.judge(question, session, CancelToken())
        if self.path:
            row = {
                "key": name,
                "model": self.model,
                "new": made.new.tolist(),
                "old": made.old.tolist(),
                "shared": made.shared,
            }
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return made


def labelled(replays: Sequence[Sequence[State]]) -> Iterator[Row]:
    """Yield every proposal of every state with its outcome."""
    for replay in replays:
        seen: set[Key] = set()
        for state in replay:
            for proposal in proposals(state.request(), IN_PROCESS):
                name = key(state, proposal.candidate)
                yield Row(state, proposal, state.outcome(proposal.candidate), name not in seen)
                seen.add(name)


def main() -> None:
    """Print one row for each way to choose, then the figures as JSON."""
    given = _arguments()
    if given.recordings:
        print(json.dumps(_rate(recordings(given.recordings), given)))
        return
    records = _records(given)
    replays = scenarios(given.data) if given.data else [list(states(record)) for record in records]
    rows = list(labelled(replays))
    judgements = _judgements(given)
    if given.train:
        first = [row for row in rows if row.is_first]
        if judgements is not None:
            _judge(replays, first, Way(by_rules(train_gate(first)), constant(SHOWN_FROM)), judgements)
        given.train.write_text(to_json(train_gate(first)), encoding="utf-8")
        return
    ways = {"rules": Way(constant(1.0), constant(0.0))}
    is_shipped = given.shipped or given.data
    if is_shipped:
        ways["rules_gate"] = Way(by_rules(Gate.shipped()), constant(SHOWN_FROM))
    else:
        ways["rules_gate"] = crossed(rows, by_rules, constant(SHOWN_FROM))
    best = "rules_gate"
    if judgements is not None:
        _judge(replays, rows, ways["rules_gate"], judgements)
        ways["model"] = Way(ratio, constant(0.0))
        best = "both_gate"
        ways[best] = shipped() if is_shipped else _chosen(replays, rows)
    for factor in (0.5, 1.0, 1.5, 2.0):
        ways[f"{best} from {factor * SHOWN_FROM:.2f}"] = replace(ways[best], shown_from=constant(factor * SHOWN_FROM))
    table = {name: report(replays, rows, way) for name, way in ways.items()}
    for name, figures in table.items():
        print(f"{name:20}" + "".join(f"  {key} {value!s:6}" for key, value in figures.items()))
    if given.errors:
        _print_errors(rows, ways[best])
    print("shown and wrong:", json.dumps(errors_by_kind(replays, rows, ways[best])))
    printed: dict[str, Any] = {
        **table[best],
        **resampled(replays, rows, ways[best]),
        **ranking(rows, ways, best),
        **_elsewhere(records, ways[best], judgements),
    }
    if judgements is not None and records and given.latency_files:
        printed |= asyncio.run(times(spread(records, given.latency_files), given.model, given.threads))
    print(json.dumps(printed))


def _rate(found: Sequence[Recording], given: argparse.Namespace) -> dict[str, int]:
    """Print what the shipped gate shows in each recording and how it is rated, and return the numbers of ratings."""
    judgements = _judgements(given)
    rules = Way(by_rules(Gate.shipped()), constant(SHOWN_FROM))
    ratings = []
    for each in found:
        rows = list(labelled([[each.state]]))
        if judgements is not None:
            _judge([[each.state]], rows, rules, judgements)
        here = each.state.edits[-1].line if each.state.edits else 0
        offered = [row.proposal.candidate for row in shown(rows, shipped() if judgements else rules)]
        offered.sort(key=lambda candidate: (candidate.line < here, candidate.line))  # as the engine does
        ratings.append(each.rating(offered))
        print(f"{ratings[-1]:8} {each.state.record}")
        if given.errors:
            _print_errors(rows, shipped() if judgements else rules)
    return summary(ratings)


def _elsewhere(records: Sequence[dict[str, Any]], way: Way, judgements: Judgements | None) -> dict[str, float | None]:
    """Return the figures of edits in other files of a release than the edited one, of which scenarios have none."""
    replays = list(pairs(records))
    rows = list(labelled(replays))
    if judgements is not None:
        _judge(replays, rows, Way(by_rules(Gate.shipped()), constant(SHOWN_FROM)), judgements)
    return elsewhere.summary(replays, rows, way)


def _judgements(given: argparse.Namespace) -> Judgements | None:
    """Return the model's judgements, None if only the rules are tested."""
    if given.model == "none":
        return None
    return Judgements.opened(given.judgements, given.model, given.threads)


def _records(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the release replays, none if scenarios are tested instead.

    Raises:
        SystemExit: The data has no changes of files.
    """
    if given.data:
        return []
    records = read_records(FILE, given.data_dir) + (read_records(FILE, given.more_data) if given.more_data else [])
    if all(record["before"] == record["after"] for record in records):
        raise SystemExit("The data has no changes of files. Name another folder.")
    return records


def spread(records: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return at most `count` records, evenly spread over all."""
    count = min(count, len(records))
    return [records[number * len(records) // count] for number in range(count)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_edit", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument(
        "--more-data", metavar="FOLDER", help="folder of further data, used together with the other one"
    )
    parser.add_argument("--shipped", action="store_true", help="test the shipped gate, on packages that it is not from")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="test the shipped gate on scenarios instead")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", help="rate the shipped gate on recorded sessions")
    parser.add_argument(
        "--model", default="default", help="a model, as the engine host takes it; none: the rules and their gate alone"
    )
    parser.add_argument("--threads", type=int, default=0, help="threads of a forward pass; 0: the engine chooses")
    parser.add_argument("--judgements", type=Path, metavar="FILE", help="keep the model's judgements for later runs")
    parser.add_argument("--train", type=Path, metavar="FILE", help="only train on all packages and write the weights")
    parser.add_argument("--errors", action="store_true", help="print what is shown and wrong, or hidden and right")
    parser.add_argument(
        "--latency-files",
        type=int,
        default=40,
        help="number of files in which times are measured (default: %(default)s)",
    )
    return parser.parse_args()


def _chosen(replays: Sequence[Sequence[State]], rows: Sequence[Row]) -> Way:
    thresholds = chosen_thresholds(replays, rows)
    print(f"thresholds, each chosen on the other half of the packages: {thresholds}")
    return crossed(rows, by_both, lambda row: thresholds[half(row)])


def _judge(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way, judgements: Judgements) -> None:
    """Let the model judge in each state what the rules find likely enough and are not sure of, as the engine does."""
    by_state = rows_by_state(rows)
    for replay in replays:
        session = judgements.session()
        for state in replay:
            here = by_state[state.record, state.number]
            chances = [way.chance(row) for row in here]
            for at in worth_judging(chances):
                if chances[at] < SURE_FROM:
                    here[at].judgement = judgements.of(state, here[at].proposal, session)


def _print_errors(rows: Sequence[Row], way: Way) -> None:
    for row in rows:
        if row.is_first and way.shows(row) != (row.outcome is Outcome.EXACT):
            candidate = row.proposal.candidate
            kinds = "+".join(sorted(candidate.kinds))
            print(f"{row.outcome} {way.chance(row):.2f} ratio {ratio(row):.1f} {kinds} {row.state.record}")
            print(
                "".join([*(f"    -{line}\n" for line in candidate.old), *(f"    +{line}\n" for line in candidate.new)])
            )


if __name__ == "__main__":
    main()
