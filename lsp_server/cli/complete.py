"""`draftline complete FILE:LINE:COL`: one completion, streamed to the terminal or printed as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import asdict
from typing import Any

from rich.console import Console

from completion.errors import ConfigurationError
from completion.request import MAX_TOKENS_LIMIT, CompletionEvent, CompletionRequest, Layout, Mode, Statistics
from lsp_server.cli.engine_arguments import add_engine_arguments, connected_client, options_of, report_ignored_settings
from lsp_server.cli.source_position import read_position, request_at
from lsp_server.cli.streaming import coloured_pieces, print_after, print_before, stream_completion
from lsp_server.engine.client import EngineClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `complete`."""
    parser.add_argument(
        "position", metavar="FILE:LINE:COL", help="lines and columns count from 1; a column is a character"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object: text, timings, statistics")
    parser.add_argument(
        "--explain", action="store_true", help="show which drafter guessed what and what the cache saved"
    )
    parser.add_argument(
        "--layout", choices=[str(layout) for layout in Layout], help="order of prefix and suffix in the prompt"
    )
    parser.add_argument(
        "--mode", choices=[str(mode) for mode in Mode], default=str(Mode.AUTO), help="how far a suggestion reaches"
    )
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N", help="maximum number of generated tokens")
    add_engine_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the command. The exit status is 0 even if there is no suggestion."""
    if not 1 <= options.max_tokens <= MAX_TOKENS_LIMIT:
        raise ConfigurationError(f"--max-tokens is {options.max_tokens}. Give a number from 1 to {MAX_TOKENS_LIMIT}.")
    position = read_position(options.position)
    layout = Layout(options.layout) if options.layout else None
    request = request_at(position, mode=Mode(options.mode), max_tokens=options.max_tokens, layout=layout)
    report_ignored_settings()
    asyncio.run(_print_json(options, request) if options.json else _print_text(options, request))
    return 0


async def _print_json(options: argparse.Namespace, request: CompletionRequest) -> None:
    last = CompletionEvent(())
    async with _client(options, request) as client:
        async with aclosing(client.complete(request)) as events:
            async for event in events:
                last = event
        print(json.dumps(_json_of(last, client.status.model, client.status.device)))


def _client(options: argparse.Namespace, request: CompletionRequest) -> AbstractAsyncContextManager[EngineClient]:
    """Return a client of the engine; a server that gets the text is named on standard error."""
    engine = options_of(options)
    return connected_client(engine, Console(stderr=True), sends=request.remote or not engine.remote.is_second)


def _json_of(event: CompletionEvent, model: str, device: str) -> dict[str, Any]:
    suggestions = [asdict(suggestion) for suggestion in event.suggestions]
    statistics = asdict(event.statistics) if event.statistics else {}
    return {
        "text": event.suggestions[0].text if event.suggestions else "",
        "replace_after": event.suggestions[0].replace_after if event.suggestions else 0,
        "stop_reason": event.stop_reason,
        "dropped": event.dropped,
        "model": model,
        "device": device,
        "timings": {name: round(value, 2) for name, value in statistics.items() if name.endswith("_ms")},
        "statistics": {name: value for name, value in statistics.items() if not name.endswith("_ms")},
        "suggestions": suggestions,
    }


async def _print_text(options: argparse.Namespace, request: CompletionRequest) -> None:
    # Not so by FORCE_COLOR: a program that reads the suggestion from a pipe wants nothing else.
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(highlight=False, force_terminal=is_terminal)
    async with _client(options, request) as client:
        if console.is_terminal:
            print_before(console, request.prefix, 1)
        shown = await stream_completion(client, request, console)
    after = request.suffix[shown.suggestion.replace_after :]
    if console.is_terminal:
        print_after(console, after, 1)
    else:
        console.print()
    if shown.event.dropped:
        Console(stderr=True).print(f"No suggestion at this position (reason: {shown.event.dropped}).")
    if options.explain:
        _explain(shown.event, console)


def _explain(event: CompletionEvent, console: Console) -> None:
    for suggestion in event.suggestions[:1]:
        text, legend = coloured_pieces(suggestion)
        console.print(legend)
        console.print(text, soft_wrap=True)
    if event.statistics is not None:
        for line in (*_explanation(event.statistics), f"stop reason: {event.stop_reason}"):
            console.print(line, soft_wrap=True)


def _explanation(statistics: Statistics) -> tuple[str, str, str]:
    """Return a line each about the prompt and its cache, the output and its drafts, and the time."""
    off = f" (off: {statistics.grammar_off_reason})" if statistics.grammar_off_reason else ""
    cache = f"{statistics.kept_tokens} kept, {statistics.shifted_tokens} shifted, {statistics.computed_tokens} computed"
    drafts = f"{statistics.drafted_tokens} drafted, {statistics.accepted_tokens} accepted"
    grammar = f"grammar: {statistics.grammar_rejections} rejected{off}"
    stages = {
        "prompt": statistics.prompt_ms,
        "decoding": statistics.decode_ms,
        "drafting": statistics.drafting_ms,
        "grammar": statistics.grammar_ms,
        "queue": statistics.queue_ms,
    }
    times = ", ".join(f"{name} {milliseconds:.0f} ms" for name, milliseconds in stages.items())
    return (
        f"prompt: {statistics.prompt_tokens} tokens: {cache}",
        f"output: {statistics.generated_tokens} tokens in {statistics.steps} steps: {drafts}; {grammar}",
        f"time: first text {statistics.first_text_ms:.0f} ms, total {statistics.total_ms:.0f} ms ({times})",
    )
