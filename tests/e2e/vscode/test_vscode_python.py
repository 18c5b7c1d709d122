"""The private environment of the extension in the real VS Code: an updated extension installs its server there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.vscode.code_window import CodeServer, CodeWindow

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

# This environment's Python, with draftline, except that it installs nothing.
PYTHON = f"""#!/bin/sh
case " $* " in
*" venv "*) exit 0 ;;
*" pip "*) echo "$@" >>"$INSTALLED"; exit 0 ;;
esac
exec {sys.executable} "$@"
"""


def write_program(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(PYTHON)
    path.chmod(0o755)


def test_an_updated_extension_installs_its_server_in_its_private_environment(
    paths, vsix, engine_room, browser, tmp_path
):
    home, installed = tmp_path / "code-server", tmp_path / "installed"
    write_program(tmp_path / "bin" / "python3")
    write_program(home / "data" / "User" / "globalStorage" / "draftline.draftline" / "environment" / "bin" / "python")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**engine_room.environment, "PATH": path, "VSCODE_CLI": "1", "INSTALLED": str(installed)}
    server = CodeServer(paths, home, environment)
    server.install(vsix)
    [extension] = (home / "extensions").glob("draftline.draftline-*")
    wheel = extension / "dist" / "draftline-99.0-py3-none-any.whl"
    wheel.touch()
    server.start({})
    try:
        file = tmp_path / "shop" / "orders.py"
        file.parent.mkdir()
        file.touch()
        window = CodeWindow(browser, server, file)
        window.wait_for_ready()
        window.close()
        assert f"{wheel}[default-model]" in installed.read_text()
    finally:
        server.close()
