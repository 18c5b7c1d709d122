"""`draftline doctor`: checks everything that a completion needs and says how to fix what is wrong."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from completion.errors import DraftlineError
from completion.free_memory import free_bytes
from completion.request import CompletionRequest, Mode
from completion.syntax.languages import LANGUAGES, grammars_to_install
from lsp_server.cli.checks import Check, check_settings, check_version, machine_checks
from lsp_server.cli.engine_arguments import add_engine_arguments, connected_client, options_of, settings_of
from lsp_server.engine.auto_model import Now, choice_of
from lsp_server.engine.launcher import EngineOptions
from lsp_server.settings.config import user_file, users_problems, users_settings
from lsp_server.settings.table import DEFAULTS

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_PARTS = {
    "weights": "weights of the model",
    "kv_sessions": "KV sessions: keys and values of open documents",
    "workspaces": "workspaces: indexes, context, what the drafters learned",
    "grammars": "grammars",
    "code": "compiled code",
    "other": "other: Python, its libraries, buffers",
}
"""Name of each part of an engine's memory, by its key in the engine's account."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `doctor`."""
    parser.add_argument("--no-engine", action="store_true", help="skip the checks that start the engine")
    add_engine_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the command. The exit status is 1 if a check failed."""
    console, engine = Console(highlight=False), options_of(options)
    choice = choice_of(settings_of(options), Now(free_bytes()))
    reason = choice.reason if choice else _reason(options.model)
    checks, memory = [check_version(), check_settings(user_file(), users_problems())], None
    checks += [*machine_checks(engine, reason), _check_grammars()]
    if choice and choice.offer:
        checks.append(Check("larger model", "ok", choice.offered, choice.download))
    if not options.no_engine:
        of_engine, memory = asyncio.run(_engine_checks(engine, Console(stderr=True)))
        checks += of_engine
    _print_table(console, checks)
    if memory is not None:
        console.print(_memory_table(memory))
    return 1 if any(check.state == "fail" for check in checks) else 0


def _reason(asked: str | None) -> str:
    """Return a sentence that says why a model serves: the one of the command line, else of the user's settings."""
    if asked is not None:
        return "It is the one of --model."
    if users_settings().model != DEFAULTS.model:
        return f"The setting `model` of {user_file()} names it."
    return "It is the default, as always beside a model server."


async def _engine_checks(options: EngineOptions, progress: Console) -> tuple[list[Check], Mapping[str, Any] | None]:
    """Start the engine and complete one line with it; return the checks, and where its memory is if it answers.

    `progress` shows how far the start is.
    """
    started = time.perf_counter()
    try:
        async with connected_client(options, progress) as client:
            ready_s = time.perf_counter() - started
            request = CompletionRequest(
                "def add(a, b):\n    return ",
                "\n",
                language="python",
                mode=Mode.LINE,
                remote=options.remote.is_second,
            )
            events = [event async for event in client.complete(request)]
            health = await client.health(memory=True) or {}
    except DraftlineError as error:
        return [Check("engine", "fail", error.code, str(error))], None
    memory = health.get("memory")
    memory_mb = (memory["resident"] if memory else health.get("memory_bytes", 0)) / 1e6
    facts = f"{client.status.model or health.get('model')} on {health.get('device')}, ready in {ready_s:.1f} s"
    text = events[-1].suggestions[0].text if events and events[-1].suggestions else ""
    statistics = events[-1].statistics if events else None
    took = f" in {statistics.total_ms:.0f} ms" if statistics else ""
    answer = Check("completion", "ok", f"return {text.strip()}{took}")
    if not text:
        found = f"the engine suggested nothing (reason: {events[-1].dropped})"
        answer = Check("completion", "fail", found, "Choose another model with --model. To list them: draftline models")
    remark = client.status.sentence.removeprefix("Ready.").strip()
    state: Literal["ok", "warn"] = "warn" if remark and not options.remote.url else "ok"
    return [Check("engine", state, f"{facts}, {memory_mb:,.0f} MB", remark), answer], memory


def _check_grammars() -> Check:
    """Report the languages whose grammars are not installed."""
    missing = grammars_to_install()
    found = f"syntax of {len(LANGUAGES) - len(missing)} of {len(LANGUAGES)} languages"
    advice = "No syntax is checked in the others. To add them: python -m pip install 'draftline[languages]'"
    return Check("grammars", "ok", found, f"{advice} ({', '.join(missing)})" if missing else "")


def _print_table(console: Console, checks: list[Check]) -> None:
    table = Table(title="draftline doctor", title_justify="left")
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("what to do", overflow="fold")
    for check in checks:
        state = f"[{_COLOURS[check.state]}]{check.state}[/]"
        table.add_row(check.name, state, escape(check.found), escape(check.advice))
    console.print(table)


def _memory_table(memory: Mapping[str, Any]) -> Table:
    """Return a row for each part of an engine's memory, in MB, by its account; see `MemoryAccount.to_json`."""
    table = Table(title="memory of the engine", title_justify="left", show_footer=True)
    table.add_column("part", "resident size")
    table.add_column("MB", f"{memory['resident'] / 1e6:,.1f}", justify="right")
    for part, size in memory["parts"].items():
        table.add_row(_PARTS.get(part, part), f"{size / 1e6:,.1f}")
    apart = {f"on the GPU: {_PARTS.get(part, part)}": size for part, size in memory["gpu"].items()}
    apart |= {"its parser process": memory["children"]} if memory["children"] else {}
    if apart:
        table.caption = "Not in this process: " + ", ".join(
            f"{name} {size / 1e6:,.1f} MB" for name, size in apart.items()
        )
        table.caption_justify = "left"
    return table
