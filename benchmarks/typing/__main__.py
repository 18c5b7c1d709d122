"""`python -m benchmarks.typing`: a person types real code, with draftline and with llama.vim.

When is the right text there? Release replays and a recorded editing trace are typed key by key at a person's rhythm,
through the real language server and through a real llama-server behind llama.vim's own logic: on this machine, in one
run, session by session in turn. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil

from benchmarks.data import data_dir, read_records
from benchmarks.typing.assistant import Assistant
from benchmarks.typing.draftline import DraftlineEditor
from benchmarks.typing.host import stale_requests
from benchmarks.typing.llama_vim import LlamaVimEditor
from benchmarks.typing.person import Habits, Person
from benchmarks.typing.report import draw, headline, print_table
from benchmarks.typing.scripts import Passage, Script, choose, release_scripts, trace_scripts
from benchmarks.typing.tally import RowTally, SessionRecord

OURS, THEIRS = "draftline", "llama.vim"
OUR_ROWS: dict[str, dict[str, Any]] = {
    OURS: {},
    "no drafts": {"drafting": False},
    "no PIE": {"cache": "exact"},
    "no grammar": {"grammar": "off"},
    "k = 1": {"suggestions": 1},
}
THEIR_ROWS: dict[str, tuple[str, ...]] = {
    THEIRS: (),
    "llama.vim, n-gram": ("--spec-default",),
    "llama.vim, suffix first": ("--spm-infill",),
}
ROWS = (OURS, THEIRS, "llama.vim, n-gram", "llama.vim, suffix first", "no drafts", "no PIE", "no grammar", "k = 1")

_TRACE = "trace_sveltecomponent.json.gz"
_WARM_UP = Script("warm-up", "python", "warm_up.py", "import sys\n\n\n", (Passage(11, 0, "def main():\n"),), 12)
_MB = 1e6


def scripts(options: argparse.Namespace) -> list[Script]:
    """The sessions of a run."""
    if options.data is not None:
        opener = gzip.open if options.data.suffix == ".gz" else open
        with opener(options.data, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        return choose(release_scripts(records, options.characters), [], options.sessions, options.seed)
    releases = release_scripts(read_records("open_release_replay.jsonl.gz", options.data_dir), options.characters)
    traces = trace_scripts(data_dir(options.data_dir) / _TRACE, options.characters, 1 + options.sessions // 8)
    return choose(releases, traces, options.sessions, options.seed)


def rounds(
    chosen: Sequence[str], others_a_round: int, sessions: Sequence[Script]
) -> Iterator[tuple[Script, list[str]]]:
    """Who types which session, in turn: the two that are compared always, of the others some; the order changes."""
    compared = [row for row in chosen if row in (OURS, THEIRS)]
    others = [row for row in chosen if row not in compared]
    for turn, script in enumerate(sessions):
        first = turn * others_a_round
        now = [others[(first + number) % len(others)] for number in range(min(others_a_round, len(others)))]
        rows = compared + now
        yield script, rows[turn % len(rows) :] + rows[: turn % len(rows)]


async def session(assistant: Assistant, script: Script, seed: int) -> SessionRecord:
    """Type one script, and note what it cost."""
    person = Person(assistant, script, Habits(), seed)
    await person.begin()
    before_s, started = _cpu_s(assistant.processes), time.monotonic()
    record = await person.work()
    record.seconds = time.monotonic() - started
    record.cpu_s = _cpu_s(assistant.processes) - before_s
    record.resident_mb = sum(process.memory_info().rss for process in assistant.processes) / _MB
    return record


def _sentence(row: str, record: SessionRecord) -> str:
    typed = f"{record.characters:4} characters in {record.seconds:5.1f} s, {record.saved_characters:3} saved"
    return f"{row:24} {record.language:11} {typed}, {record.cpu_s:5.1f} s of processor"


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _assistant(row: str, options: argparse.Namespace) -> Assistant:
    if row in OUR_ROWS:
        return DraftlineEditor(row, {**OUR_ROWS[row], "threads": options.threads})
    return LlamaVimEditor(row, THEIR_ROWS[row], options.threads, options.seed)


async def run(options: argparse.Namespace) -> None:
    """Start everybody, let them type in turn, print."""
    found: dict[str, list[SessionRecord]] = {row: [] for row in options.rows}
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        assistants: dict[str, Assistant] = {}
        for row in options.rows:
            assistant = assistants[row] = _assistant(row, options)
            await assistant.start()
            stack.push_async_callback(assistant.stop)
            await session(assistant, _WARM_UP, options.seed)
        for script, rows in rounds(options.rows, options.others, scripts(options)):
            if time.monotonic() - started > options.seconds:
                break
            for row in rows:
                record = await session(assistants[row], script, options.seed)
                found[row].append(record)
                print(f"{time.monotonic() - started:5.0f} s  {_sentence(row, record)}", flush=True)
        ours = assistants.get(OURS)
        stale = await stale_requests(ours.socket_path) if isinstance(ours, DraftlineEditor) else 0
    tallies = {row: RowTally(tuple(records)) for row, records in found.items() if records}
    figures = {row: tally.figures() for row, tally in tallies.items()}
    print_table(figures)
    if options.plot is not None:
        draw({row: tally for row, tally in tallies.items() if row == OURS or row in THEIR_ROWS}, options.plot)
    if OURS in figures and THEIRS in figures:
        print(json.dumps(headline(figures[OURS], figures[THEIRS], stale)))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FILE", help="other replays: JSON lines with before and after")
    parser.add_argument("--data-dir", help="where the open data lies")
    parser.add_argument("--sessions", type=int, default=10, help="files to type in (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=780, help="no new session after so long (default: %(default)s)"
    )
    parser.add_argument("--characters", type=int, default=100, help="typed in a session (default: %(default)s)")
    parser.add_argument(
        "--others", type=int, default=2, help="rows a session beside the first two (default: %(default)s)"
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--threads", type=int, default=2, help="of each engine (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw the times to first text into this file")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
