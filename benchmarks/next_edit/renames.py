"""`python -m benchmarks.next_edit.renames`: are all uses in another file proposed after a definition is renamed?

Each record of the data has a file that uses a name of another file of its package. The definition is renamed there, and
the rest of that file as well, as the user does before going on. What the rules and their gate show in the file that
uses the name is compared with the same rename of all its lines; lines in comments and strings count as missed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.data import read_records
from completion.edits import LineEdit, NextEdit, NextEditRequest
from completion.next_edit.finder import without_overlaps
from completion.next_edit.gate import SHOWN_FROM, Gate
from completion.next_edit.proposals import proposals
from completion.syntax.parsing import IN_PROCESS

FILE = "open_repo_context.jsonl.gz"
"""Data file: lines that use a name which another file defines."""
_DEFINING = r"\b(?:def|class|fn|struct|enum|trait|type|const|static|function|let|interface) +"


def renamed(record: Mapping[str, Any]) -> Counter[str] | None:
    """Return how many lines have the name of a record and how many are shown; None if its definition is not found."""
    name, defining = record["symbol"], record["context"][0]
    word = re.compile(rf"\b{re.escape(name)}\b")
    old = defining["text"].split("\n")
    new = [word.sub(f"{name}_new", line) for line in old]
    at = next((number for number, line in enumerate(old) if re.search(_DEFINING + word.pattern, line)), None)
    if at is None:
        return None
    lines = (record["prefix"] + record["reference"] + record["suffix"]).split("\n")
    edits = (LineEdit(at, (old[at],), (new[at],)),)
    asked = NextEditRequest(tuple(new), edits, record["language"], defining["path"], elsewhere=tuple(lines))
    found = proposals(asked, IN_PROCESS)
    chances = [Gate.shipped().rules.probability(each.rule_features()) for each in found]
    likely = [
        NextEdit(each.candidate.line, each.candidate.old, each.candidate.new, chance)
        for each, chance in zip(found, chances, strict=True)
        if chance >= SHOWN_FROM
    ]
    shown = without_overlaps(likely)
    having = sum(word.search(line) is not None for line in lines)
    right = sum(edit.new == (word.sub(f"{name}_new", lines[edit.line]),) for edit in shown)
    return Counter(files=1, complete=right == having, lines=having, right=right, wrong=len(shown) - right)


def run(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts of all records."""
    total = sum((counts for record in records if (counts := renamed(record))), Counter[str]())
    return {key: total[key] for key in ("files", "complete", "lines", "right", "wrong")}


def main() -> None:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next_edit.renames", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    print(json.dumps(run(read_records(FILE, parser.parse_args().data_dir))))


if __name__ == "__main__":
    main()
