"""The unpacked programs of other people's clients."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e.clients.forced_host import REPOSITORY

JUPYTERLAB = "4.6.6"


def _last_line_of(script: str) -> str:
    path = REPOSITORY / "scripts" / script
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@functools.cache
def neovim() -> Path:
    """Return the path of Neovim; it is unpacked first if it is missing."""
    return Path(_last_line_of("unpack_neovim.py"))


@functools.cache
def unpacked() -> dict[str, str]:
    """Return the paths that `scripts/unpack_editors.py` prints."""
    paths: dict[str, str] = json.loads(_last_line_of("unpack_editors.py"))
    return paths


@functools.cache
def vscode() -> dict[str, str]:
    """Return the paths of Node and Chromium that `scripts/unpack_vscode.py` prints."""
    paths: dict[str, str] = json.loads(_last_line_of("unpack_vscode.py"))
    return paths


@functools.cache
def jupyterlab() -> Path:
    """Return the Python of an environment in which a user has installed JupyterLab and this draftline."""
    folder = REPOSITORY / ".cache" / "jupyterlab"
    python, complete = folder / "bin" / "python", folder / f"complete-{JUPYTERLAB}"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", REPOSITORY]
    if complete.exists():
        subprocess.run([*pip, "--no-deps", "--force-reinstall"], check=True, timeout=600)  # it may have changed
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
    constraints = ["--constraint", REPOSITORY / "constraints.txt"]
    subprocess.run([*pip, *constraints, f"jupyterlab=={JUPYTERLAB}"], check=True, timeout=1800)
    complete.touch()
    return python
