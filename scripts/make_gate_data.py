"""Make the release replays that the gate of next edits is trained on.

The program that made the open data downloads the packages of `benchmarks/next_edit/packages.txt` instead of its own
ones, and runs none of their code.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

PACKAGES = Path(__file__).resolve().parents[1] / "benchmarks" / "next_edit" / "packages.txt"
"""One pair of releases a line: licence, registry:name, older version, newer version."""
MAX_COMPARED = 100
"""Maximum number of changed files of a pair that are compared."""
MAX_FILES, MAX_RECORDS = 12, 600
"""Maximum number of files of a language that one pair gives, and all give."""


def main() -> None:
    """Set the maker's packages and quotas, then run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maker", metavar="MAKER", type=Path, help="make_replay_data.py, which made the open data")
    parser.add_argument("folder", metavar="FOLDER", help="folder of the files that it writes")
    given = parser.parse_args()
    spec = spec_from_file_location("make_replay_data", given.maker) if given.maker.is_file() else None
    if spec is None or spec.loader is None:
        parser.error(f"{given.maker} is no Python file. Give the path of make_replay_data.py.")
    sys.argv[1:] = [given.folder]
    maker: Any = module_from_spec(spec)
    sys.modules[spec.name] = maker  # its types look their module up
    spec.loader.exec_module(maker)
    tables: defaultdict[str, str] = defaultdict(str)
    for line in PACKAGES.read_text(encoding="utf-8").splitlines():
        licence, pair = line.split(" ", 1)
        tables[licence] += pair + " "
    replays = maker.replays

    def some_replays(package: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - the maker's type
        """Yield the replays of some changed files: comparing all of a large package takes minutes."""
        before, after = package.before, package.after
        changed = sorted(path for path in before.keys() & after.keys() if before[path] != after[path])
        chosen = Random(f"0:{package.name}").sample(changed, min(len(changed), MAX_COMPARED))
        sides = ({path: side[path] for path in chosen} for side in (before, after))
        yield from replays(package._replace(**dict(zip(("before", "after"), sides, strict=True))))

    maker.PACKAGES = tables
    maker.QUOTAS = {"release_replay": (dict.fromkeys(maker.REPLAYS, MAX_RECORDS), MAX_FILES)}
    maker.replays = some_replays
    maker.contexts = maker.cursors = lambda *_: ()
    maker.main()


if __name__ == "__main__":
    main()
