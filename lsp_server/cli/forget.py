"""`draftline forget`: delete what draftline recorded and learned on this machine."""

from __future__ import annotations

import argparse
import shutil

_STOP_S = 10.0  # an engine that ends orderly needs 6 s at most


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `forget`."""
    parser = subparsers.add_parser(
        "forget", help="end the engines and delete what was learned and recorded: calibration, telemetry, logs"
    )
    parser.set_defaults(execute=execute)


def execute(_options: argparse.Namespace) -> int:
    """Run what `add_parser` parsed."""
    from completion.paths import state_dir, writing_to
    from lsp_server.telemetry.schema import store_path
    from lsp_server.telemetry.store import clear

    _end_engines()
    with writing_to(state_dir(), "DRAFTLINE_STATE_DIR"):
        for folder in (state_dir() / "drafting", state_dir() / "logs"):
            if folder.exists():
                shutil.rmtree(folder)
                print(f"Deleted: {folder}")
        if store_path().exists():
            clear(store_path())
            print(f"Deleted: {store_path()}")
    return 0


def _end_engines() -> None:
    """End every engine of this user: what it learned lies in its memory, and it would write it down at its end."""
    from completion.host.process.address import check_private
    from completion.paths import runtime_dir
    from lsp_server.engine.launcher import EngineOptions
    from lsp_server.engine.process import end, processes_with

    folder = runtime_dir()
    check_private(folder)
    for lock in sorted(folder.glob("engine-*.lock")):
        processes = processes_with(lock, EngineOptions().program)
        end(processes, _STOP_S)
        for process in processes:
            print(f"Ended the engine (process {process.pid}).")
