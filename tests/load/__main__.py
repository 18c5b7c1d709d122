"""`python -m tests.load --minutes N --seed S`: rounds of all asynchronous tests, or those of some paths.

Each round has an order of its own.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

SUITES = (
    "tests/completion/host",
    "tests/completion/remote",
    "tests/completion/syntax/test_parser_process.py",
    "tests/lsp_server",
    "tests/torture",
)
"""Tests in which threads, processes or an event loop do something by themselves."""
SKIPPED_MARKS = "not (neovim or vscode or clients or release)"
TRANSPORTS = ("unix", "tcp")
BUSY = (sys.executable, "-ISc", "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass")
"""A program that computes until the one that has started it ends."""


@contextmanager
def busy_processors() -> Iterator[None]:
    """Keep each processor busy with another process within the block."""
    busy = [subprocess.Popen(BUSY) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run_round(tests: Sequence[str], seed: int, seconds: float, report: Path) -> bool:
    """Run tests in the order of a seed; return whether none failed. None starts after so many seconds of tests."""
    print(f"\nRound with the seed {seed}:", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.load.starving", *tests]
    options = ["-m", SKIPPED_MARKS, f"--numprocesses={os.cpu_count()}", f"--junitxml={report}"]
    options += ["--random-order-bucket=global", f"--random-order-seed={seed}"]
    options += [f"--load-seed={seed}", f"--load-seconds={seconds}"]
    transport = TRANSPORTS[seed % len(TRANSPORTS)]
    environment = os.environ | {"DRAFTLINE_TRANSPORT": transport, "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, *options], env=environment, check=False).returncode == 0


def note_runs(report: Path, runs: Counter[tuple[str, str]]) -> None:
    """Count the tests that a round has run, by module and name; those that it skipped count as none."""
    for case in ET.parse(report).iter("testcase"):
        runs[case.get("classname", ""), case.get("name", "")] += case.find("skipped") is None


def print_runs(runs: Counter[tuple[str, str]]) -> None:
    """Print how many times the tests of each module have run."""
    modules: dict[str, list[int]] = {}
    for (module, _), count in sorted(runs.items()):
        modules.setdefault(module, []).append(count)
    print(f"\n{'tests':>6} {'least':>6} {'most':>6}  module")
    for module, counts in modules.items():
        print(f"{len(counts):6} {min(counts):6} {max(counts):6}  {module}")
    ran = [count for count in runs.values() if count]
    print(f"{len(ran)} of {len(runs)} tests ran, each at least {min(ran, default=0)} times; {sum(ran)} runs.")


def main() -> int:
    """Run rounds until the time is over; the result is 0 when tests ran and none has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=38, help="after which no test starts (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the first round; a random one is printed")
    parser.add_argument("tests", nargs="*", default=SUITES, help="paths in place of all asynchronous tests")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    until, runs, red = time.monotonic() + 60 * options.minutes, Counter[tuple[str, str]](), []
    with busy_processors(), tempfile.TemporaryDirectory() as folder:
        while (seconds := until - time.monotonic()) > 0:
            report = Path(folder, "report.xml")
            if not run_round(options.tests, seed, seconds, report):
                red.append(seed)
            note_runs(report, runs)
            seed += 1
    print_runs(runs)
    for each in red:
        print(f"RED: repeat it with `make test-load SEED={each}`.")
    return 1 if red or not runs.total() else 0


if __name__ == "__main__":
    sys.exit(main())
