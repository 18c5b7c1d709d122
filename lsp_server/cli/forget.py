"""`draftline forget`: deletes everything that draftline has recorded and learned on this machine."""

from __future__ import annotations

import argparse
import shutil


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `forget`."""
    parser = subparsers.add_parser(
        "forget", help="end the engines and delete all learned and recorded data: calibration, telemetry, logs, answers"
    )
    parser.set_defaults(execute=execute)


def execute(_options: argparse.Namespace) -> int:
    """Run the command."""
    from completion.paths import state_dir, writing_to
    from lsp_server.engine.consent import CONSENT_FILE
    from lsp_server.telemetry.store import clear, store_path

    _end_engines()
    with writing_to(state_dir(), "DRAFTLINE_STATE_DIR"):
        for aside in state_dir().glob("*.damaged"):  # see `drafting.state_files`
            if aside.is_dir() and not aside.is_symlink():
                shutil.rmtree(aside)
            else:
                aside.unlink()
        for folder in (state_dir() / "drafting", state_dir() / "logs"):
            if folder.exists():
                shutil.rmtree(folder)
                print(f"Deleted {folder}")
        if (answers := state_dir() / CONSENT_FILE).exists():
            answers.unlink()
            print(f"Deleted {answers}")
        if store_path().exists():
            clear(store_path())
            print(f"Deleted {store_path()}")
    return 0


def _end_engines() -> None:
    """End every engine of this user. A running engine would write what it has learned when it exits."""
    from completion.host.process.address import check_private
    from completion.paths import runtime_dir
    from lsp_server.engine.host_processes import STOP_S, end, processes_with
    from lsp_server.engine.launcher import EngineOptions

    folder = runtime_dir()
    check_private(folder)
    for lock in sorted(folder.glob("engine-*.lock")):
        processes = processes_with(lock, EngineOptions().program)
        end(processes, STOP_S)
        for process in processes:
            print(f"Ended the engine (process {process.pid}).")
