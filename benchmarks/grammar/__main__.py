"""`python -m benchmarks.grammar`: false rejections, caught faults, sampling and cost of grammar-constrained decoding.

It also types real changes, and counts the right lines that the grammar would cut meanwhile. It prints a table for each
part, then one line of JSON. The part with real completions needs the default model, and it and the typed sessions need
the benchmark data; `--only` chooses parts.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.grammar.completions import run_completions
from benchmarks.grammar.faults import CHECKS, catch, make_faults
from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.grammar.sampling import COUNTS, run_sampling
from benchmarks.grammar.sources import SourceFile, valid, valid_sources
from benchmarks.grammar.typed import run_typed
from completion.grammar.constraint import GrammarConstraint
from completion.memory import mapped_spans, resident_bytes
from completion.request import GrammarMode
from completion.syntax.table import row_of

_CUTS_A_FILE = 400
"""Maximum number of cuts of one file."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Cuts:
    """Cuts of valid files in one language, and the false rejections among them."""

    files: int = 0
    cuts: int = 0
    cursors: int = 0
    false_rejects: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Return the share of cuts with a false rejection, None without cuts."""
        count = self.cuts + self.cursors
        return len(self.false_rejects) / count if count else None


def measure_cuts(files: list[SourceFile], wanted: int, cursors: int, seed: int) -> Cuts:
    """Feed valid files in pieces of 1 to 12 bytes. The end of each piece is a cut that must not be rejected.

    Without an acceptor, only finished text at cursors is checked.
    """
    found = Cuts()
    rng = random.Random(seed)
    for file in files:
        if found.files >= wanted:
            break
        if not valid(file):
            continue
        found.files += 1
        started = process_time()
        _feed(file, found, rng)
        found.seconds += process_time() - started
        for _ in range(cursors):
            _place_cursor(file, found, rng)
    return found


def _feed(file: SourceFile, found: Cuts, rng: random.Random) -> None:
    grammar = GRAMMARS.load(file.language)
    if grammar is None:
        return
    acceptor, text = grammar.acceptor, file.text.removeprefix(_BYTE_ORDER_MARK)
    offset = rng.randrange(max(1, len(text) - 6 * _CUTS_A_FILE))
    snapshot = acceptor.read(acceptor.start(), text[:offset])
    if snapshot is None:
        found.false_rejects.append(f"{file.name} at byte {offset}")
        return
    for _ in range(_CUTS_A_FILE):
        piece = text[offset : offset + rng.randint(1, 12)]
        after = acceptor.read(snapshot, piece)
        found.cuts += 1
        if after is None:
            found.false_rejects.append(f"{file.name} at byte {offset}")
            return
        snapshot, offset = after, offset + len(piece)
        if offset == len(text):
            break
    whole = acceptor.read(snapshot, text[offset:])
    if whole is None or not acceptor.accepts_end(whole):
        found.false_rejects.append(f"{file.name} at its end")


def _place_cursor(file: SourceFile, found: Cuts, rng: random.Random) -> None:
    """Open a request at a random cursor, feed the text that follows up to a line end, and check its longest cut."""
    text = file.text.decode("utf-8", "replace")
    at = rng.randrange(len(text))
    end = at
    for _ in range(rng.randint(1, 4)):
        end = text.find("\n", end) + 1 or len(text)
    found.cursors += 1
    opened = GrammarConstraint(GRAMMARS, file.language, text[:at], text[end:], GrammarMode.STRICT)
    if opened.root is None and GRAMMARS.load(file.language) is not None:
        found.false_rejects.append(f"{file.name} opened at {at}: {opened.off_reason}")
        return
    middle = text[at:end].encode()
    snapshot, offset = opened.root, 0
    while snapshot is not None and offset < len(middle):
        piece = middle[offset : offset + rng.randint(1, 12)]
        after = opened.advance(snapshot, piece)
        if after is None:
            found.false_rejects.append(f"{file.name} typed at {at} + {offset}")
            return
        snapshot, offset = after, offset + len(piece)
    if opened.longest_passing_cut(middle) < len(middle):
        found.false_rejects.append(f"{file.name} cut at {at}")


def measure_faults(files: list[SourceFile], wanted: int, seed: int) -> Counter[str]:
    """Count what caught each of `wanted` faults of a single token."""
    caught: Counter[str] = Counter()
    rng = random.Random(seed)
    for file in files:
        if caught.total() >= wanted:
            break
        if len(file.text) < 15_000 and valid(file):
            caught.update(catch(fault, rng) for fault in make_faults(file, 6, rng))
    return caught


def run_sources(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure false rejections and caught faults in real files of each language."""
    table = Table(
        "language", "files", "cuts", "cursors", "false rejects", "µs a piece", "faults", "caught", "acceptor", "MB"
    )
    totals, all_caught, languages = Cuts(), Counter[str](), dict[str, dict[str, Any]]()
    for language, files in sorted(valid_sources(arguments.sources, arguments.seed).items()):
        if arguments.languages and language not in arguments.languages:
            continue
        cuts = measure_cuts(files, arguments.files, arguments.cursors, arguments.seed)
        caught = measure_faults(files, arguments.faults, arguments.seed)
        micros = f"{1e6 * cuts.seconds / max(1, cuts.cuts):.1f}"
        figures = (cuts.files, cuts.cuts, cuts.cursors, len(cuts.false_rejects), micros, caught.total())
        memory_mb = round(grammar_bytes(language) / 1e6, 1)
        table.add_row(language, *map(str, (*figures, _share(caught, *CHECKS), _share(caught, CHECKS[0]), memory_mb)))
        languages[language] = {
            "files": cuts.files,
            "false_reject_rate": cuts.rate,
            "fault_catch_rate": _share(caught, *CHECKS),
            "memory_mb": memory_mb,
        }
        totals.cuts, totals.cursors = totals.cuts + cuts.cuts, totals.cursors + cuts.cursors
        totals.false_rejects += cuts.false_rejects
        all_caught += caught
    console.print(table)
    for position in totals.false_rejects[:20]:
        console.print("false rejection:", position)
    return {
        "cuts": totals.cuts + totals.cursors,
        "false_reject_rate": totals.rate,
        "faults": all_caught.total(),
        "fault_catch_rate": _share(all_caught, *CHECKS),
        "fault_catch_rate_acceptor_alone": _share(all_caught, CHECKS[0]),
        "languages": languages,
    }


def grammar_bytes(language: str) -> int:
    """Return the memory of a language's grammar in this process: of its library, its tables and its acceptor."""
    package, grammar = row_of(language).package, GRAMMARS.load(language)
    library = [span for span, _, path in mapped_spans() if package in Path(path).parts]
    return resident_bytes(library) + (grammar.size_bytes if grammar else 0)


def _share(caught: Counter[str], *checks: str) -> float | None:
    """Return the share of the faults that these checks caught, None without faults."""
    count = caught.total()
    return round(sum(caught[check] for check in checks) / count, 4) if count else None


def compare_samplers(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Compare samplers with the exact distribution of a tiny model's grammatical texts."""
    found = run_sampling(arguments.seed)
    table = Table("total variation after", *map(str, COUNTS))
    for name, by_count in found.items():
        table.add_row(name, *(f"{value:.3f}" for value in by_count.values()))
    console.print(table)
    return {"total_variation": found}


PARTS: dict[str, Callable[[argparse.Namespace, Console], dict[str, Any]]] = {
    "sources": run_sources,
    "sampling": compare_samplers,
    "typed": run_typed,
    "completions": run_completions,
}


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grammar", description=__doc__)
    parser.add_argument("--sources", type=Path, help="folder of source files that replaces the pinned releases")
    parser.add_argument("--languages", nargs="*", help="languages of files and completions; without names, all")
    parser.add_argument(
        "--files", type=int, default=6, help="number of real files in each language (default: %(default)s)"
    )
    parser.add_argument(
        "--cursors", type=int, default=3, help="number of requests opened in each file (default: %(default)s)"
    )
    parser.add_argument(
        "--faults", type=int, default=200, help="number of injected faults in each language (default: %(default)s)"
    )
    parser.add_argument(
        "--completions",
        type=int,
        default=12,
        help="number of records of each data set and language (default: %(default)s)",
    )
    parser.add_argument(
        "--typed", type=int, default=100, help="number of sessions that are typed (default: %(default)s)"
    )
    parser.add_argument("--only", default=",".join(PARTS), help="parts, comma-separated (default: %(default)s)")
    parser.add_argument("--model", default="default", help="model of the completions (default: %(default)s)")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Run each part and print the figures."""
    arguments = parse_arguments()
    console = Console()
    figures: dict[str, Any] = {}
    for part in arguments.only.split(","):
        figures |= PARTS[part](arguments, console)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
