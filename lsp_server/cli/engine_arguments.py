"""The options of every command that uses an engine, and a client for them that shows its progress in the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from rich.console import Console

from completion.backend import BACKENDS
from completion.free_memory import free_bytes
from completion.host.process.address import DEFAULT_MODEL_NAME
from lsp_server.engine.auto_model import Now, choice_of
from lsp_server.engine.client import EngineClient
from lsp_server.engine.launcher import EngineOptions, EngineStatus
from lsp_server.settings.config import users_problems, users_settings, with_option
from lsp_server.settings.table import Settings


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the engine."""
    parser.add_argument(
        "--model", help="a name, a folder (./NAME), a .gguf file or a hub id (default: that of your settings)"
    )
    parser.add_argument(
        "--backend", choices=BACKENDS, help="implementation that runs the model (default: that of your settings)"
    )


def report_ignored_settings() -> None:
    """Print on standard error which values of the user's own settings file are ignored, and why."""
    for problem in users_problems():
        print(f"draftline: {problem}", file=sys.stderr)


def options_of(options: argparse.Namespace) -> EngineOptions:
    """Return the engine of the user's own settings file, which is the editor's, with what the command line replaces.

    The errors are those of `settings_of`.
    """
    settings = settings_of(options)
    choice = choice_of(settings, Now(free_bytes()))  # at any time the same one, so that `--stop` finds it
    automatic = choice.model.spec if choice else DEFAULT_MODEL_NAME
    return EngineOptions.of_settings(settings, is_editor=False, automatic=automatic)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the user's own settings, with what the command line replaces.

    Raises:
        ConfigurationError: An option has a value that its setting may not have.
    """
    settings = users_settings()
    for name in ("model", "backend", "threads", "gpu_memory_share"):
        if (value := getattr(options, name, None)) is not None:
            settings = with_option(settings, name, value)
    return settings


@asynccontextmanager
async def connected_client(
    options: EngineOptions, console: Console, *, sends: bool = True
) -> AsyncIterator[EngineClient]:
    """Provide a client whose engine is ready, and show the loading progress on the console.

    If `sends`, and there is a server that gets the text, say where it is.

    Raises:
        DraftlineError: The engine cannot be started or reached, or the model failed to load.
    """
    async with AsyncExitStack() as stack:
        with console.status("Connecting to the engine.") as line:

            def show(status: EngineStatus) -> None:
                percent = f" {status.percent:.0f} %" if status.state == "loading" else ""
                line.update(f"{status.sentence}{percent}")

            client = EngineClient(options, show)
            stack.push_async_callback(client.close)
            await client.connect()
        if options.remote.url and sends:  # a command in a terminal asks for this itself
            where = f"The text goes to {options.remote.shown()}."
            console.print(where, markup=False, highlight=False, soft_wrap=True)  # an address may have brackets
        yield client
