"""The private environment of the extension in the real VS Code: an updated extension installs its server there.

The proxy of VS Code is passed on, and another extension that fails changes nothing.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.vscode.code_window import SETTINGS, STATUS_ITEM, CodeServer, CodeWindow

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

# This environment's Python, with draftline, except that it installs nothing.
PYTHON = f"""#!/bin/sh
case " $* " in
*install_server.py*) echo "$HTTPS_PROXY" "$@" >>"$INSTALLED"; echo "$0"; exit 0 ;;
esac
exec {sys.executable} "$@"
"""


PROXY = "http://127.0.0.1:9"


def broken_python_extension(path: Path) -> Path:
    """Write a package that VS Code takes for the Python extension, and that does not start."""
    named = {"name": "python", "publisher": "ms-python", "version": "1.0.0", "engines": {"vscode": "^1.100.0"}}
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension/package.json", json.dumps({**named, "main": "./main.js", "activationEvents": []}))
        packed.writestr("extension/main.js", "exports.activate = () => { throw new Error('broken'); };")
    return path


def write_program(path: Path, text: str = PYTHON) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def window_of_a_new_file(browser, server: CodeServer, folder: Path) -> CodeWindow:
    file = folder / "shop" / "orders.py"
    file.parent.mkdir()
    file.touch()
    return CodeWindow(browser, server, file)


def test_an_updated_extension_installs_its_server_in_its_private_environment(
    paths, vsix, engine_room, browser, tmp_path, monkeypatch
):
    monkeypatch.setitem(SETTINGS, "http.proxy", PROXY)  # VS Code reads it from the user's settings only
    home, installed = tmp_path / "code-server", tmp_path / "installed"
    write_program(tmp_path / "bin" / "python3")
    storage = home / "data" / "User" / "globalStorage" / "draftline.draftline"
    python = storage / "environment-of-before" / "bin" / "python"
    write_program(python)
    (storage / "python").write_text(str(python))
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**engine_room.environment, "PATH": path, "VSCODE_CLI": "1", "INSTALLED": str(installed)}
    server = CodeServer(paths, home, environment)
    server.install(vsix)
    server.install(broken_python_extension(tmp_path / "python.vsix"))
    [extension] = (home / "extensions").glob("draftline.draftline-*")
    wheel = extension / "dist" / "draftline-99.0-py3-none-any.whl"
    wheel.touch()
    server.start({})
    try:
        window = window_of_a_new_file(browser, server, tmp_path)
        window.wait_for_ready()
        window.close()
        required = wheel.with_name("requirements.txt")
        assert installed.read_text().startswith(f"{PROXY} -P {extension / 'install_server.py'} {storage} ")
        assert installed.read_text().rstrip().endswith(f" {wheel} {required}")
    finally:
        server.close()


def test_commands_run_while_the_question_whether_to_install_is_open(paths, vsix, browser, tmp_path):
    for name in ("python", "python3"):
        write_program(tmp_path / "bin" / name, "#!/bin/sh\nexit 1\n")
    environment = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "VSCODE_CLI": "1"}
    server = CodeServer(paths, tmp_path / "code-server", environment)
    server.install(vsix)
    server.start({})
    try:
        window = window_of_a_new_file(browser, server, tmp_path)
        window.page.wait_for_selector(".notification-toast:has-text('Install draftline')")
        window.command("draftline: Switch On or Off")
        window.page.wait_for_selector(f'{STATUS_ITEM}[aria-label*="draftline: off"]')
        window.close()
    finally:
        server.close()
