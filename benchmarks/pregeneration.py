"""`python -m benchmarks.pregeneration`: is the next suggestion there when one is accepted, and what does that cost?

Sessions of `benchmarks.typing` are typed in the rhythm of that benchmark through the real server. A right suggestion is
accepted after as long as the programmers of a study looked at those that they accepted. The rows take turns: with the
setting `ahead` and without it. The last line is JSON; `cpu_s_per_saved_character_added` compares the rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.typing.draftline import DraftlineEditor
from benchmarks.typing.person import Habits, session
from benchmarks.typing.scripts import WARM_UP, choose, release_scripts
from benchmarks.typing.tally import SessionRecord

AHEAD, WITHOUT = "ahead", "without"
ROWS: dict[str, dict[str, Any]] = {
    AHEAD: {"ahead": True},
    WITHOUT: {"ahead": False},
}
"""Settings of each row that differ from the defaults."""
READY_S = 0.010
"""Time from the request after an acceptance within which the text is there."""
LONGEST_S = 2.0
"""Maximum time of a decision, in seconds: after it the server does nothing more."""


def decisions_s(data_dir: str | None) -> list[float]:
    """Return how long the accepted suggestions of the study were on the screen, in seconds."""
    records = read_records("coderec_events.jsonl.gz", data_dir)
    found = (record["after"]["seconds_to_decision"] for record in records if record["accepted"])
    return [min(seconds, LONGEST_S) for seconds in found if seconds is not None]


def figures(found: dict[str, list[SessionRecord]]) -> dict[str, float | None]:
    """Return the figures by name. Costs and saved characters are those of the row `ahead` minus those without it."""
    sums = {row: Sums(records) for row, records in found.items()}
    ahead, without = sums[AHEAD], sums.get(WITHOUT)
    report: dict[str, float | None] = {
        "acceptances": len(ahead.after),
        "ready_after_acceptance": ahead.ready,
        "saved_characters": round(ahead.saved / ahead.written, 4),
    }
    if without is not None:
        saved, cpu_s = ahead.saved - without.saved, ahead.cpu_s - without.cpu_s
        report |= {
            "saved_characters_without": round(without.saved / without.written, 4),
            "saved_characters_added": saved,
            "cpu_s_added": round(cpu_s, 2),
            "cpu_s_per_saved_character_added": round(cpu_s / saved, 3) if saved > 0 else None,
        }
    return report


class Sums:
    """The sums of one row.

    Attributes:
        after: Seconds from the request after each acceptance of a whole suggestion to its text, None without text.
        ready: Share of them within `READY_S`; None without any.
    """

    def __init__(self, records: Sequence[SessionRecord]) -> None:
        self.written = sum(one.characters for one in records)
        self.saved = sum(one.saved_characters for one in records)
        self.keys = sum(one.keys for one in records)
        self.cpu_s = sum(one.cpu_s for one in records)
        self.after = [
            None if request.first_text_s is None else request.first_text_s - request.asked_s
            for one in records
            for request in one.requests
            if request.follows
        ]
        ready = sum(1 for seconds in self.after if seconds is not None and seconds <= READY_S)
        self.ready = round(ready / len(self.after), 3) if self.after else None


def print_table(found: dict[str, list[SessionRecord]]) -> None:
    """Print one line for each row."""
    table = Table()
    for column in ("row", "characters", "saved", "keys", "acceptances", "with text", "ready", "cpu s"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for row, records in found.items():
        sums = Sums(records)
        with_text = sum(seconds is not None for seconds in sums.after)
        cells = (sums.written, sums.saved, sums.keys, len(sums.after), with_text, sums.ready, round(sums.cpu_s, 1))
        table.add_row(row, *map(str, cells))
    Console(width=110).print(table)


async def run(options: argparse.Namespace) -> None:
    """Start a server for each row, type the sessions in turn, and print the results."""
    records = read_records("open_release_replay.jsonl.gz", options.data_dir)
    scripts = choose(release_scripts(records, options.characters), [], options.sessions, options.seed)
    decisions = decisions_s(options.data_dir)
    if not decisions:
        raise SystemExit("The study has no accepted suggestion. Name another folder with --data-dir.")
    habits = Habits(decisions_s=decisions)
    found: dict[str, list[SessionRecord]] = {row: [] for row in options.rows}
    async with AsyncExitStack() as stack:
        editors = {row: DraftlineEditor(row, {"threads": options.threads, **ROWS[row]}) for row in options.rows}
        for editor in editors.values():
            stack.push_async_callback(editor.stop)  # first, because an engine that fails runs on without it
            await editor.start()
            await session(editor, WARM_UP, habits, options.seed)
        for number, script in enumerate(scripts):
            turn = number % len(options.rows)
            for row in (*options.rows[turn:], *options.rows[:turn]):
                record = await session(editors[row], script, habits, options.seed)
                found[row].append(record)
                print(
                    f"{row:18} {script.id[:60]:60} {record.saved_characters:4} saved {record.cpu_s:5.1f} s", flush=True
                )
    print_table(found)
    print(json.dumps(figures(found)))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pregeneration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--sessions", type=int, default=16, help="number of files to type in (default: %(default)s)")
    parser.add_argument(
        "--characters", type=int, default=100, help="characters typed in a session (default: %(default)s)"
    )
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, default=[AHEAD, WITHOUT], metavar="ROW", help=", ".join(ROWS)
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    options = parser.parse_args()
    if AHEAD not in options.rows:
        parser.error(f"--rows must have {AHEAD}, which the others are compared with")
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
