"""`python -m benchmarks.ending_calls`: calls of Python functions that the rules of a text's end make for each token.

It needs no model: the true middle of each open task grows token by token, as if it were generated. After each token,
the stop rules look at it, what may be shown of it is decided, and what that replaces.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from benchmarks.quality.sets import FILES, MID_LINE, half_of, open_tasks
from benchmarks.quality.tasks import Task
from benchmarks.resync import chosen
from completion.decoding.stop_rules import StopRules
from completion.ending.context import cursor_context
from completion.ending.decision import replaced_by, shown
from completion.request import CompletionRequest

_TOKEN = re.compile(r"[ \t]*\w+|\n\s*|[^\w\n]")
_MOST_TOKENS = 64
_MOST_ROWS = 20


def calls_of(function: Callable[[], object]) -> Counter[str]:
    """Return how often each Python function is called by a call."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls


def calls_for(task: Task) -> tuple[int, Counter[str]]:
    """Return the number of tokens of a task's middle up to its end, and the calls for all of them."""
    request = CompletionRequest(task.prefix, task.document_suffix, task.language)
    context = cursor_context(request)
    rules, ends = StopRules(request, context), [found.end() for found in _TOKEN.finditer(task.reference)][:_MOST_TOKENS]
    tokens = 0

    def grow() -> None:
        nonlocal tokens
        for end in ends:
            tokens += 1
            if rules.text_end(task.reference[:end]) is not None:
                break
            replaced_by(shown(task.reference[:end], context), context)

    calls = calls_of(grow)
    return tokens, calls


def main() -> None:
    """Print the most frequent calls, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ending_calls", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the open data")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only tasks of one half of the packages")
    given = parser.parse_args()
    tasks = [task for task in open_tasks([*FILES, MID_LINE], given.data_dir) if given.half in (None, half_of(task.id))]
    if not tasks:
        raise SystemExit("The data has no task. Name another folder with --data-dir.")
    tokens, calls = 0, Counter[str]()
    for task in chosen(tasks):
        count, of_task = calls_for(task)
        tokens, calls = tokens + count, calls + of_task
    table = Table("function", "calls a token")
    for name, count in calls.most_common(_MOST_ROWS):
        table.add_row(name, f"{count / tokens:.1f}")
    Console(width=110).print(table)
    print(json.dumps({"tasks": len(chosen(tasks)), "tokens": tokens, "calls_a_token": round(calls.total() / tokens)}))


if __name__ == "__main__":
    main()
