"""`python -m benchmarks.report`: run a set of benchmarks, write docs/figures.json, and render README and docs from it.

`--short` takes about half an hour on two cores, `--long` hours. `--from FILE` runs nothing and renders a file that an
earlier report wrote. `--only` runs a part again, in a file of the same commit and machine. A benchmark that fails is
named in the file, and the others run. The machine should have no other work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import VARIABLE, data_dir
from benchmarks.report.machine import ROOT, commit, machine, versions
from benchmarks.report.pages import FIGURES, write_pages
from benchmarks.report.running import run_all
from benchmarks.report.runs import RUNS, Form, Run


def main() -> int:
    """Run the command line. The exit status is 1 if a benchmark failed."""
    given = options(sys.argv[1:])
    report = read(given.source) if given.source else measure(given)
    write(report, given.out)
    if given.out == FIGURES:
        for page in write_pages(report):
            print(f"rendered {page.relative_to(ROOT)}")
    failed = [name for name, run in report["runs"].items() if "failed" in run]
    if failed:
        print(f"{len(failed)} of {len(report['runs'])} gave no figures: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run the benchmarks of the chosen form, and return the report. What is known so far is written after each run."""
    report = _begun(given.form, given.only, given.out)
    os.environ[VARIABLE] = str(data_dir(given.data_dir).resolve())
    chosen = [(run.name, run) for run in _chosen(given.form, given.only)]
    with tempfile.TemporaryDirectory() as scratch:
        for name, outcome in run_all(chosen, given.form, Path(scratch)):
            report["runs"][name] = outcome
            write(report, given.out)
    return report


def read(path: Path) -> dict[str, Any]:
    """Return a report from its file.

    Raises:
        SystemExit: The file is none of a report.
    """
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        missing = {"form", "commit", "machine", "versions", "runs"} - report.keys()
    except (OSError, ValueError, AttributeError) as error:
        raise SystemExit(f"{path} is no file of figures: {error}. `python -m benchmarks.report` writes one.") from error
    if missing:
        raise SystemExit(
            f"{path} lacks {', '.join(sorted(missing))}. `python -m benchmarks.report` writes a whole file."
        )
    return report


def write(report: dict[str, Any], path: Path) -> None:
    """Write a report, with its runs in the order of RUNS."""
    order = {run.name: number for number, run in enumerate(RUNS)}
    runs = sorted(report["runs"].items(), key=lambda item: order.get(item[0], len(order)))
    text = json.dumps(report | {"runs": dict(runs)}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _begun(form: Form, only: list[str], out: Path) -> dict[str, Any]:
    """Return a report without runs; with `only`, with those of the file that is continued.

    Raises:
        SystemExit: The file has figures of another commit, machine or form.
    """
    facts = {"form": form, "commit": commit(), "machine": machine(), "versions": versions()}
    if not only or not out.exists():
        return facts | {"runs": {}}
    known = read(out)
    for name, value in facts.items():
        if known[name] != value:
            raise SystemExit(
                f"{out} has figures of another {name}: {known[name]}, not {value}."
                " Run all, or name another file by --out."
            )
    return known


def _chosen(form: Form, only: list[str]) -> list[Run]:
    """Return the runs of a form; of these the ones that `only` names, unless it is empty."""
    runs = [run for run in RUNS if run.size(form)]
    unknown = set(only) - {run.name for run in runs}
    if unknown:
        known = ", ".join(run.name for run in runs)
        raise SystemExit(f"The {form} form has no run {', '.join(sorted(unknown))}. Choose from: {known}.")
    return [run for run in runs if not only or run.name in only]


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--short", dest="form", action="store_const", const="short", help="small sizes (default)")
    forms.add_argument(
        "--long", dest="form", action="store_const", const="long", help="full sizes, and more benchmarks"
    )
    forms.add_argument("--from", dest="source", type=Path, metavar="FILE", help="run nothing, render this file")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="run these: " + ", ".join(r.name for r in RUNS)
    )
    parser.add_argument(
        "--out", type=Path, default=FIGURES, help="file of figures (default: docs/figures.json, which the pages show)"
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.set_defaults(form="short")
    given = parser.parse_args(arguments)
    given.out = given.out.resolve()
    return given


if __name__ == "__main__":
    sys.exit(main())
