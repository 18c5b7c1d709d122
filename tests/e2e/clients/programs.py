"""The unpacked programs of other people's clients."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.clients.forced_host import REPOSITORY


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
