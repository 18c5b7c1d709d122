"""`python -m benchmarks.team`: how long the first text takes when several people type at once, on each server.

Each typist types changes of real releases in a human rhythm, with a file and a window of their own. Our host runs for
the benchmark alone, as does vLLM with `--vllm-python`. A vLLM or a llama-server that runs already is measured where its
address is given. Each typist has an engine of their own over them.
On a vLLM, one typist is measured alone before the rooms: what a key waits for, and what draftline adds to it.
`--simulate` computes instead how many typists a server would serve, from the costs of its steps. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from benchmarks.data import read_records
from benchmarks.figures import percentile, ratio, rounded
from benchmarks.team.servers import ModelServerRow, OurHost, Server, VllmRow
from benchmarks.team.simulation import simulate
from benchmarks.team.typist import TeamEditor
from benchmarks.team.typist_alone import typist_alone
from benchmarks.typing.person import Habits, session
from benchmarks.typing.scripts import Script, choose, release_scripts
from benchmarks.typing.tally import RowTally, SessionRecord
from completion.remote.address import RemoteAddress

WANTED_P95_MS = 300.0
"""Time to the first text that 95 % of the requests of a room have to keep, in milliseconds."""

LONG_PAUSE_S = WANTED_P95_MS / 1e3 + Habits().read_s
"""Pause from which on a first text that comes in time leaves the person time to read it, in seconds."""

_ARRIVAL_S = 3.0  # the typists begin within this time


@dataclass(frozen=True, slots=True)
class Room:
    """What a number of typists met on one server.

    Attributes:
        sessions: Their finished sessions, with the keys and requests that were sent while all of them typed.
        refusals: Number of requests that were refused or failed, by code.
    """

    sessions: Sequence[SessionRecord]
    refusals: Mapping[str, int]

    def figures(self) -> dict[str, float | None]:
        """Return the figures by name, None where there is no data.

        A pause without text is one whatever became of the request: dropping or cancelling requests gains nothing there.
        """
        tally = RowTally(tuple(self.sessions))
        found, counts = tally.figures(), (request.computed_tokens for request in tally.requests)
        computed = [count for count in counts if count is not None]
        pauses = [look for each in self.sessions for look in each.looks if look.asked and look.pause_s >= LONG_PAUSE_S]
        read = sum(look.shown_s >= Habits().read_s for look in pauses)
        return {
            "ttft_p50_ms": rounded(found["first_text_p50_ms"], 1),
            "ttft_p95_ms": rounded(found["first_text_p95_ms"], 1),
            "done_p50_ms": found["done_p50_ms"],
            "requests": found["requests"],
            "answered": found["answered"],
            "pauses": len(pauses),
            "pauses_with_text_share": rounded(ratio(read, len(pauses)), 3),
            "computed_tokens_p50": percentile(computed, 0.5),
            "computed_tokens_p95": percentile(computed, 0.95),
            "refused": sum(self.refusals.values()),
        }


async def room(server: Server, typists: int, scripts: Sequence[Script], seconds: float, seed: int) -> Room:
    """Let a number of people type at once, each one session after the other, until the time is over.

    They finish their last sessions, but what is sent then does not count: fewer and fewer of them type.
    """
    editors = [TeamEditor(f"typist {number}", server.desk(f"typist {number}")) for number in range(typists)]
    end_s, random = time.monotonic() + seconds, Random(seed)

    async def types(number: int, editor: TeamEditor, arrival_s: float) -> list[SessionRecord]:
        await asyncio.sleep(arrival_s)
        found: list[SessionRecord] = []
        while time.monotonic() < end_s:
            script = scripts[(number + len(found) * typists) % len(scripts)]
            found.append(await session(editor, script, Habits(), seed + len(found)))
        return found

    try:
        arrivals = [random.uniform(0, _ARRIVAL_S) for _ in editors]
        done = await asyncio.gather(*(types(*each) for each in zip(range(typists), editors, arrivals, strict=True)))
    finally:
        await asyncio.gather(*(editor.stop() for editor in editors))
    codes = [code for editor in editors for code in editor.refusals]
    return Room(
        [sent_before(end_s, record) for records in done for record in records],
        {code: codes.count(code) for code in set(codes)},
    )


def sent_before(end_s: float, record: SessionRecord) -> SessionRecord:
    """Return a session with those of its keys and requests that were sent before a time."""
    looks = [look for look in record.looks if look.at_s < end_s]
    return replace(record, looks=looks, requests=[request for request in record.requests if request.asked_s < end_s])


def servers(options: argparse.Namespace) -> dict[str, Server]:
    """Return the servers of a run by name: our host, and those whose addresses are given."""
    found: dict[str, Server] = {
        "draftline": OurHost(["--model", options.model, "--session-memory", options.session_memory])
    }
    if options.no_host:
        found.clear()
    addresses = (
        ("vllm", RemoteAddress(options.vllm, "vllm", options.token_file)),
        ("llama_server", RemoteAddress(options.llama_server, "llama-server", options.token_file)),
    )
    found |= {name: ModelServerRow(address, options.model) for name, address in addresses if address.url}
    if options.vllm_python:
        found["vllm"] = VllmRow(options.vllm_python, options.model)
    return found


def summary(
    rows: Mapping[str, Mapping[int, Mapping[str, float | None]]], one: Mapping[str, float | None] | None = None
) -> dict[str, Any]:
    """Return the last line: each figure by server, and by number of typists; and those of one typist on vLLM."""
    names = ("ttft_p50_ms", "ttft_p95_ms", "pauses", "pauses_with_text_share", "refused", "computed_tokens_p95")
    found: dict[str, Any] = {
        name: {server: {count: figures[name] for count, figures in rooms.items()} for server, rooms in rows.items()}
        for name in names
    }
    found["typists_at_p95_300ms"] = {server: served(rooms) for server, rooms in rows.items()}
    return found | dict(one or {})


def shown_as(key: str, figure: float | None) -> str:
    """Return a figure as the table shows it."""
    if figure is None:
        return "–"
    return f"{figure:.0%}" if key.endswith("_share") else f"{figure:,.0f}"


def served(rooms: Mapping[int, Mapping[str, float | None]]) -> int:
    """Return the largest number of typists who get text in time and of whom nobody is refused, 0 for none."""
    best = 0
    for count, figures in sorted(rooms.items()):
        p95_ms = figures["ttft_p95_ms"]
        if p95_ms is None or p95_ms > WANTED_P95_MS or figures["refused"]:
            break
        best = count
    return best


async def run(options: argparse.Namespace) -> None:
    """Measure each server with each number of typists, and print the results."""
    records = read_records("open_release_replay.jsonl.gz", options.data_dir)
    releases = release_scripts(records, options.characters)
    scripts = choose(releases, [], 4 * max(options.typists), options.seed)
    rows: dict[str, dict[int, dict[str, float | None]]] = {}
    one: dict[str, float | None] = {}
    for name, server in servers(options).items():
        try:
            await server.start()
            if name == "vllm" and isinstance(server, ModelServerRow):
                one = await asyncio.to_thread(typist_alone, server.model, server.address.url, scripts)
                print(f"{name:13} one typist alone: {one}", flush=True)
            for typists in options.typists:
                found = await room(server, typists, scripts, options.seconds, options.seed)
                rows.setdefault(name, {})[typists] = figures = found.figures()
                shown = "  ".join(f"{key} {shown_as(key, each)}" for key, each in figures.items())
                print(f"{name:13} {typists:3} typists  {shown}  {dict(found.refusals)}", flush=True)
        finally:
            await server.stop()
    print(json.dumps(summary(rows, one)))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.team", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model of our host, whose tokenizer all servers have")
    parser.add_argument(
        "--typists", type=int, nargs="+", default=[1, 4, 8, 16, 32], metavar="N", help="sizes of the rooms"
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="time after which no session starts and no request counts"
    )
    parser.add_argument(
        "--characters", type=int, default=100, help="characters typed in a session (default: %(default)s)"
    )
    parser.add_argument("--no-host", action="store_true", help="measure only the servers whose addresses are given")
    parser.add_argument("--session-memory", default="0.25", metavar="SHARE", help="as of `draftline serve`")
    vllm = parser.add_mutually_exclusive_group()
    vllm.add_argument("--vllm", default="", metavar="URL", help="address of a running vLLM")
    vllm.add_argument(
        "--vllm-python", default="", metavar="PATH", help="python with vLLM, to start it for the benchmark"
    )
    parser.add_argument("--llama-server", default="", metavar="URL", help="address of a running llama-server")
    parser.add_argument("--token-file", default="", help="file with the token of these servers")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is random (default: %(default)s)")
    parser.add_argument("--simulate", action="store_true", help="compute how many typists engines and cards serve")
    options = parser.parse_args()
    if options.simulate:
        print(json.dumps(simulate(options.typists, WANTED_P95_MS)))
    else:
        asyncio.run(run(options))


if __name__ == "__main__":
    main()
