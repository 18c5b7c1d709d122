"""The benchmarks of a report as data: what is run in the short and in the long form, and about how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["short", "long"]
PREDICTIONS = "PREDICTIONS"
"""Argument that stands for a file in a folder of the report: `quality` writes it, `early_stop` reads it."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a run.

    Attributes:
        arguments: Arguments of the command line, separated by blanks.
        minutes: About how long it takes on two cores with AVX2; says how much time is left.
    """

    arguments: str
    minutes: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a benchmark.

    Attributes:
        name: Its name in the file of figures.
        module: The benchmark, below `benchmarks`.
        short: Its size in the short form, None if only the long one has it.
        long: Its size in the long form.
    """

    name: str
    module: str
    short: Size | None
    long: Size

    def size(self, form: Form) -> Size | None:
        """Return the size in a form of the report, None if that form leaves the run out."""
        return self.short if form == "short" else self.long

    def command(self, form: Form) -> str:
        """Return the command line, as the pages show it; that of the long form where the short one has none."""
        size = self.size(form) or self.long
        return " ".join(["python", "-m", f"benchmarks.{self.module}", *size.arguments.split()])


def _alone(name: str, minutes: float, arguments: str = "") -> Run:
    """Return a run that is the same in both forms."""
    return Run(name, name, Size(arguments, minutes), Size(arguments, minutes))


_PLACES = "cursor_positions,mid_line,repo_context,release_replay"

RUNS = (
    _alone("debounce", 0.1),
    _alone("telemetry", 0.2),
    _alone("filter_harm", 0.5),
    _alone("gate", 1.5),
    _alone("families", 0.3),
    Run(
        "startup",
        "startup",
        Size("--runs 5 --engine-runs 3 --idle-seconds 5", 1.5),
        Size("", 3.0),
    ),
    Run(
        "engine",
        "engine",
        Size("--without-llama --without-transformers --repeats 6", 2.0),
        Size("--without-transformers --larger qwen2.5-coder-1.5b", 15.0),
    ),
    Run("fidelity", "fidelity", None, Size("", 20.0)),
    _alone("workspace_index", 1.5),
    Run(
        "drafting",
        "drafting",
        Size("--records 16 --warm-up 4 --single-every 1 --comparisons 0", 4.0),
        Size("", 25.0),
    ),
    Run("edits", "edits", Size("--requests 48 --other-layout-requests 4", 3.0), Size("", 20.0)),
    Run("memory", "memory", Size("--requests 40 --without-llama", 3.0), Size("", 30.0)),
    Run(
        "typing",
        "typing",
        Size("--rows draftline --sessions 8 --others 0", 4.0),
        Size("--sessions 10 --seconds 1800", 30.0),
    ),
    Run("typing_ablation", "typing_ablation", Size("--sessions 8", 4.5), Size("", 14.0)),
    Run("team", "team", Size("--typists 1 4 --seconds 20", 1.2), Size("", 8.0)),
    Run(
        "quality_tests",
        "quality",
        Size(f"--sets single_line --rows whole,infill --limit 40 --out {PREDICTIONS}", 1.7),
        Size(f"--sets single_line,multi_line,random_span,safim --out {PREDICTIONS}", 120.0),
    ),
    Run(
        "quality_places",
        "quality",
        Size(f"--sets {_PLACES} --rows whole,infill --limit 2 --half 1 --out {PREDICTIONS}", 2.5),
        Size(f"--sets {_PLACES} --rows whole,infill --out {PREDICTIONS}", 120.0),
    ),
    _alone("early_stop", 0.3, PREDICTIONS),
    Run(
        "suggestions",
        "suggestions",
        Size("--sets single_line,cursor_positions --limit 1", 1.2),
        Size("", 6.0),
    ),
    Run(
        "grammar",
        "grammar",
        Size("--only typed,completions --typed 6 --completions 2", 2.5),
        Size("", 25.0),
    ),
    Run("next_edit", "next_edit", Size("--model none", 0.3), Size("", 30.0)),
    Run("safety", "safety", Size("--limit 20", 1.0), Size("", 12.0)),
    Run("worth", "worth", Size("--sessions 4", 2.0), Size("", 40.0)),
    Run("instruct", "instruct", None, Size("", 25.0)),
    Run("editor_latency", "editor_latency", None, Size("", 3.0)),
    Run("pregeneration", "pregeneration", None, Size("--sessions 10", 25.0)),
    Run("soak", "soak", None, Size("", 60.0)),
)
"""All runs, the quick ones first."""
BY_NAME = {run.name: run for run in RUNS}
