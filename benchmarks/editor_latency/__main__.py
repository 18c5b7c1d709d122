"""`python -m benchmarks.editor_latency`: time from a key in a real Neovim to the text on its screen, by part.

It prints two tables and a JSON line. Each sample presses one key after a pause at the cursor, so that the cache is
warm, as it is in everyday use. The screen, the language server and the engine use the monotonic clock of one machine.
The engine is the real one, in private folders. The second table compares the time to the first text in a client that is
sent growing text with that in one that is not, at the same keys and at some that blocks follow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.editor_latency.first_answer import BLOCKS, LINE, first_answers
from benchmarks.editor_latency.neovim_driver import Neovim, NeovimError
from benchmarks.engine_processes import engine_processes, private_folders, used_cpu_s
from benchmarks.figures import percentile, rounded

REPOSITORY = Path(__file__).resolve().parents[2]
NEOVIM = REPOSITORY / ".cache" / "neovim" / "root" / "usr" / "bin" / "nvim"
PAUSE_S = 0.6  # the plugin reports a cursor that stays for 0.15 s, then the server prepares the engine
ANSWER_S = 0.2  # after the last text from the engine, the server sends that text and the answer to the editor
LONGEST_S = 15.0
FIRST_S = 180.0  # the first request compiles kernels that have changed
QUIET_S = 2.0
LONGEST_SETTLING_S = 60.0

POINT = """class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def move(self, dx, dy):
        self.x += dx
        self."""

# Text before the cursor, and the key that is pressed.
PLACES = (
    ("def add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n    ", "r"),
    ("def area(width, height):\n    return width * height\n\n\ndef perimeter(width, height):\n    ", "r"),
    ("values = [3, 1, 2]\nvalues.sort()\nfor value in values:\n    ", "p"),
    (POINT, "y"),
    ("import json\n\nwith open(path) as file:\n    data = json.", "l"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Times of one key, in milliseconds. The parts add up to the total.

    Attributes:
        total: Time from the key press to the text on the screen.
        editor: Time from the key press until the server has the request.
        debounce: Wait that the server chose.
        server: Work of the server, and the transport to the engine and back.
        engine: Time from the engine's receipt of the request to its first text.
        render: Time from the arrival of the text at the server to the screen.
    """

    total: float
    editor: float
    debounce: float
    server: float
    engine: float
    render: float


class Log:
    """Reader of the growing log of `stopwatch_server`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def skip(self) -> None:
        """Skip all events that the log has now."""
        self._offset = self._path.stat().st_size

    def events(self) -> list[dict[str, Any]]:
        """Return the events since the last `skip`."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            return [json.loads(line) for line in file if line.endswith(b"\n")]

    def wait_for(self, what: str) -> None:
        """Wait for an event `what` since the last `skip`.

        Raises:
            NeovimError: No such event came within LONGEST_S.
        """
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            if any(event["what"] == what for event in self.events()):
                return
            time.sleep(0.01)
        raise NeovimError(f"The log of the server has no event {what!r} after {LONGEST_S} s.")


def open_editor(program: Path, folder: Path, environment: Mapping[str, str]) -> tuple[Neovim, Log]:
    """Start Neovim with the plugin and the timed server, and wait until the model is ready.

    Raises:
        NeovimError: The model is not ready within two minutes; Neovim is closed.
    """
    log = folder / "stopwatch.jsonl"
    log.touch()
    command = [sys.executable, "-m", "benchmarks.editor_latency.stopwatch_server", str(log), "--stdio"]
    init = folder / "init.lua"
    init.write_text(
        f"vim.opt.runtimepath:prepend({json.dumps(str(REPOSITORY / 'ide_clients' / 'neovim'))})\n"
        'vim.o.swapfile = false\nvim.api.nvim_set_hl(0, "ComplHint", { fg = "#7a8090" })\n'
        f'require("draftline").setup({{ cmd = {{ {", ".join(map(json.dumps, command))} }}, '
        "settings = { quiet_ms = 0 } })\n",
        encoding="utf-8",
    )
    (folder / "example.py").touch()
    homes = {f"XDG_{name}_HOME": str(folder) for name in ("CONFIG", "DATA", "STATE")}
    arguments = ["-u", str(init), "-i", "NONE", str(folder / "example.py")]
    neovim = Neovim(program, arguments, {**environment, **homes, "PYTHONPATH": str(REPOSITORY)})
    try:
        neovim.wait_for_lua("(require('draftline.status').latest() or {}).kind == 'ready'", "engine that is ready", 120)
    except NeovimError:
        neovim.close()
        raise
    return neovim, Log(log)


def press(
    neovim: Neovim, log: Log, text: str, key: str, longest_s: float = LONGEST_S
) -> tuple[Sample, list[dict[str, Any]]]:
    """Put the cursor at the end of a text, pause, press a key, and time the suggestion that appears.

    Raises:
        NeovimError: No suggestion appeared.
    """
    lines = text.split("\n")
    neovim.request("nvim_buf_set_lines", 0, 0, -1, False, lines)
    neovim.request("nvim_win_set_cursor", 0, [len(lines), max(0, len(lines[-1]) - 1)])
    neovim.command("set eventignore=InsertEnter")  # entering insert mode would send an automatic request
    neovim.type("A")
    neovim.wait_for_lua("vim.api.nvim_get_mode().mode == 'i'", "insert mode")
    neovim.command("set eventignore=")
    time.sleep(PAUSE_S)
    log.skip()
    pressed = time.monotonic()
    neovim.type(key)
    neovim.wait_for_ghost(timeout_s=longest_s)
    shown = next(at for at, ghost in zip(neovim.ghost_times, neovim.ghosts, strict=True) if ghost and at > pressed)
    log.wait_for("done")
    time.sleep(ANSWER_S)
    events = log.events()
    neovim.type("<Esc>")
    neovim.wait_for_no_ghost()
    return _sample(events, pressed, shown), events


def _sample(events: Sequence[Mapping[str, Any]], pressed: float, shown: float) -> Sample:
    at = {event["what"]: event["at"] for event in reversed(events)}  # the first of each kind
    ms = {event["what"]: event["ms"] for event in reversed(events) if "ms" in event}
    debounce, engine = ms.get("wait", 0.0), ms["done"]
    return Sample(
        total=1000 * (shown - pressed),
        editor=1000 * (at["asked"] - pressed),
        debounce=debounce,
        server=1000 * (at["first"] - at["asked"]) - debounce - engine,
        engine=engine,
        render=1000 * (shown - at["first"]),
    )


def idle_cpu_percent(processes: Sequence[psutil.Process], seconds: float) -> tuple[float, float]:
    """Wait until the work for the last key has ended, then measure the processes while nothing is typed.

    Returns:
        The use of one core in percent, and the seconds that the work for the last key took (caches, telemetry).

    Raises:
        NeovimError: The processes are still busy after LONGEST_SETTLING_S.
    """
    started = time.monotonic()
    before, now = used_cpu_s(processes), -1.0
    while now != before:
        if time.monotonic() - started > LONGEST_SETTLING_S:
            raise NeovimError(f"Server and engine are still busy {LONGEST_SETTLING_S:g} s after the last key.")
        before = used_cpu_s(processes)
        time.sleep(QUIET_S)
        now = used_cpu_s(processes)
    settled = time.monotonic()
    time.sleep(seconds)
    return 100 * (used_cpu_s(processes) - now) / seconds, settled - started


def _percentile(values: Sequence[float], share: float) -> float | None:
    return rounded(percentile(values, share), 1)


def _print_table(samples: Sequence[Sample]) -> None:
    table = Table("part", "p50 ms", "p95 ms", title=f"key press to text on the screen, {len(samples)} keys")
    for field in fields(Sample):
        values = [getattr(sample, field.name) for sample in samples]
        table.add_row(field.name, f"{_percentile(values, 0.5)}", f"{_percentile(values, 0.95)}")
    Console().print(table)


def _print_first_answers(first: Mapping[str, Sequence[float]]) -> None:
    table = Table("client", "keys", "p50 ms", "p95 ms", title="key to the first text in the client")
    for client, values in first.items():
        table.add_row(
            client.replace("_", " "), f"{len(values)}", f"{_percentile(values, 0.5)}", f"{_percentile(values, 0.95)}"
        )
    Console().print(table)


def _report(
    samples: Sequence[Sample], messages: Sequence[float], sizes: Sequence[float], idle: tuple[float, float]
) -> dict[str, Any]:
    by_part = {name: [asdict(sample)[name] for sample in samples] for name in asdict(samples[0])}
    overhead = [sample.total - sample.debounce - sample.engine for sample in samples]
    return {
        "keys": len(samples),
        "p50_ms": {name: _percentile(values, 0.5) for name, values in by_part.items()},
        "p95_ms": {name: _percentile(values, 0.95) for name, values in by_part.items()},
        "overhead_p50_ms": _percentile(overhead, 0.5),
        "overhead_p95_ms": _percentile(overhead, 0.95),
        "messages_per_key": round(statistics.mean(messages), 1),
        "bytes_per_key": round(statistics.mean(sizes)),
        "idle_cpu_percent": round(idle[0], 3),
        "settled_after_s": round(idle[1], 1),
    }


def measure(program: Path, rounds: int, idle_s: float) -> dict[str, Any]:
    """Press the key of each position `rounds` times after one warm-up, then watch the idle processes."""
    samples: list[Sample] = []
    messages: list[float] = []
    sizes: list[float] = []
    with private_folders() as environment, tempfile.TemporaryDirectory(prefix="dl-") as folder:
        neovim, log = open_editor(program, Path(folder), environment)
        try:
            for turn in range(rounds + 1):
                for text, key in PLACES:
                    sample, events = press(neovim, log, text, key, LONGEST_S if turn else FIRST_S)
                    if turn > 0:
                        samples.append(sample)
                        wire = [event["size"] for event in events if "size" in event]
                        messages.append(len(wire))
                        sizes.append(sum(wire))
            started = psutil.Process(neovim.process.pid).children(recursive=True)
            processes = {*started, *engine_processes(environment)}  # the server started the engine, or found it
            idle = idle_cpu_percent([*processes], idle_s)
        finally:
            neovim.close()
        first = {
            client + kind: asyncio.run(first_answers(environment, places, rounds, streaming=streaming))
            for kind, places in (("", (*PLACES, LINE)), ("_blocks", BLOCKS))
            for client, streaming in (("streaming", True), ("without_streaming", False))
        }
    _print_table(samples)
    _print_first_answers(first)
    return _report(samples, messages, sizes, idle) | {
        f"first_answer_{name}_ms": {client: _percentile(values, share) for client, values in first.items()}
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editor_latency", description=__doc__)
    parser.add_argument("--neovim", type=Path, default=NEOVIM, help="path of the program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=6, help="number of keys at each position (default: %(default)s)")
    parser.add_argument(
        "--idle-seconds",
        type=float,
        default=60.0,
        help="how long the idle processes are watched (default: %(default)s)",
    )
    chosen = parser.parse_args()
    if not chosen.neovim.exists():
        sys.exit(f"There is no Neovim at {chosen.neovim}. Run: python scripts/unpack_neovim.py")
    print(json.dumps(measure(chosen.neovim, chosen.rounds, chosen.idle_seconds)))


if __name__ == "__main__":
    main()
