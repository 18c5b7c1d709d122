"""`draftline complete FILE:LINE:COL`: one completion, streamed to the terminal or printed as JSON."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from completion.errors import ConfigurationError
from completion.host.process.clients import command_key
from completion.language_ids import language_of
from completion.request import MAX_TOKENS_LIMIT, CompletionEvent, CompletionRequest, Layout, Mode, Statistics
from lsp_server.cli.engine_arguments import add_engine_arguments, connected_client, options_of, report_ignored_settings
from lsp_server.cli.streaming import coloured_pieces, print_after, print_before, stream_completion
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.repository import repository_top
from lsp_server.documents.text_lines import split_lines
from lsp_server.engine.client import EngineClient
from lsp_server.engine.consent import by_rules
from lsp_server.settings.config import remote_address, user_file, users_settings
from lsp_server.workspace_reader import read_named, real_path

_MAX_BYTES = 8 << 20
"""Maximum size of a file that is read."""


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
    async with _client(options, request) as client:
        shown = await stream_completion(client, request, Console(file=io.StringIO()))
        print(json.dumps(_json_of(shown.event, client.status.model, client.status.device)))


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


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A cursor in a file, with the text before and after it."""

    path: Path
    before: str
    after: str


def read_position(argument: str) -> SourcePosition:
    """Parse FILE:LINE:COL and read the file.

    Raises:
        ConfigurationError: The argument is malformed, the file may hold secrets, is ignored or is not a readable text,
            or the position is out of range.
    """
    path, line, column = _split(argument)
    _check_policy(path)
    text = _read(path)
    lines = split_lines(text)
    if not 1 <= line <= len(lines):
        raise ConfigurationError(f"{path} has {len(lines)} lines; line {line} is out of range. Lines count from 1.")
    length = len(lines[line - 1].rstrip("\r\n"))
    if not 1 <= column <= length + 1:
        raise ConfigurationError(
            f"Line {line} of {path} has {length} characters; column {column} is out of range. Columns count from 1."
        )
    before = "".join(lines[: line - 1]) + lines[line - 1][: column - 1]
    return SourcePosition(path, before, text[len(before) :])


def request_at(position: SourcePosition, **fields: object) -> CompletionRequest:
    """Return the request for a position, with further fields. The errors are those of `_goes_to_second`."""
    root = _workspace_root(position.path)
    return CompletionRequest(
        prefix=position.before,
        suffix=position.after,
        language=language_of(position.path),
        path=real_path(position.path).relative_to(root).as_posix(),
        repository=root.name,
        document=command_key(str(real_path(position.path))),
        workspace=str(root),
        invoked=True,
        remote=_goes_to_second(position.path),
        **fields,  # type: ignore[arg-type]
    )


def _goes_to_second(path: Path) -> bool:
    """Return whether the text also goes to a server beside the local model; the command says so, and asks nothing.

    Raises:
        ConfigurationError: The server stands alone, and the user's own settings forbid to send it the text.
    """
    settings = users_settings()
    address, allowed = remote_address(settings), by_rules(settings.engine_send, path.absolute()) is not False
    if address.url and not address.is_second and not allowed:
        raise ConfigurationError(
            f"`engine_send` in {user_file()} forbids to send the text of {path} to {address.shown()}. "
            "Change it there, or complete another file."
        )
    return address.is_second and allowed


def _split(argument: str) -> tuple[Path, int, int]:
    path, line, column = (["", "", *argument.rsplit(":", 2)])[-3:]
    if not (path and line.isdecimal() and column.isdecimal()):
        raise ConfigurationError(f"{argument} is not of the form FILE:LINE:COL. Example: src/main.py:12:5")
    return Path(path), int(line), int(column)


def _check_policy(path: Path) -> None:
    """Check that the file is none of those that no editor's file may be, either: secret or ignored."""
    refusal = FilePolicy(_workspace_root(path)).refusal(path.absolute())
    if refusal is not None:
        raise ConfigurationError(f"{path} gets no completion. {refusal.sentence}")


def _read(path: Path) -> str:
    try:
        data = read_named(path, _MAX_BYTES)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    if b"\0" in data:
        raise ConfigurationError(f"{path} is a binary file. Give a text file in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 (byte {error.start}). Convert it to UTF-8 first.") from error


def _workspace_root(path: Path) -> Path:
    """Return the top folder of the file's repository, or the file's folder if it is in none."""
    folder = real_path(path).parent
    return repository_top(folder) or folder
