"""`draftline demo`: real completions at eight positions in several languages, with their timings."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from importlib.resources import files
from statistics import median

from rich.console import Console
from rich.table import Table

from completion.errors import DraftlineError
from completion.host.process.clients import command_key
from completion.language_ids import language_of
from completion.request import CompletionRequest
from lsp_server.cli.engine_arguments import add_engine_arguments, connected_client, options_of, report_ignored_settings
from lsp_server.cli.streaming import ShownCompletion, print_after, print_before, stream_completion

_CURSOR = "⟦cursor⟧"
_LINES_BEFORE, _LINES_AFTER = 5, 3


@dataclass(frozen=True, slots=True)
class Example:
    """A file that ships with draftline, split at the cursor."""

    name: str
    prefix: str
    suffix: str

    @property
    def position(self) -> str:
        """The cursor as FILE:LINE:COL."""
        lines = self.prefix.split("\n")
        return f"{self.name}:{len(lines)}:{len(lines[-1]) + 1}"


add_arguments = add_engine_arguments


def execute(options: argparse.Namespace) -> int:
    """Run the command. The exit status is 1 if there is a position without a suggestion."""
    report_ignored_settings()
    return asyncio.run(_run(options))


def examples() -> list[Example]:
    """Return the examples in the order of their names.

    Raises:
        DraftlineError: A file has no cursor mark.
    """
    found = []
    for resource in sorted(files("lsp_server.cli").joinpath("data").iterdir(), key=lambda one: one.name):
        prefix, cursor, suffix = resource.read_text(encoding="utf-8").partition(_CURSOR)
        if not cursor:
            raise DraftlineError(f"The example {resource.name} has no cursor mark. Reinstall draftline.")
        found.append(Example(resource.name.removesuffix(".txt"), prefix, suffix))
    return found


async def _run(options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    started = time.perf_counter()
    async with connected_client(options_of(options), Console(stderr=True)) as client:
        status = client.status
        console.print(f"{status.model} on {status.device}, ready in {time.perf_counter() - started:.1f} s")
        rows = []
        for example in examples():
            console.rule(example.position, align="left", style="dim")
            print_before(console, example.prefix, _LINES_BEFORE)
            shown = await stream_completion(client, _request(example), console)
            print_after(console, example.suffix[shown.suggestion.replace_after :], _LINES_AFTER)
            rows.append((example, shown))
    _print_table(console, rows)
    return 0 if all(shown.suggestion.text for _, shown in rows) else 1


def _request(example: Example) -> CompletionRequest:
    return CompletionRequest(
        prefix=example.prefix,
        suffix=example.suffix,
        language=language_of(example.name),
        path=example.name,
        repository="demo",
        document=command_key(f"demo/{example.name}"),
        invoked=True,
    )


def _print_table(console: Console, rows: list[tuple[Example, ShownCompletion]]) -> None:
    table = Table(title="Timings", title_justify="left")
    table.add_column("position", overflow="fold")
    for heading in ("first\ntext, ms", "total,\nms", "tokens", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("stop\nreason", overflow="fold")
    for example, shown in rows:
        statistics = shown.event.statistics
        tokens, steps = (statistics.generated_tokens, statistics.steps) if statistics else (0, 0)
        times = f"{shown.first_text_ms:.0f}", f"{shown.total_ms:.0f}"
        reason = shown.event.dropped or str(shown.event.stop_reason)
        table.add_row(example.position, *times, str(tokens), str(steps), reason)
    medians = (f"{median(getattr(shown, name) for _, shown in rows):.0f}" for name in ("first_text_ms", "total_ms"))
    table.add_section()
    table.add_row("median", *medians, "", "", "")
    console.print(table)
