"""`draftline models`: what models there are, in what state, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from completion.model.store import converted_models, model_store
from completion.progress import Progress as Told

_COLOURS = {"missing": "yellow", "found": "cyan", "converted": "green", "damaged": "red"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `models` and its own subcommands."""
    parser = subparsers.add_parser("models", help="list, prepare, verify and remove models")
    parser.set_defaults(execute=execute)
    commands = parser.add_subparsers(dest="models_command", metavar="COMMAND")
    commands.add_parser("list", help="what models there are (the default)")
    prepare = commands.add_parser("prepare", help="do now what a model's first use would do")
    prepare.add_argument("model", nargs="?", default="default", help="a name, a folder, a .gguf file or a hub id")
    verify = commands.add_parser("verify", help="compare a converted model with its checksums")
    verify.add_argument("model", nargs="?", default="default", help="a name from the list")
    remove = commands.add_parser("remove", help="delete a converted model; its source stays")
    remove.add_argument("model", help="a name from the list")


def execute(options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed; the result is the exit status: 1 where a model is not usable.

    Raises:
        DraftlineError: What was asked for cannot be done.
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
    table.add_column("what it is, where it lies, what to do", overflow="fold")
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

    with _progress_bar(console) as told:
        loaded = load_model(spec, progress=told)  # loading packs the weights, which is done once as well
    console.print(f"{escape(loaded.name)} is ready: its first start will be as fast as any.", soft_wrap=True)
    return 0


def _verify(console: Console, spec: str) -> int:
    folder = model_store.converted_folder(spec)
    damaged = model_store.verify(spec)
    if not damaged:
        console.print(f"[green]intact[/]: every file in {escape(str(folder))} has its checksum", soft_wrap=True)
        return 0
    console.print(f"[red]damaged[/]: {escape(', '.join(damaged))} in {escape(str(folder))}", soft_wrap=True)
    console.print(f"Convert it again: draftline models remove {folder.name}, then draftline models prepare")
    return 1


def _remove(console: Console, spec: str) -> int:
    folder = model_store.converted_folder(spec)
    with _progress_bar(console) as told:
        freed = converted_models.remove(folder, told)
    console.print(f"Removed {escape(str(folder))}: {freed / 1e6:,.0f} MB are free again.", soft_wrap=True)
    return 0


@contextmanager
def _progress_bar(console: Console) -> Iterator[Told]:
    """A bar that follows what is told; nothing where the output is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda sentence, fraction: bar.update(task, description=sentence, completed=fraction)
