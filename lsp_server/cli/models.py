"""`draftline models`: lists, gets, verifies and removes models, and frees what is not needed of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from completion.model.store import model_list
from completion.model.store.converted_models import damaged_files
from completion.paths import model_path
from completion.progress import Progress as ProgressCallback
from lsp_server.cli.main import Commands

_COLOURS = {"missing": "yellow", "found": "cyan", "converted": "green", "outdated": "cyan", "damaged": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `models`."""
    commands = parser.add_subparsers(action=Commands, dest="models_command", metavar="COMMAND")
    commands.add_parser("list", help="list the models and their state (the default)")
    get = commands.add_parser("get", help="download and convert a model; after an interruption, go on with the rest")
    get.add_argument(
        "model", nargs="?", default="default", help="a name, a folder, a .gguf file or a hub id (default: %(default)s)"
    )
    verify = commands.add_parser("verify", help="check a converted model against its checksums")
    verify.add_argument(
        "model", nargs="?", default="default", help="a name from the list, or a .gguf file (default: %(default)s)"
    )
    commands.add_parser("free", help="delete files that can be made again from what is elsewhere")
    remove = commands.add_parser("remove", help="delete a model's conversion and what `get` downloaded of it")
    remove.add_argument("model", help="a name from the list, or a .gguf file")


def execute(options: argparse.Namespace) -> int:
    """Run the command. The exit status is 1 if the model is damaged, or if the list has no usable model.

    Raises:
        DraftlineError: The model does not exist, or cannot be downloaded, converted or removed.
    """
    console = Console()
    match options.models_command:
        case "get":
            return _get(console, options.model)
        case "verify":
            return _verify(console, options.model)
        case "free":
            return _free(console)
        case "remove":
            return _remove(console, options.model)
        case _:
            return _list(console)


def _list(console: Console) -> int:
    statuses = model_list.statuses()
    for status in statuses:
        state = f"[{_COLOURS[status.state]}]{status.state}[/]"
        size = f", {status.size_bytes / 1e6:,.0f} MB" if status.size_bytes else ""
        console.print(f"[bold]{escape(status.name)}[/]: {state}{size}", soft_wrap=True)
        for fact in filter(None, (status.title, status.where, status.advice)):
            console.print(f"  {escape(fact)}", soft_wrap=True)  # one line each, so that a path can be copied
        if status.state is model_list.ModelState.CONVERTED:
            for name, size_bytes, use in model_list.uses(Path(status.where)):
                console.print(f"  {size_bytes / 1e6:>9,.1f} MB  {escape(name)}: {use}", soft_wrap=True, highlight=False)
            if surplus := model_list.surplus(Path(status.where)):
                advice = f"{surplus / 1e6:,.0f} MB of it are not needed now. To free them: draftline models free"
                console.print(f"  {advice}", soft_wrap=True)
    return 0 if any(status.state.is_usable for status in statuses) else 1


def _get(console: Console, spec: str) -> int:
    from completion.model.loading import get_model

    try:
        with _progress_bar(console) as progress:
            loaded = get_model(spec, progress)
    except KeyboardInterrupt:
        sentence = f"Interrupted. What was downloaded is kept. To go on, run: draftline models get {spec}"
        print(f"draftline: {sentence}", file=sys.stderr)
        raise
    console.print(f"{escape(loaded.name)} is ready. Its first start may take a minute longer, once.", soft_wrap=True)
    if spec != "default":
        path = model_path(spec)
        name = spec if path is None else str(path.absolute())  # an editor's server runs in another folder
        console.print(f"To use it, set in your settings: model = {name!r}", soft_wrap=True, markup=False)
    return 0


def _verify(console: Console, spec: str) -> int:
    folder = model_list.converted_folder(spec)
    damaged = damaged_files(folder)
    if not damaged:
        console.print(f"[green]intact[/]: every file in {escape(str(folder))} matches its checksum", soft_wrap=True)
        return 0
    console.print(f"[red]damaged[/]: {escape(', '.join(damaged))} in {escape(str(folder))}", soft_wrap=True)
    console.print("To convert the model again, run:", soft_wrap=True)
    console.print(f"  draftline models remove {escape(folder.name)}", soft_wrap=True)
    console.print("  draftline models get MODEL", soft_wrap=True)
    return 1


def _free(console: Console) -> int:
    with _progress_bar(console) as progress:
        freed = model_list.free(progress)
    console.print(f"Freed {freed / 1e6:,.0f} MB. A backend that needs the weights in 16 bits writes them again.")
    return 0


def _remove(console: Console, spec: str) -> int:
    with _progress_bar(console) as progress:
        folders, freed = model_list.remove(spec, progress)
    names = escape(" and ".join(map(str, folders)))
    console.print(f"Removed {names} and freed {freed / 1e6:,.0f} MB.", soft_wrap=True)
    return 0


@contextmanager
def _progress_bar(console: Console) -> Iterator[ProgressCallback]:
    """Show a progress bar and provide the callback that moves it. If the output is not a terminal, print sentences."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns,
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=1.0, visible=False)
        said = [""]

        def report(sentence: str, fraction: float) -> None:
            bar.update(task, description=sentence, completed=fraction, visible=True)
            if not console.is_terminal and sentence not in said:
                said.append(sentence)
                console.print(sentence, soft_wrap=True, markup=False)

        yield report
