"""`python -m benchmarks.early_stop PREDICTIONS…`: what the early stop of unlikely completions saves, and what it costs.

It reads the predictions of `python -m benchmarks.quality --out`. Bounds are learned from one half of the tasks, chosen
by a hash of their names. The learned and the shipped bounds are evaluated on the other half. `--train FILE` writes the
learned bounds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from benchmarks.data import read_file
from benchmarks.quality.scoring import first_line
from benchmarks.quality.sets import FILES, open_tasks
from completion.ending.early_stop import EarlyStop

STEPS = (3, 4, 6, 8, 12, 16, 24)
"""Numbers of tokens at which the bound may change."""
LOST = 0.01
"""Share of right suggestions that a bound may stop in the half that it is learned from."""
SLACK = 1.5
"""Factor that widens a learned bound: some dozens of right suggestions do not contain the least likely one."""
FEWEST = 30
"""Minimum number of right suggestions that a bound is learned from."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Log-probabilities of the tokens of a suggestion, and whether its first line is right."""

    id: str
    log_probabilities: tuple[float, ...]
    good: bool


def learn(samples: list[Sample]) -> EarlyStop:
    """Return bounds that stop at most LOST of the right suggestions at each number of tokens and never loosen."""
    bounds: list[tuple[int, float]] = []
    for tokens in STEPS:
        means = [
            np.mean(s.log_probabilities[:tokens]) for s in samples if s.good and len(s.log_probabilities) >= tokens
        ]
        if len(means) < FEWEST:
            break
        bound = SLACK * float(np.quantile(means, LOST))
        bounds.append((tokens, round(max([bound, *(earlier for _, earlier in bounds)]), 3)))
    return EarlyStop(tuple(bounds))


def stop_at(stop: EarlyStop, log_probabilities: Iterable[float]) -> int | None:
    """Return the number of tokens after which the suggestion is stopped, None if it is not stopped."""
    sums = enumerate(accumulate(log_probabilities), 1)
    return next((tokens for tokens, total in sums if stop.is_hopeless(tokens, total)), None)


def effect(stop: EarlyStop, samples: list[Sample]) -> dict[str, float | None]:
    """Return shares of stopped suggestions and of saved tokens, None where there are none to stop."""
    stops = [stop_at(stop, sample.log_probabilities) for sample in samples]
    tokens = sum(len(sample.log_probabilities) for sample in samples)
    saved = sum(len(s.log_probabilities) - at for s, at in zip(samples, stops, strict=True) if at is not None)
    stopped = [sample.good for sample, at in zip(samples, stops, strict=True) if at is not None]
    good, bad = sum(s.good for s in samples), sum(not s.good for s in samples)
    return {
        "suggestions": len(samples),
        "stopped": _share(len(stopped), len(samples)),
        "bad_stopped": _share(stopped.count(False), bad),
        "good_lost": _share(stopped.count(True), good),
        "tokens_saved": _share(saved, tokens),
    }


def _share(count: int, total: int) -> float | None:
    return round(count / total, 4) if total else None


def read(paths: list[Path], rows: set[str], data_dir: str | None) -> list[Sample]:
    """Return the predictions of these rows that have at least one token."""
    references = {task.id: task.reference for task in open_tasks(list(FILES), data_dir)}
    samples = []
    for path in paths:
        for made in read_file(path):
            if made["row"] in rows and made["log_probabilities"] and made["id"] in references:
                good = first_line(made["completion"]) == first_line(references[made["id"]])
                samples.append(Sample(made["id"], tuple(made["log_probabilities"]), good))
    return samples


def learning_half(sample: Sample) -> bool:
    """Return whether a task belongs to the half that bounds are learned from."""
    return hashlib.sha256(sample.id.encode()).digest()[0] % 2 == 0


def main() -> None:
    """Learn from one half of the tasks and print the effect on the other half."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.early_stop", description=__doc__)
    parser.add_argument("predictions", type=Path, nargs="+")
    parser.add_argument(
        "--rows",
        default="whole",
        help="rows to read, comma-separated; they must run without the early stop (default: %(default)s)",
    )
    parser.add_argument("--data-dir", help="folder of the open data")
    parser.add_argument("--train", type=Path, metavar="FILE", help="write the learned bounds")
    given = parser.parse_args()
    samples = read(given.predictions, set(given.rows.split(",")), given.data_dir)
    stop = learn([sample for sample in samples if learning_half(sample)])
    if given.train:
        given.train.write_text(json.dumps({"version": 1, "bounds": stop.bounds}) + "\n", encoding="utf-8")
    print("bounds:", ", ".join(f"{bound} from {tokens} tokens" for tokens, bound in stop.bounds) or "none")
    held_out = [sample for sample in samples if not learning_half(sample)]
    print(json.dumps({"learned": effect(stop, held_out), "shipped": effect(EarlyStop.shipped(), held_out)}))


if __name__ == "__main__":
    main()
