"""`python -m benchmarks.next_edit`: how often a next edit is right, and how often silence is.

Release replays are edited change by change. After each change the rules propose, the model judges and the gate decides.
The gate is trained on one half of the packages and tested on the other, in both directions. `--train FILE` trains it on
all packages and writes the weights that ship.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import read_records
from benchmarks.gate.__main__ import auc
from benchmarks.next_edit.replay import Outcome, State, states
from benchmarks.next_edit.training import Row, half, judged_by, train_gate
from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.edits import NextEdit, NextEditRequest
from completion.model.loading import LoadedModel, load_model
from completion.next_edit.candidates import Candidate
from completion.next_edit.finder import next_edits, without_overlaps
from completion.next_edit.gate import JUDGED_FROM, SHOWN_FROM, Gate
from completion.next_edit.judge import BUDGET, Judge, Judgement
from completion.next_edit.proposals import Proposal, proposals
from completion.prompt.fim_format import detect_format
from completion.prompt.planner import PromptPlanner
from completion.syntax.parser_process import IN_PROCESS

FILE = "open_release_replay.jsonl.gz"
"""Data file: files in two consecutive releases of open packages."""
MAX_SCORED_TOKENS = 300
"""Maximum number of tokens of a proposal's two texts together."""

Key = tuple[int, tuple[str, ...], tuple[str, ...]]
"""What stays the same of a proposal while lines above it change."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to choose: a number for each proposal, and the number from which it is shown."""

    chance: Callable[[Row], float]
    shown_from: float

    def shows(self, row: Row) -> bool:
        """Return whether a proposal is shown."""
        return self.chance(row) >= self.shown_from


@dataclass(slots=True)
class Judgements:
    """The model's judgements, kept in a file between runs.

    Attributes:
        path: The file; None to keep nothing.
        known: What the file had, by proposal.
    """

    path: Path | None
    judge: Judge
    loaded: LoadedModel
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: Path | None, model: str, threads: int | None) -> Judgements:
        """Load the model and the file."""
        loaded = load_model(model, threads=threads)
        planner = PromptPlanner(loaded.tokenizer, detect_format(loaded.tokenizer.special, loaded.name), BUDGET)
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else ()
        known = {row["key"]: row for row in map(json.loads, lines)}
        return cls(path, Judge(loaded.model, loaded.tokenizer, planner), loaded, known)

    def session(self) -> KVSession:
        """Return an empty session for the proposals of one document."""
        return KVSession(self.loaded.model, SessionSettings())

    def of(self, state: State, proposal: Proposal, session: KVSession) -> Judgement | None:
        """Return the judgement of a proposal, None if its texts are too long."""
        candidate = proposal.candidate
        key = json.dumps([state.record, state.number, candidate.line, candidate.old, candidate.new])
        if (found := self.known.get(key)) is not None:
            return Judgement(np.array(found["new"]), np.array(found["old"]), found["shared"])
        question = self.judge.question(state.lines, state.edits, candidate, path=state.path, language=state.language)
        if len(question.new) + len(question.old) > MAX_SCORED_TOKENS:
            return None
        made = self.judge.judge(question, session, CancelToken())
        if self.path:
            row = {"key": key, "new": made.new.tolist(), "old": made.old.tolist(), "shared": made.shared}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return made


def labelled(replays: Sequence[Sequence[State]]) -> Iterator[Row]:
    """Yield every proposal of every state with its outcome."""
    for replay in replays:
        seen: set[Key] = set()
        for state in replay:
            for proposal in proposals(state.lines, state.edits, state.language, IN_PROCESS):
                key = _key(state, proposal.candidate)
                yield Row(state, proposal, state.outcome(proposal.candidate), key not in seen)
                seen.add(key)


def crossed(rows: Sequence[Row]) -> dict[str, Way]:
    """Return the ways of gates that were trained on the half without a proposal's package."""
    gates = [train_gate([row for row in rows if half(row) != own]) for own in (0, 1)]

    def by_rules(row: Row) -> float:
        return gates[half(row)].rules.probability(row.proposal.rule_features())

    def by_both(row: Row) -> float:
        gate = gates[half(row)]
        return gate.both.probability(judged_by(gate.rules)(row)) if row.judgement else JUDGED_FROM * by_rules(row)

    return {"rules_gate": Way(by_rules, SHOWN_FROM), "both_gate": Way(by_both, SHOWN_FROM)}


def report(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> dict[str, float]:
    """Return the figures of one way to choose; a proposal that was shown once is not shown again."""
    by_state: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_state.setdefault((row.state.record, row.state.number), []).append(row)
    outcomes: list[Outcome] = []
    later = covered = quiet = 0
    for replay in replays:
        seen: set[Key] = set()
        done: set[int] = set()
        visible: list[Row] = []
        for state in replay:
            visible = _shown(by_state.get((state.record, state.number), ()), way)
            done |= state.covered([row.proposal.candidate for row in visible if row.outcome is Outcome.EXACT])
            outcomes += [row.outcome for row in visible if _key(state, row.proposal.candidate) not in seen]
            seen |= {_key(state, row.proposal.candidate) for row in visible}
        later += len(replay) - 1
        covered += len(done)
        quiet += not visible  # the last state is complete
    exact, place = outcomes.count(Outcome.EXACT), outcomes.count(Outcome.PLACE)
    return {
        "shown": len(outcomes),
        "exact": exact,
        "precision_exact": round(exact / max(1, len(outcomes)), 3),
        "precision_place": round((exact + place) / max(1, len(outcomes)), 3),
        "coverage_exact": round(covered / later, 4),
        "quiet_rate": round(quiet / len(replays), 3),
    }


def latencies(replays: Sequence[Sequence[State]], judgements: Judgements) -> list[float]:
    """Return the milliseconds of each request in which the model judged something."""
    found, gate = [], Gate.shipped()
    for replay in replays:
        session = judgements.session()
        for state in replay:
            before = session.tokens[:]
            request = NextEditRequest(state.lines, state.edits, state.language, state.path)
            started = time.perf_counter()
            next_edits(request, judgements.judge, gate, session, IN_PROCESS, CancelToken())
            if session.tokens != before:
                found.append(1e3 * (time.perf_counter() - started))
    return found


def main() -> None:
    """Print one row for each way to choose, then the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_edit", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="a model, as the engine host takes it")
    parser.add_argument("--threads", type=int, help="threads of a forward pass")
    parser.add_argument("--judgements", type=Path, metavar="FILE", help="keep the model's judgements for later runs")
    parser.add_argument("--train", type=Path, metavar="FILE", help="train on all packages and write the weights")
    parser.add_argument("--errors", action="store_true", help="print what is shown and wrong, or hidden and right")
    parser.add_argument("--no-latency", action="store_true", help="leave out the measurement of time")
    parser.add_argument("--no-model", action="store_true", help="measure the rules and their gate alone")
    given = parser.parse_args()
    replays = [list(states(record)) for record in read_records(FILE, given.data_dir)]
    rows = list(labelled(replays))
    ways = {"rules": Way(lambda _: 1.0, 0.0), **crossed(rows)}
    judgements = None if given.no_model else Judgements.opened(given.judgements, given.model, given.threads)
    if judgements is None:
        del ways["both_gate"]
    else:
        _judge(replays, rows, ways["rules_gate"], judgements)
        ways |= {"model": Way(_ratio, 0.0), **crossed(rows)}
    if given.train:
        given.train.write_text(train_gate(rows).to_json(), encoding="utf-8")
    best = "rules_gate" if judgements is None else "both_gate"
    for threshold in (0.5 * SHOWN_FROM, 1.5 * SHOWN_FROM, 2 * SHOWN_FROM):
        ways[f"{best} from {threshold:.1f}"] = replace(ways[best], shown_from=threshold)
    table = {name: report(replays, rows, way) for name, way in ways.items()}
    for name, figures in table.items():
        print(f"{name:20}" + "".join(f"  {key} {value:6}" for key, value in figures.items()))
    if given.errors:
        _print_errors(rows, ways[best])
    times = latencies(replays, judgements) if judgements and not given.no_latency else []
    print(json.dumps({**table[best], **_ranking(rows, ways, best), **_times(times)}))


def _judge(replays: Sequence[Sequence[State]], rows: Sequence[Row], by_rules: Way, judgements: Judgements) -> None:
    """Let the model judge what the rules find likely enough."""
    sessions = {replay[0].record: judgements.session() for replay in replays}
    for row in rows:
        if by_rules.chance(row) >= JUDGED_FROM:
            row.judgement = judgements.of(row.state, row.proposal, sessions[row.state.record])


def _ratio(row: Row) -> float:
    return row.judgement.ratio if row.judgement else -math.inf


def _ranking(rows: Sequence[Row], ways: Mapping[str, Way], best: str) -> dict[str, float]:
    """Return how well right proposals rank above others; those that the model does not judge rank by the rules."""
    first = [row for row in rows if row.is_first]
    right = np.array([row.is_right for row in first])
    figures: dict[str, float] = {"proposals": len(first)}
    for name, way in (("judge_auc", ways[best]), ("rules_auc", ways["rules_gate"])):
        figures[name] = round(auc(np.array([way.chance(row) for row in first]), right), 4)
    judged = np.array([row.judgement is not None for row in first])
    if judged.any():
        ratios = np.array([_ratio(row) for row in first])
        figures |= {"judged": int(judged.sum()), "ratio_auc_judged": round(auc(ratios[judged], right[judged]), 4)}
    return figures


def _times(times: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(float(np.median(times)), 1), "requests_judged": len(times)} if times else {}


def _shown(rows: Sequence[Row], way: Way) -> list[Row]:
    """Return what is shown of the proposals of one state."""
    edits = {
        id(row): NextEdit(candidate.line, candidate.old, candidate.new, way.chance(row))
        for row in rows
        if way.shows(row) and (candidate := row.proposal.candidate)
    }
    kept = without_overlaps(list(edits.values()))
    return [row for row in rows if id(row) in edits and edits[id(row)] in kept]


def _key(state: State, candidate: Candidate) -> Key:
    return len(state.lines) - candidate.line, candidate.old, candidate.new


def _print_errors(rows: Sequence[Row], way: Way) -> None:
    for row in rows:
        if row.is_first and way.shows(row) != (row.outcome is Outcome.EXACT):
            candidate = row.proposal.candidate
            kinds = "+".join(sorted(candidate.kinds))
            print(f"{row.outcome} {way.chance(row):.2f} ratio {_ratio(row):.1f} {kinds} {row.state.record}")
            print(
                "".join([*(f"    -{line}\n" for line in candidate.old), *(f"    +{line}\n" for line in candidate.new)])
            )


if __name__ == "__main__":
    main()
