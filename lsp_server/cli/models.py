"""`draftline models`: lists, prepares, verifies and removes models."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from completion.model.store import converted_models, model_store
from completion.progress import Progress as ProgressCallback

_COLOURS = {"missing": "yellow", "found": "cyan", "converted": "green", "damaged": "red"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `models` and its subcommands."""
    parser = subparsers.add_parser("models", help="list, prepare, verify and remove models")
    parser.set_defaults(execute=execute)
    commands = parser.add_subparsers(dest="models_command", metavar="COMMAND")
    commands.add_parser("list", help="list the models and their state (the default)")
    prepare = commands.add_parser("prepare", help="download and convert a model now instead of at its first use")
    prepare.add_argument("model", nargs="?", default="default", help="a name, a folder, a .gguf file or a hub id")
    verify = commands.add_parser("verify", help="check a converted model against its checksums")
    verify.add_argument("model", nargs="?", default="default", help="a name from the list")
    remove = commands.add_parser("remove", help="delete a converted model; its source stays")
    remove.add_argument("model", help="a name from the list")


def execute(options: argparse.Namespace) -> int:
    """Run the command. The exit status is 1 if the model is damaged, or if the list has no usable model.

    Raises:
        DraftlineError: The model does not exist, or cannot be prepared or removed.
    """
    console = Console()
    match options.models_command:
        case "prepare":
            return _prepare(console, options.model)
        case "verify":
            return _verify(console, options.model)
        case "remove":
            return _remove(console, options.model)
        case _:
            return _list(console)


def _list(console: Console) -> int:
    statuses = model_store.statuses()
    table = Table(title="Models", title_justify="left")
    for heading in ("name", "state", "size"):
        table.add_column(heading, justify="right" if heading == "size" else "left", no_wrap=True)
    table.add_column("description, location, what to do", overflow="fold")
    for status in statuses:
        state = f"[{_COLOURS[status.state]}]{status.state}[/]"
        size = f"{status.size_bytes / 1e6:,.0f} MB" if status.size_bytes else ""
        facts = "\n".join(filter(None, (status.title, status.where, status.advice)))
        table.add_row(escape(status.name), state, size, escape(facts))
    console.print(table)
    usable = {model_store.ModelState.CONVERTED, model_store.ModelState.FOUND}
    return 0 if any(status.state in usable for status in statuses) else 1


def _prepare(console: Console, spec: str) -> int:
    from completion.model.loading import load_model

    with _progress_bar(console) as progress:
        loaded = load_model(spec, progress=progress)  # loading also packs the weights, which happens only once
    console.print(f"{escape(loaded.name)} is ready. Its first use needs no further preparation.", soft_wrap=True)
    return 0


def _verify(console: Console, spec: str) -> int:
    folder = model_store.converted_folder(spec)
    damaged = model_store.verify(spec)
    if not damaged:
        console.print(f"[green]intact[/]: every file in {escape(str(folder))} matches its checksum", soft_wrap=True)
        return 0
    console.print(f"[red]damaged[/]: {escape(', '.join(damaged))} in {escape(str(folder))}", soft_wrap=True)
    console.print("To convert the model again, run:", soft_wrap=True)
    console.print(f"  draftline models remove {escape(folder.name)}", soft_wrap=True)
    console.print("  draftline models prepare MODEL", soft_wrap=True)
    return 1


def _remove(console: Console, spec: str) -> int:
    folder = model_store.converted_folder(spec)
    with _progress_bar(console) as progress:
        freed = converted_models.remove(folder, progress)
    console.print(f"Removed {escape(str(folder))} and freed {freed / 1e6:,.0f} MB.", soft_wrap=True)
    return 0


@contextmanager
def _progress_bar(console: Console) -> Iterator[ProgressCallback]:
    """Show a progress bar and provide the callback that moves it. Show none if the output is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda sentence, fraction: bar.update(task, description=sentence, completed=fraction)
