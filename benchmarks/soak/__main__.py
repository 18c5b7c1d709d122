"""`python -m benchmarks.soak`: memory, latency and what stays behind in a compressed working week; see `week`.

It prints a table with a row for each day, then one JSON object. `--keys 2000` takes a few minutes.
`--cancels 10000` takes a minute, and runs no model: see `cancels`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.engine_processes import private_folders
from benchmarks.soak.cancels import cancel_streams
from benchmarks.soak.report import draw, headline, print_table
from benchmarks.soak.week import Worker, make_workspaces


def main() -> None:
    """Live the week, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument(
        "--keys", type=int, default=50_000, help="keys that are typed in the week (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of what is random (default: %(default)s)")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument("--backend", default="auto", help="implementation that runs the model (default: %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw memory over time into this file")
    parser.add_argument("--cancels", type=int, metavar="N", help="cancel N streams instead of living a week")
    options = parser.parse_args()
    if options.cancels is not None:
        print(json.dumps(cancel_streams(options.cancels, options.seed, lambda line: print(line, flush=True))))
        return
    if options.plot is not None and find_spec("matplotlib") is None:
        raise SystemExit("--plot needs matplotlib: pip install '.[bench]'")
    settings = {"model": options.model, "backend": options.backend, "maxTokens": 32, "suggestions": 1}
    with private_folders() as environment, tempfile.TemporaryDirectory() as folder:
        worker = Worker(
            environment, make_workspaces(Path(folder)), settings, options.seed, lambda line: print(line, flush=True)
        )
        week = asyncio.run(worker.live(options.keys))
    print_table(week)
    if options.plot is not None:
        draw(week, options.plot)
    print(json.dumps(headline(week)))


if __name__ == "__main__":
    main()
