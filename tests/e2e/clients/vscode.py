"""A real VS Code with this repository's extension, in Chromium."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import regex
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PageTimeoutError
from playwright.sync_api import sync_playwright

from tests.e2e.clients.client import Client, line_and_column
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.programs import vscode
from tests.e2e.vscode.code_window import CodeServer, CodeWindow, package_extension


class VSCode(Client):
    """VS Code, whose extension finds the Python of these tests."""

    name = "VS Code"
    shows = "ghost text that streams"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        paths = vscode()
        entry = Path(paths["code_server"])
        self.version = "code-server " + json.loads((entry.parents[2] / "package.json").read_text())["version"]
        python_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {**environment, "PATH": python_first, "VSCODE_CLI": "1"}
        self.server = CodeServer(paths, folder / "code-server", own)
        self.server.install(package_extension(paths))
        self.server.start({})
        self.playwright = sync_playwright().start()
        (folder / "first.py").touch()
        try:
            options = {"executable_path": paths["chromium"], "args": ["--no-sandbox"]}
            self.window = CodeWindow(self.playwright.chromium.launch(**options), self.server, folder / "first.py")
            self.window.wait_for_ready()
        except (PlaywrightError, AssertionError):
            self.close()  # its event loop would run on in this thread
            raise

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the file, request a suggestion by its key, and accept it with Tab."""
        window, (line, _) = self.window, line_and_column(cursor)
        clusters = regex.findall(r"\X", cursor.before.rpartition("\n")[2])
        window.open(file)
        window.press("Control+g")
        window.page.fill(".quick-input-widget:visible input", f":{line}:1")
        window.press("Enter")
        window.page.wait_for_selector(".quick-input-widget", state="hidden")
        window.press(*["ArrowRight"] * len(clusters), "Alt+\\")  # a column counts the blanks that a tab shows
        try:
            window.page.wait_for_function("ghostShown()", timeout=3000)
        except PageTimeoutError:
            return
        window.press("Tab")
        window.wait_for("!ghostShown()", "acceptance")
        window.press("Control+s")
        window.page.wait_for_selector(".tab.active:not(.dirty)")

    def close(self) -> None:
        """End the browser and code-server."""
        self.playwright.stop()
        self.server.close()
