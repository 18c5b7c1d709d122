"""`python -m benchmarks.joining`: texts that the product keeps before what stands below, and what the verdicts cost.

At cursors of the open data, the benchmark takes the text that was written there, starts of it, and texts that break the
document: a bracket removed or added, the next line said again. It prints how many of them the grammar keeps whole by
language and by kind, and what a verdict costs with its searches for what is missing (`completion.grammar.shortest`),
then one line of JSON. It needs no model. With `--out`, it writes each verdict to a file, to compare two checkouts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

from rich.console import Console

from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.joining.report import print_tables, summary
from benchmarks.joining.triples import Kind, places
from benchmarks.joining.verdicts import Verdict, verdict
from completion.grammar.shortest import Shortest


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joining", description=__doc__)
    parser.add_argument(
        "--cursors", type=int, default=50, help="maximum number of cursors of each language (default: %(default)s)"
    )
    parser.add_argument("--languages", default="", help="languages, separated by commas (default: all of the data)")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--out", type=Path, help="file for the verdicts, a line each")
    return parser.parse_args()


def table_ms(language: str) -> float:
    """Return the processor time of the build of a language's table, in milliseconds."""
    grammar = GRAMMARS.load(language)
    assert grammar is not None  # the data has languages with a grammar
    started = process_time()
    Shortest(grammar.acceptor)
    return 1000 * (process_time() - started)


def main() -> None:
    """Ask about each text and print the figures."""
    arguments = parse_arguments()
    languages = [each for each in arguments.languages.split(",") if each]
    tables: dict[str, float] = {}
    verdicts: list[Verdict] = []
    for triples in places(arguments.cursors, languages, arguments.data_dir):
        tables.setdefault(triples[0].language, 0.0)
        for each in triples:
            ways = (False, True) if each.kind is not Kind.START else (False,)  # nobody asks for a start
            verdicts += [verdict(each, invoked=invoked) for invoked in ways]
    tables = {language: table_ms(language) for language in tables}
    if arguments.out is not None:
        lines = ([each.triple.language, each.triple.kind, each.invoked, each.kept] for each in verdicts)
        arguments.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print_tables(verdicts, tables, Console())
    print(json.dumps(summary(verdicts, tables)))


if __name__ == "__main__":
    main()
