"""`draftline forget`: deletes everything that draftline has recorded, learned and made on this machine."""

from __future__ import annotations

import argparse
import os
import shutil

from completion.paths import check_private, machine_state_dir, runtime_dir, state_dir, writing_to
from lsp_server.engine.consent import CONSENT_FILE
from lsp_server.engine.launcher import STOP_S, EngineOptions, end, processes_with
from lsp_server.settings.experiment import experiment_path
from lsp_server.settings.shared_file import OFF_FILE
from lsp_server.telemetry.store import files_of, store_path


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add no arguments: `forget` has none."""


def execute(_options: argparse.Namespace) -> int:
    """Run the command."""
    _end_engines()
    named = [state_dir() / name for name in ("drafting", CONSENT_FILE, OFF_FILE)]
    named += [state_dir() / name for name in ("engine-token", "server-token")]
    named += [machine_state_dir() / "logs", experiment_path(), *files_of(store_path())]
    with writing_to(state_dir(), "DRAFTLINE_STATE_DIR"):
        named += [path for folder in {state_dir(), machine_state_dir()} for path in folder.glob("*.damaged")]
        for path in filter(os.path.lexists, named):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            print(f"Deleted {path}")
    return 0


def _end_engines() -> None:
    """End every engine of this user. A running engine would write what it has learned when it exits."""
    folder = runtime_dir()
    check_private(folder)
    for lock in sorted(folder.glob("engine-*.lock")):
        processes = processes_with(lock, EngineOptions().program)
        end(processes, STOP_S)
        for process in processes:
            print(f"Ended the engine (process {process.pid}).")
