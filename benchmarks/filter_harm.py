"""`python -m benchmarks.filter_harm`: share of right answers that the filters would change.

It sends the reference of each open task through the filters, as if the model had written it. It needs no model.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from rich.console import Console
from rich.table import Table

from benchmarks.quality.sets import FILES, MID_LINE, made_apart, open_tasks
from benchmarks.quality.tasks import Task
from completion.ending.context import cursor_context
from completion.ending.decision import RULES, finished
from completion.ending.rule import DropReason
from completion.request import CompletionRequest, Mode, Suggestion


def first_to_change(task: Task) -> str | None:
    """Return the name of the first rule that changes the reference except its trailing blanks, None if none does."""
    mode = Mode.BLOCK if "\n" in task.reference.strip("\n") else task.mode
    request = CompletionRequest(task.prefix, task.document_suffix, task.language, mode=mode, invoked=True)
    context = cursor_context(request)
    text = task.reference
    for rule in RULES:
        kept = text[: rule(text, context).maybe]
        if kept.rstrip() != text.rstrip():
            return rule.__name__
        text = kept
    result = finished(Suggestion(text), context)
    return "shape" if isinstance(result, DropReason) or result.text.rstrip() != text.rstrip() else None


def main() -> None:
    """Print a table by data set, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filter_harm", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the open data")
    folder = parser.parse_args().data_dir
    tasks = list(open_tasks([*FILES, MID_LINE, *made_apart(folder)], folder))
    if not tasks:
        raise SystemExit("The data has no task. Name another folder with --data-dir.")
    changed = {dataset: Counter[str]() for dataset in dict.fromkeys(task.dataset for task in tasks)}
    for task in tasks:
        name = first_to_change(task)
        if name is not None:
            changed[task.dataset][name] += 1
    table = Table("data set", "references", "changed", "by filter")
    for dataset, names in changed.items():
        count = sum(task.dataset == dataset for task in tasks)
        listed = ", ".join(f"{name} {number}" for name, number in names.most_common())
        table.add_row(dataset, str(count), f"{100 * names.total() / count:.1f} %", listed)
    Console(width=110).print(table)
    harmed = sum(names.total() for names in changed.values())
    print(json.dumps({"references": len(tasks), "changed_share": round(harmed / len(tasks), 4)}))


if __name__ == "__main__":
    main()
