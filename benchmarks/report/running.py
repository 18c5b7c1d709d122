"""Runs benchmarks one after the other, each in a process of its own, and takes the last line that it prints."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report.machine import ROOT
from benchmarks.report.runs import PREDICTIONS, Form, Run

_GRACE_S = 900.0
"""Time that a run may take in addition to four times the expected one, in seconds."""


def run_all(runs: Sequence[tuple[str, Run]], form: Form, scratch: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each run gave: its command, the seconds that it took, and `figures`, or a sentence as `failed`.

    Prints which run begins and how much time is left: the expected time of the others, corrected by the pace so far.

    Args:
        runs: Names and runs, in this order.
        form: Form of the report.
        scratch: Folder for the predictions that one run writes and another one reads.
    """
    expected = [60 * size.minutes if (size := run.size(form)) else 0.0 for _, run in runs]
    started, done_s = time.monotonic(), 0.0
    for number, (name, run) in enumerate(runs):
        passed_s = time.monotonic() - started
        left_s = sum(expected[number:]) * (passed_s / done_s if done_s else 1.0)
        print(f"[{number + 1}/{len(runs)}] {run.command(form)}; about {left_s / 60:.0f} min left", flush=True)
        before = time.monotonic()
        outcome = run_one(run.command(form).split()[1:], scratch, 4 * expected[number] + _GRACE_S)
        if "failed" in outcome:
            print(f"    {name}: {outcome['failed']}", flush=True)
        done_s += expected[number]
        yield name, {"command": run.command(form), "seconds": round(time.monotonic() - before)} | outcome


def run_one(arguments: Sequence[str], scratch: Path, timeout_s: float) -> dict[str, Any]:
    """Return the figures that a benchmark printed as its last line, or why there are none.

    Args:
        arguments: Arguments of Python. PREDICTIONS stands for a file in `scratch`.
        scratch: An existing folder.
        timeout_s: Seconds after which the benchmark is ended.
    """
    predictions = str(scratch / "predictions.jsonl")
    command = [sys.executable, *(predictions if word == PREDICTIONS else word for word in arguments)]
    # Files, not pipes: an engine host that outlives the benchmark may hold the other end of a pipe.
    output, errors = scratch / "output.txt", scratch / "errors.txt"
    with output.open("w", encoding="utf-8") as out, errors.open("w", encoding="utf-8") as err:
        try:
            status = subprocess.run(
                command, cwd=ROOT, stdout=out, stderr=err, timeout=timeout_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return {"failed": f"It was ended after {timeout_s / 60:.0f} minutes."}
    figures = _last_object(output.read_text(encoding="utf-8", errors="replace"))
    if status or figures is None:
        # Not in the file of figures, since it may name folders of this machine.
        print(errors.read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr, flush=True)
        return {"failed": f"It ended with status {status}, without figures."}
    return {"figures": figures}


def _last_object(output: str) -> dict[str, Any] | None:
    """Return the JSON object in the last line of an output, None if that is no object."""
    lines = output.rstrip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
