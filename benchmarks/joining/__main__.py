"""`python -m benchmarks.joining`: texts that the product keeps before what stands below, and the shortest insertion.

At cursors of the open data, the benchmark takes the text that was written there, starts of it, and texts that break the
document: a bracket removed or added, the next line said again. It asks the product, whose texts of `completion.closing`
may close what is open, and the shortest insertion in their place (`benchmarks.joining`). It prints how many texts each
keeps by language and by kind, what a search costs, then one line of JSON. It needs no model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from rich.console import Console

from benchmarks.joining.report import Asked, print_tables, summary
from benchmarks.joining.triples import Kind, Triple, places
from benchmarks.joining.verdicts import Cursor, Searcher


def ask(triples: list[Triple], searcher: Searcher) -> Iterator[Asked]:
    """Yield the verdicts on the texts at one cursor: automatic, and manual but for starts, which nobody asks for."""
    first = triples[0]
    cursor = Cursor(searcher, first.prefix, first.suffix, first.language)
    for triple in triples:
        for invoked in (False, True) if triple.kind is not Kind.START else (False,):
            product, insertion = cursor.verdicts(triple, invoked=invoked)
            yield Asked(triple.language, triple.kind, invoked, product, insertion)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joining", description=__doc__)
    parser.add_argument(
        "--cursors", type=int, default=50, help="maximum number of cursors of each language (default: %(default)s)"
    )
    parser.add_argument("--languages", default="", help="languages, separated by commas (default: all of the data)")
    parser.add_argument("--data-dir", help="folder of the data")
    return parser.parse_args()


def main() -> None:
    """Ask about each text and print the figures."""
    arguments = parse_arguments()
    languages = [each for each in arguments.languages.split(",") if each]
    searchers: dict[str, Searcher] = {}
    asked: list[Asked] = []
    for triples in places(arguments.cursors, languages, arguments.data_dir):
        language = triples[0].language
        if language not in searchers:
            searchers[language] = Searcher(language)
        asked += ask(triples, searchers[language])
    print_tables(asked, searchers, Console())
    print(json.dumps(summary(asked, searchers)))


if __name__ == "__main__":
    main()
