"""`draftline complete FILE:LINE:COL`: one completion, streamed to the terminal or as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from completion.errors import ConfigurationError
from completion.request import MAX_TOKENS_LIMIT, CompletionEvent, CompletionRequest, Layout, Mode, Statistics


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `complete`."""
    from lsp_server.cli.engine_arguments import add_engine_arguments, add_request_arguments

    parser = subparsers.add_parser("complete", help="complete code at a place in a file")
    parser.add_argument("position", metavar="FILE:LINE:COL", help="both from 1; COL counts characters")
    parser.add_argument("--json", action="store_true", help="one JSON object: text, timings, statistics")
    parser.add_argument("--explain", action="store_true", help="who guessed what, and what the cache saved")
    add_request_arguments(parser)
    add_engine_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed; the status is 0 even when there is nothing to suggest."""
    from lsp_server.cli.source_position import read_position, request_at

    if not 1 <= options.max_tokens <= MAX_TOKENS_LIMIT:
        raise ConfigurationError(f"--max-tokens is {options.max_tokens}; give a number from 1 to {MAX_TOKENS_LIMIT}.")
    position = read_position(options.position)
    layout = Layout(options.layout) if options.layout else None
    request = request_at(position, mode=Mode(options.mode), max_tokens=options.max_tokens, layout=layout)
    asyncio.run(_print_json(options, request) if options.json else _print_text(options, request))
    return 0


async def _print_json(options: argparse.Namespace, request: CompletionRequest) -> None:
    from rich.console import Console

    from lsp_server.cli.engine_arguments import connected_client

    last = CompletionEvent(())
    async with connected_client(options, Console(stderr=True)) as client:
        async with aclosing(client.complete(request)) as events:
            async for event in events:
                last = event
        print(json.dumps(_json_of(last, client.status.model, client.status.device), ensure_ascii=False))


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
    from rich.console import Console

    from lsp_server.cli.engine_arguments import connected_client
    from lsp_server.cli.streaming import print_after, print_before, stream_completion

    console = Console(highlight=False)
    async with connected_client(options, Console(stderr=True)) as client:
        if console.is_terminal:
            print_before(console, request.prefix, 1)
        shown = await stream_completion(client, request, console)
    after = request.suffix[shown.suggestion.replace_after :]
    if console.is_terminal:
        print_after(console, after, 1)
    else:
        console.print()
    if shown.event.dropped:
        Console(stderr=True).print(f"Nothing to suggest here ({shown.event.dropped}).")
    if options.explain:
        _explain(shown.event, console)


def _explain(event: CompletionEvent, console: Any) -> None:  # noqa: ANN401 - a console of rich, imported when used
    from lsp_server.cli.streaming import coloured_pieces

    for suggestion in event.suggestions[:1]:
        text, legend = coloured_pieces(suggestion)
        console.print(legend)
        console.print(text, soft_wrap=True)
    if event.statistics is not None:
        for line in (*_figures(event.statistics), f"stopped: {event.stop_reason}"):
            console.print(line, soft_wrap=True)


def _figures(figures: Statistics) -> tuple[str, str, str]:
    """What the cache saved, what the drafters brought, and where the time went."""
    off = f" (off: {figures.grammar_off_reason})" if figures.grammar_off_reason else ""
    prompt = f"{figures.kept_tokens} kept, {figures.shifted_tokens} shifted, {figures.computed_tokens} computed"
    steps = f"{figures.steps} steps, {figures.drafted_tokens} drafted, {figures.accepted_tokens} accepted"
    parts = {
        "prompt": figures.prompt_ms,
        "decoding": figures.decode_ms,
        "drafting": figures.drafting_ms,
        "grammar": figures.grammar_ms,
        "queue": figures.queue_ms,
    }
    spent = ", ".join(f"{name} {milliseconds:.0f}" for name, milliseconds in parts.items())
    return (
        f"prompt: {figures.prompt_tokens} tokens, {prompt}",
        f"output: {figures.generated_tokens} tokens, {steps}; grammar: {figures.grammar_rejections} rejected{off}",
        f"time: first text {figures.first_text_ms:.0f} ms, total {figures.total_ms:.0f} ms ({spent})",
    )
