"""From a key in a real Neovim to the text on its screen, and where the time goes.

`python -m benchmarks.editor_latency` prints a table and a JSON line. Each sample presses one key at a place where the
cursor has rested, so that the cache is warm as it is for a person, and watches three clocks that are one: the screen's,
the language server's, the engine's. The engine is one of our own.
"""

from __future__ import annotations

import argparse
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

from benchmarks.editor_latency.neovim_driver import Neovim, NeovimError
from benchmarks.startup import engine_processes, private_folders

REPOSITORY = Path(__file__).resolve().parents[2]
NEOVIM = REPOSITORY / ".cache" / "neovim" / "root" / "usr" / "bin" / "nvim"
REST_S = 0.6  # the plugin reports a resting cursor after 0.15 s, then the server prepares the engine
LONGEST_S = 15.0
FIRST_S = 180.0  # after a change of the kernels the first request compiles them
QUIET_S = 2.0
LONGEST_SETTLING_S = 60.0

POINT = """class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def move(self, dx, dy):
        self.x += dx
        self."""

# A text whose end is the cursor, and the key that is pressed there.
PLACES = (
    ("def add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n    ", "r"),
    ("def area(width, height):\n    return width * height\n\n\ndef perimeter(width, height):\n    ", "r"),
    ("values = [3, 1, 2]\nvalues.sort()\nfor value in values:\n    ", "p"),
    (POINT, "y"),
    ("import json\n\nwith open(path) as file:\n    data = json.", "l"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One key, in milliseconds: the parts add up to the total.

    Attributes:
        total: From the key press to the text on the screen.
        editor: From the key press until the server has the request.
        debounce: The server's chosen wait.
        server: The server's own work and the way to the engine and back.
        engine: From the engine's receipt of the request to its first text.
        render: From the text's arrival at the server to the screen.
    """

    total: float
    editor: float
    debounce: float
    server: float
    engine: float
    render: float


class Log:
    """What the server with the stopwatch wrote, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def skip(self) -> None:
        """Forget what was written so far."""
        self._offset = self._path.stat().st_size

    def events(self) -> list[dict[str, Any]]:
        """Return what was written since the last `skip`."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            return [json.loads(line) for line in file if line.endswith(b"\n")]

    def wait_for(self, what: str) -> list[dict[str, Any]]:
        """Return the events since the last `skip` as soon as one is `what`.

        Raises:
            NeovimError: It did not come.
        """
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            events = self.events()
            if any(event["what"] == what for event in events):
                return events
            time.sleep(0.01)
        raise NeovimError(f"the server noted no {what!r} within {LONGEST_S} s")


def open_editor(program: Path, folder: Path, environment: Mapping[str, str]) -> tuple[Neovim, Log]:
    """Start Neovim with the plugin and the timed server, and wait until the model is ready."""
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
    neovim.wait_for_lua("(require('draftline.status').latest() or {}).kind == 'ready'", "engine that is ready", 120)
    return neovim, Log(log)


def press(
    neovim: Neovim, log: Log, text: str, key: str, longest_s: float = LONGEST_S
) -> tuple[Sample, list[dict[str, Any]]]:
    """Rest at the end of a text, press a key, and time what appears.

    Raises:
        NeovimError: Nothing appeared.
    """
    lines = text.split("\n")
    neovim.request("nvim_buf_set_lines", 0, 0, -1, False, lines)
    neovim.request("nvim_win_set_cursor", 0, [len(lines), max(0, len(lines[-1]) - 1)])
    neovim.command("set eventignore=InsertEnter")  # entering would ask by itself
    neovim.type("A")
    neovim.wait_for_lua("vim.api.nvim_get_mode().mode == 'i'", "insert mode")
    neovim.command("set eventignore=")
    time.sleep(REST_S)
    log.skip()
    pressed = time.monotonic()
    neovim.type(key)
    neovim.wait_for_ghost(timeout_s=longest_s)
    shown = next(at for at, ghost in zip(neovim.ghost_times, neovim.ghosts, strict=True) if ghost and at > pressed)
    events = log.wait_for("done")
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
    """Wait until what the last key caused has ended, then see what processes use while nobody types.

    Returns:
        The share of one core in percent, and how many seconds passed before (caches are prepared, counts written).

    Raises:
        NeovimError: They work on and on.
    """

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    started = time.monotonic()
    before, now = used(), -1.0
    while now != before:
        if time.monotonic() - started > LONGEST_SETTLING_S:
            raise NeovimError(f"server and engine still work {LONGEST_SETTLING_S:g} s after the last key")
        before = used()
        time.sleep(QUIET_S)
        now = used()
    settled = time.monotonic()
    time.sleep(seconds)
    return 100 * (used() - now) / seconds, settled - started


def _percentile(values: Sequence[float], share: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 1)


def _print_table(samples: Sequence[Sample]) -> None:
    table = Table("part", "p50 ms", "p95 ms", title=f"key press to text on the screen, {len(samples)} keys")
    for field in fields(Sample):
        values = [getattr(sample, field.name) for sample in samples]
        table.add_row(field.name, f"{_percentile(values, 0.5)}", f"{_percentile(values, 0.95)}")
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
    """Press every place's key `rounds` times after one warm-up, then watch the idle processes."""
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
            servers = psutil.Process(neovim.process.pid).children(recursive=True)
            idle = idle_cpu_percent([*servers, *engine_processes(environment)], idle_s)
        finally:
            neovim.close()
    _print_table(samples)
    return _report(samples, messages, sizes, idle)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Times a key press in a real Neovim.")
    parser.add_argument("--neovim", type=Path, default=NEOVIM, help="the program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=6, help="keys at each place (default: %(default)s)")
    parser.add_argument("--idle-seconds", type=float, default=60.0, help="how long nobody types (default: %(default)s)")
    chosen = parser.parse_args()
    if not chosen.neovim.exists():
        sys.exit(f"{chosen.neovim} is not there; run: python scripts/unpack_neovim.py")
    print(json.dumps(measure(chosen.neovim, chosen.rounds, chosen.idle_seconds)))


if __name__ == "__main__":
    main()
