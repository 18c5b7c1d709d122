"""`python -m benchmarks.worth`: how much of a suggested text to show, and how much of that the gate should hide.

The engine is asked before every key of the sessions of `benchmarks.typing`. Then a person types them in simulated time,
with the same answers for each rule. The cost of wrong text was chosen on the packages of half 0; half 1 is the default.
The last line is JSON: `rule_…` are the figures of the shipped rule, `before_…` those of the older one, `promised_…`
how often the first line was right that a share as `gate` shows, of the places at which the person waits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.figures import ratio
from benchmarks.quality.sets import half_of
from benchmarks.typing.scripts import Script, choose, release_scripts
from benchmarks.worth.guarantee import held, threshold, waits
from benchmarks.worth.places import Place, places, read_places, write_places
from benchmarks.worth.replay import Replay, Row
from completion.engine import Engine, product_settings
from completion.host.process.address import normal_model
from completion.model.loading import load_model
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.worth import RIGHT_FROM, WRONG_COST
from lsp_server.settings.table import DEFAULTS

RULE, BEFORE = "worth, as shipped", "whole lines, gate normal, 1 s quiet"
ROWS = {
    BEFORE: Row(None, Strictness.NORMAL, quiet_s=1.0),
    "whole lines, gate normal": Row(None, Strictness.NORMAL),
    "whole lines": Row(None, DEFAULTS.gate),
    RULE: Row(WRONG_COST, DEFAULTS.gate),
    "worth, whole blocks": Row(WRONG_COST, DEFAULTS.gate, whole_blocks=True),
    "worth, gate normal": Row(WRONG_COST, Strictness.NORMAL),
    "worth, wrong text costs 0.25": Row(0.25, DEFAULTS.gate),
    "worth, wrong text costs 0.5": Row(0.5, DEFAULTS.gate),
    "worth, wrong text costs 1": Row(1.0, DEFAULTS.gate),
}
SHARES = tuple(level for level in Strictness if level.value[0].isdigit())
"""The settings of `gate` that promise a share of right first lines."""
SEEDS = (1, 2, 3)
"""Rhythms in which each session is typed."""


def figures(counts: Counter[str]) -> dict[str, float | None]:
    """Return the figures of a row by name, None where there is no data."""

    def share(part: str, whole: str) -> float | None:
        return round(counts[part] / counts[whole], 4) if counts[whole] else None

    return {
        "saved_characters": share("accepted", "characters"),
        "offers": counts["offers"],
        "offers_right": share("offers_right", "offers"),
        "used_of_offered": share("accepted", "offered"),
        "keys_with_text": share("keys_with_text", "looks"),
        "keys_with_wrong_word": share("keys_with_wrong_word", "looks"),
        "keys_with_right_line": share("keys_with_right_line", "looks"),
    }


def typed(row: Row, sessions: Sequence[Sequence[Place]]) -> Counter[str]:
    """Return what a row's person counts over all sessions and rhythms."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        for session in sessions:
            counts.update(Replay(row, session, seed).run())
    return counts


def promise(places: Sequence[Place], least: float) -> dict[str, float | None]:
    """Return how often the first line is right of what is shown with a least probability, and at how many places."""
    found = held(places, least)
    return {"held": ratio(found.right, found.shown), "shown": found.shown}


def _scripts(half: int, options: argparse.Namespace) -> list[Script]:
    found = release_scripts(read_records("open_release_replay.jsonl.gz", options.data_dir), options.characters)
    of_half = [one for one in found if half_of(one.id) == half]
    return choose(of_half, [], options.sessions, options.seed)


def _ask(scripts: Sequence[Script], path: Path, model: str) -> list[list[Place]]:
    """Return the places of each session; those that the file lacks come from the engine and are added to it."""
    model = normal_model(model)
    known = read_places(path, model)
    lacking = [script for script in scripts if (script.id, script.length) not in known]
    if lacking:
        # Without bounds on time, other work on the machine does not change the answers.
        settings = replace(product_settings(), full_prompt_s=math.inf, cold_prompt_s=math.inf)
        engine = Engine(load_model(model), settings)
        for number, script in enumerate(lacking):
            known[script.id, script.length] = found = list(places(engine, script))
            write_places(path, model, script, found)
            print(f"{number + 1}/{len(lacking)} {script.id}", file=sys.stderr, flush=True)
        engine.close()
    return [known[script.id, script.length] for script in scripts]


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if name == "offers" else f"{100 * value:.1f} %"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worth", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model that is asked (default: %(default)s)")
    parser.add_argument("--half", type=int, choices=(0, 1), default=1, help="packages (default: %(default)s)")
    parser.add_argument("--sessions", type=int, default=40, help="number of sessions (default: %(default)s)")
    parser.add_argument("--characters", type=int, default=100, help="characters of a session (default: %(default)s)")
    parser.add_argument("--places", type=Path, help="file of the model's answers; an existing file is continued")
    parser.add_argument(
        "--calibrate", action="store_true", help="print the least probabilities that keep each promise of `gate`"
    )
    parser.add_argument("--seed", type=int, default=7, help="seed of what is random (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sessions = _ask(_scripts(options.half, options), options.places or Path(folder) / "places.jsonl", options.model)
    found = {name: figures(typed(row, sessions)) for name, row in ROWS.items()}
    table = Table("", *found[RULE])
    for name, row in found.items():
        table.add_row(name, *(_cell(key, value) for key, value in row.items()))
    Console(width=150).print(table)
    waited = [place for session in sessions for place in waits(session)]
    if options.calibrate:
        print({promised: threshold(waited, float(promised)) for promised in SHARES})
    parts = {"rule": found[RULE], "before": found[BEFORE]}
    report: dict[str, object] = {f"{part}_{name}": value for part, row in parts.items() for name, value in row.items()}
    report |= {f"promised_{promised}": promise(waited, least) for promised, least in RIGHT_FROM.items()}
    counts = {"sessions": len(sessions), "keys": sum(map(len, sessions)), "waits": len(waited)}
    print(json.dumps(counts | report))


if __name__ == "__main__":
    main()
