"""`python -m benchmarks.telemetry`: cost of recording and of the report, and committed rows that a kill loses."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console
from rich.table import Table

from completion.request import Statistics
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.persistence import CHECKPOINTS_S
from lsp_server.telemetry.report_data import read_report
from lsp_server.telemetry.report_figures import Report, Selection
from lsp_server.telemetry.store import open_store

ROWS = 100_000
"""Number of recorded suggestions."""
DAYS = 30
"""Days that the suggestions are spread over."""
_LANGUAGES = ("python", "typescript", "go", "rust", "java")
SAMPLES_UNTIL = 1_700_000_000.0
_KILL_AFTER_ROWS = 2_000
_WHOLE_ROWS = 4_000


def sample(number: int, chance: random.Random) -> SuggestionRecord:
    """Return the record of a typical suggestion."""
    characters = int(chance.lognormvariate(3.2, 0.9)) + 1
    drafted = chance.randrange(60)
    return SuggestionRecord(
        id=f"{number:016x}",
        at=SAMPLES_UNTIL - chance.random() * DAYS * 86_400,
        language=chance.choice(_LANGUAGES),
        document=f"{chance.randrange(200):016x}",
        model="sample",
        reason="" if chance.random() < 0.7 else "superseded",
        suggestions=1,
        characters=characters,
        lines=1 + characters // 60,
        wait_ms=60.0,
        first_text_ms=chance.lognormvariate(5, 0.4),
        answer_ms=chance.lognormvariate(5.6, 0.5),
        statistics=Statistics(
            decode_ms=chance.lognormvariate(5, 0.5),
            generated_tokens=characters // 4,
            steps=characters // 10 + 1,
            drafted_tokens=drafted,
            accepted_tokens=drafted // 3,
            accepted_by_drafter={"prompt_lookup": drafted // 4, "token_recycling": drafted // 12},
        ),
    )


def make_samples(rows: int) -> list[SuggestionRecord]:
    """Return records of typical suggestions, the same at every call."""
    chance = random.Random(0)
    return [sample(number, chance) for number in range(rows)]


def fill(telemetry: Telemetry, samples: Sequence[SuggestionRecord]) -> float:
    """Record suggestions and what became of them. Return the median time of one call, in milliseconds."""
    chance = random.Random(0)
    costs = []
    for record in samples:
        started = time.perf_counter()
        telemetry.save(record)
        costs.append(time.perf_counter() - started)
        if record.reason == "" and chance.random() < 0.6:
            telemetry.shown(record.id)
            _decide(telemetry, record, chance)
    return 1000 * statistics.median(costs)


def _decide(telemetry: Telemetry, record: SuggestionRecord, chance: random.Random) -> None:
    if chance.random() < 0.3:
        telemetry.accepted(record.id, record.characters, whole=True)
        kept = 1.0
        for after_s in CHECKPOINTS_S:
            kept *= chance.betavariate(9, 1)
            telemetry.persisted(record.id, after_s, kept, int(kept * record.characters))
    else:
        telemetry.rejected(record.id, chance.choice(("typedOver", "dismissed", "cursorMoved")))


def write_and_report(folder: Path) -> tuple[float, float, Report]:
    """Return seconds to write and report ROWS suggestions, milliseconds on the request path, and the report."""
    path = folder / "big.sqlite3"
    samples = make_samples(ROWS)
    started = time.perf_counter()
    telemetry = Telemetry(path, lambda: SAMPLES_UNTIL, size_limit_bytes=1 << 40)
    request_path_ms = fill(telemetry, samples)
    telemetry.close()
    store = open_store(path)
    report = read_report(store, Selection(SAMPLES_UNTIL - DAYS * 86_400, SAMPLES_UNTIL + 1))
    store.close()
    return time.perf_counter() - started, request_path_ms, report


def _write(path: Path, name: str, rows: int, said: Connection) -> None:
    telemetry = Telemetry(path, on_committed=said.send)
    for number in range(rows):
        telemetry.save(SuggestionRecord(f"{name}-{number}", SAMPLES_UNTIL))
        if number % 100 == 99:
            telemetry.flush()
    telemetry.close()
    said.send(rows)


def lost_rows(folder: Path) -> int:
    """Return how many committed rows are missing after two servers wrote and one was killed during a write."""
    path = folder / "shared.sqlite3"
    context = multiprocessing.get_context("spawn")
    ears, mouths = zip(*(context.Pipe(duplex=False) for _ in range(2)), strict=True)
    writers = [
        context.Process(target=_write, args=(path, name, rows, mouth), daemon=True)
        for name, rows, mouth in zip(("killed", "whole"), (10_000_000, _WHOLE_ROWS), mouths, strict=True)
    ]
    for writer, mouth in zip(writers, mouths, strict=True):
        writer.start()
        mouth.close()  # so that `recv` fails, and does not wait, when the writer has failed
    committed = 0
    while committed < _KILL_AFTER_ROWS:
        committed = ears[0].recv()
    writers[0].kill()
    for writer in writers:
        writer.join()
    with suppress(EOFError):  # where the killed writer's last message was read
        while True:
            committed = ears[0].recv()
    store = open_store(path)
    found = {
        name: store.execute("SELECT count(*) FROM suggestions WHERE id LIKE ?", (f"{name}-%",)).fetchone()[0]
        for name in ("killed", "whole")
    }
    store.close()
    return int(max(0, committed - found["killed"]) + (_WHOLE_ROWS - found["whole"]))


def main() -> None:
    """Print a table, then one line of JSON."""
    argparse.ArgumentParser(prog="python -m benchmarks.telemetry", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, request_path_ms, report = write_and_report(folder)
        lost = lost_rows(folder)
    table = Table("what", "measured", "bound", title="Telemetry")
    table.add_row(f"write and report {ROWS:,} suggestions", f"{seconds:.2f} s", "5 s")
    table.add_row("on the request path, median", f"{request_path_ms:.4f} ms", "0.2 ms")
    table.add_row("committed rows lost by a kill", str(lost), "0")
    table.add_row("acceptance in the sample", f"{report.acceptance.value:.3f}", "about 0.3")
    Console().print(table)
    print(
        json.dumps(
            {
                "write_and_report_s": round(seconds, 2),
                "request_path_ms": round(request_path_ms, 4),
                "lost_rows": lost,
                "rows": ROWS,
            }
        )
    )


if __name__ == "__main__":
    main()
