"""`draftline demo`: real completions at eight cursors in several languages, and what each took."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING

from completion.errors import DraftlineError
from completion.request import CompletionRequest

if TYPE_CHECKING:
    from rich.console import Console

    from lsp_server.cli.streaming import ShownCompletion

_CURSOR = "⟦cursor⟧"
_LINES_BEFORE, _LINES_AFTER = 5, 3


@dataclass(frozen=True, slots=True)
class Example:
    """A file of ours with a place to complete."""

    name: str
    prefix: str
    suffix: str

    @property
    def place(self) -> str:
        """FILE:LINE:COL."""
        lines = self.prefix.split("\n")
        return f"{self.name}:{len(lines)}:{len(lines[-1]) + 1}"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `demo`."""
    from lsp_server.cli.engine_arguments import add_engine_arguments

    parser = subparsers.add_parser("demo", help="complete real code in several languages, with timings")
    add_engine_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed; the status is 1 if any place got no completion."""
    return asyncio.run(_run(options))


def examples() -> list[Example]:
    """The files that are shipped for the demo, in the order of their names."""
    found = []
    for resource in sorted(files("lsp_server.cli").joinpath("data").iterdir(), key=lambda one: one.name):
        prefix, cursor, suffix = resource.read_text(encoding="utf-8").partition(_CURSOR)
        if not cursor:
            raise DraftlineError(f"The demo's file {resource.name} has no cursor. Reinstall draftline.")
        found.append(Example(resource.name.removesuffix(".txt"), prefix, suffix))
    return found


async def _run(options: argparse.Namespace) -> int:
    from rich.console import Console

    from lsp_server.cli.engine_arguments import connected_client
    from lsp_server.cli.streaming import print_after, print_before, stream_completion

    console = Console(highlight=False)
    started = time.perf_counter()
    async with connected_client(options, Console(stderr=True)) as client:
        status = client.status
        console.print(f"{status.model} on {status.device}, ready in {time.perf_counter() - started:.1f} s")
        rows = []
        for example in examples():
            console.rule(example.place, align="left", style="dim")
            print_before(console, example.prefix, _LINES_BEFORE)
            shown = await stream_completion(client, _request(example), console)
            print_after(console, example.suffix[shown.suggestion.replace_after :], _LINES_AFTER)
            rows.append((example, shown))
    _print_table(console, rows)
    return 0 if all(shown.suggestion.text for _, shown in rows) else 1


def _request(example: Example) -> CompletionRequest:
    from completion.syntax.file_endings import language_of

    return CompletionRequest(
        prefix=example.prefix,
        suffix=example.suffix,
        language=language_of(example.name),
        path=example.name,
        repository="demo",
        document=f"demo/{example.name}",
        invoked=True,
    )


def _print_table(console: Console, rows: list[tuple[Example, ShownCompletion]]) -> None:
    from rich.table import Table

    table = Table(title="What it took", title_justify="left")
    table.add_column("place", overflow="fold")
    for heading in ("first text, ms", "total, ms", "tokens", "steps"):
        table.add_column(heading, justify="right")
    table.add_column("stopped by")
    for example, shown in rows:
        statistics = shown.event.statistics
        tokens, steps = (statistics.generated_tokens, statistics.steps) if statistics else (0, 0)
        times = f"{shown.first_text_ms:.0f}", f"{shown.total_ms:.0f}"
        stopped_by = shown.event.dropped or str(shown.event.stop_reason)
        table.add_row(example.place, *times, str(tokens), str(steps), stopped_by)
    middle = (f"{median(getattr(shown, name) for _, shown in rows):.0f}" for name in ("first_text_ms", "total_ms"))
    table.add_section()
    table.add_row("median", *middle, "", "", "")
    console.print(table)
