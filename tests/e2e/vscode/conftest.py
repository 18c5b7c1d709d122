"""A real VS Code for the tests, with the packaged extension, this repository's server and the default model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.vscode.code_window import CodeServer, CodeWindow, package_extension

REPOSITORY = Path(__file__).resolve().parents[3]
CHECKER = Path(__file__).parent / "checker"


@pytest.fixture(scope="session")
def paths() -> dict[str, str]:
    """Unpack VS Code, unless an earlier run did, and return the paths of its parts."""
    script = REPOSITORY / "scripts" / "unpack_vscode.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def vsix(paths: dict[str, str]) -> Path:
    """Build the extension, and return the path of the package."""
    return package_extension(paths)


@pytest.fixture(scope="session")
def checker(tmp_path_factory) -> Path:
    """Pack the tool that reports errors, and return the path of the package."""
    package = tmp_path_factory.mktemp("checker") / "checker.vsix"
    with zipfile.ZipFile(package, "w") as packed:
        for file in CHECKER.iterdir():
            packed.write(file, f"extension/{file.name}")
    return package


@pytest.fixture(scope="session")
def code_server(paths, vsix: Path, checker: Path, engine_room, tmp_path_factory) -> Iterator[CodeServer]:
    """Return a running code-server with the extension, a tool that reports errors, and no other configuration.

    The Python on its path has draftline, as on a machine where draftline is installed.
    """
    python_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # VSCODE_CLI: code-server uses the PATH of the process that starts it, not that of a login shell.
    environment = {**engine_room.environment, "PATH": python_first, "VSCODE_CLI": "1"}
    server = CodeServer(paths, tmp_path_factory.mktemp("code-server"), environment)
    server.install(vsix)
    server.install(checker)
    server.start({"draftline.readDelayMs": 50})
    yield server
    server.close()


@pytest.fixture(scope="session")
def browser(paths) -> Iterator[Browser]:
    """Return a headless chromium."""
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=paths["chromium"], args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture(scope="session")
def window(code_server, browser, tmp_path_factory) -> Iterator[CodeWindow]:
    """Return a window with a ready engine, in which tests open their files."""
    file = tmp_path_factory.mktemp("shop") / "orders.py"
    file.touch()
    one = CodeWindow(browser, code_server, file)
    one.wait_for_ready()
    yield one
    one.close()


@pytest.fixture
def edit(window: CodeWindow, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., CodeWindow]:
    """Return a function that opens a new file in the window and moves the cursor to its end."""

    def edit_one(text: str, name: str = "") -> CodeWindow:
        file = (window.folder if name else tmp_path) / (name or f"{request.node.name}.py")
        file.write_bytes(text.encode())
        window.open(file)
        window.press("Control+End")
        return window

    return edit_one


@pytest.fixture
def open_window(code_server, browser) -> Iterator[Callable[[Path], CodeWindow]]:
    """Return a function that opens another window and returns it."""
    opened: list[CodeWindow] = []

    def open_one(file: Path) -> CodeWindow:
        opened.append(CodeWindow(browser, code_server, file))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
