"""`python -m benchmarks.names`: what the names are worth that the editor's own language server knows at the cursor.

The places are after a dot, in imports and first in calls, in releases of packages that nothing was chosen on. The rest
of the line is missing. Make the folder of `--sources` with `pip install --target FOLDER mcp a2a-sdk pydantic-ai-slim
openai-agents textual scrapy langgraph logfire celery sqlalchemy kombu twisted hypothesis`. `--known FILE` keeps what
the server said, `--out FILE` the answers. A later run makes only the missing ones; known places need no server.

The table has, for each row, the first lines that are right, the first names that are right, and those that are
invented: neither the server nor the place has them. Half 0 chooses a cost, half 1 reports it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.data import read_kept
from benchmarks.figures import percentile
from benchmarks.names.answers import COSTS, LISTED, PLAIN, SIGNATURE, Answering
from benchmarks.names.language_server import Known, LanguageServer
from benchmarks.names.places import NAME, Place, half, places_of, sources
from benchmarks.quality.scoring import first_line
from completion.engine import Engine, product_settings
from completion.model.loading import load_model

PACKAGES = Path(__file__).with_name("packages.txt")
"""Packages of both halves, as `--sources` names their folders."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a row has right at a place."""

    line: bool
    name: bool
    invented: bool


def main() -> None:
    """Ask the server and the engine, print the places and a table, then one line of JSON."""
    options = _options()
    asked = list(_asked(options))
    answers = _answers(options, asked)
    found = {place.id: (place, known) for place, known in asked if place.id in answers}
    if not found:
        raise SystemExit("There is no place. Name other --sources or --packages.")
    for place, known in found.values():
        texts = {row: first_line(answer["text"])[:40] for row, answer in answers[place.id].items()}
        offered = f"{len(known.names)} names, {'with' if place.name in known.names else 'without'} {place.name}"
        print(f"{place.package:12}{place.kind:8}{offered:50}{texts}")
    rows = {row: _figures(row, found, answers) for row in (PLAIN, *options.rows)}
    print(f"\n{'':12}{'places':>8}{'right':>8}{'before':>8}{'names':>8}{'before':>8}{'invented':>10}{'before':>8}")
    for row, each in rows.items():
        print(f"{row:12}" + "".join(f"{each[key]:>8}" for key in ("places", "right", "right_before", "names")), end="")
        print(f"{each['names_before']:>8}{each['invented']:>10}{each['invented_before']:>8}")
    offered_share = sum(place.name in known.names for place, known in found.values()) / len(found)
    added = [answer["added_ms"] for one in answers.values() for row, answer in one.items() if row in COSTS]
    figures = {
        "benchmark": "names",
        "half": options.half,
        "places": len(found),
        "offered_share": round(offered_share, 3),
        "server_ms_p50": percentile([known.warm_ms for _, known in found.values()], 0.5),
        "added_ms_p95": percentile(added, 0.95) if added else 0.0,
        "rows": rows,
    }
    print(json.dumps(figures))


def _figures(
    row: str, found: dict[str, tuple[Place, Known]], answers: dict[str, dict[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the figures of a row where it applies; those without it at the same places are `before`."""
    pairs = [
        (_judged(*found[id_], answers[id_].get(row, plain)), _judged(*found[id_], plain))
        for id_ in found
        for plain in [answers[id_][PLAIN]]
        if row in answers[id_] or row in COSTS
    ]
    after, before = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return {
        "places": len(pairs),
        "right": sum(one.line for one in after),
        "right_before": sum(one.line for one in before),
        "names": sum(one.name for one in after),
        "names_before": sum(one.name for one in before),
        "invented": sum(one.invented for one in after),
        "invented_before": sum(one.invented for one in before),
        "invented_share": round(sum(one.invented for one in after) / max(len(after), 1), 3),
    }


def _judged(place: Place, known: Known, answer: dict[str, Any]) -> Judged:
    text = answer["text"]
    begun = NAME.match(text.lstrip())
    name = begun[0] if begun else ""
    invented = bool(name and known.names) and name not in known.names and name != place.name
    return Judged(first_line(text) == first_line(place.reference), name == place.name, invented)


def _asked(options: argparse.Namespace) -> Iterator[tuple[Place, Known]]:
    """Yield each place with what the server says there, the packages in turn."""
    kept = {Place(**one["place"]).id: one for one in read_kept(options.known, options.server)}
    lists = [
        list(places_of(package, options.sources / package / options.inside, (options.ending,), options.count))
        for package in _packages(options)
    ]
    server: LanguageServer | None = None
    try:
        for place in (place for row in zip_longest(*lists) for place in row if place is not None):
            if place.id in kept:
                yield place, Known(**{**kept[place.id]["known"], "names": tuple(kept[place.id]["known"]["names"])})
                continue
            server = server or LanguageServer(options.server, options.sources)
            path = options.sources / place.package / options.inside / place.path
            known = server.known_at(path, place.language, place.prefix, place.suffix)
            _keep(options.known, {"model": options.server, "place": asdict(place), "known": asdict(known)})
            yield place, known
    finally:
        if server is not None:
            server.close()


def _packages(options: argparse.Namespace) -> list[str]:
    lines = [line.split() for line in options.packages.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [name for own, name in lines if int(own) == options.half and half(name) == options.half]


def _answers(options: argparse.Namespace, asked: list[tuple[Place, Known]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the answers of all rows by place; those that `--out` lacks are made, package by package."""
    made = {one["id"]: one["rows"] for one in read_kept(options.out, options.model)}
    answering: Answering | None = None
    for place, known in sorted(asked, key=lambda pair: pair[0].package):
        if place.id in made:
            continue
        if answering is None:
            settings = product_settings()
            settings = replace(settings, budget=settings.budget.scaled(options.prompt))
            engine = Engine(load_model(options.model, threads=options.threads), settings)
            answering = Answering(engine, settings.budget.context_tokens)
        if answering.package != place.package:
            folder = options.sources / place.package / options.inside
            answering.open(place.package, sources(folder, place.package, (options.ending,)))
        made[place.id] = answering.answers(place, known, options.rows)
        _keep(options.out, {"model": options.model, "id": place.id, "rows": made[place.id]})
    return made


def _keep(path: Path | None, line: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            print(json.dumps(line), file=file, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder with a folder for each package")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="file of halves and packages")
    parser.add_argument("--inside", default="", help="folder of the sources within that of a package")
    parser.add_argument("--ending", default=".py", help="end of the files' names (default: %(default)s)")
    parser.add_argument("--server", default="basedpyright-langserver --stdio", help="command line of the server")
    parser.add_argument("--half", type=int, choices=(0, 1), default=1, help="half of the packages")
    parser.add_argument("--count", type=int, default=15, help="places of each package (default: %(default)s)")
    parser.add_argument("--known", type=Path, help="file of what the server said; continued")
    parser.add_argument("--out", type=Path, help="file of answers; continued")
    parser.add_argument("--model", default="default", help="model (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="threads of the model; the engine chooses if it is not given")
    parser.add_argument("--prompt", type=float, default=1.0, help="share of the prompt (default: %(default)s)")
    rows = (*COSTS, SIGNATURE, LISTED)
    parser.add_argument("--rows", default=",".join(rows), help="rows, comma-separated: " + ", ".join(rows))
    given = parser.parse_args()
    given.rows, given.sources = tuple(filter(None, given.rows.split(","))), given.sources.resolve()
    if unknown := set(given.rows) - set(rows):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    return given


if __name__ == "__main__":
    main()
