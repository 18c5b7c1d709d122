"""A real JupyterLab in Chromium, with the provider that draftline installs beside it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PageTimeoutError
from playwright.sync_api import sync_playwright

from tests.e2e.clients.client import Client
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.programs import jupyterlab, vscode

GHOST = ".jp-GhostText"
TOKEN = "of-the-test"
START_S = 120

# Opens a document, and puts the cursor at an offset of its editor, or of a cell.
OPEN = """async ([path, factory, cell, offset]) => {
  const app = window.jupyterapp;
  const widget = await app.commands.execute("docmanager:open", { path, factory });
  await widget.context.ready;
  await widget.revealed;
  if (cell !== null) {
    Object.assign(widget.content, { activeCellIndex: cell, mode: "edit" });
    await widget.content.scrollToItem(cell);
    await widget.content.activeCell.ready;
  }
  const editor = cell === null ? widget.content.editor : widget.content.activeCell.editor;
  editor.setCursorPosition(editor.getPositionAt(offset ?? editor.model.sharedModel.getSource().length));
  editor.focus();
  Object.assign(window, { shown: widget, editor });
}"""
COMPLETES = "() => window.editor.host.classList.contains('jp-mod-completer-enabled')"
CELLS = "() => window.shown.content.widgets.map((cell) => cell.model.sharedModel.getSource())"
SAVE_AND_CLOSE = """async () => {
  await window.shown.context.save();
  window.shown.dispose();
}"""


class JupyterLab(Client):
    """JupyterLab with nothing but the packages `jupyterlab` and `draftline` in its environment."""

    name = "JupyterLab"
    shows = "ghost text that streams"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        python = jupyterlab()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        homes = {f"JUPYTER_{name}_DIR": str(folder / "jupyter" / name) for name in ("CONFIG", "DATA", "RUNTIME")}
        options = [f"--port={port}", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
        options += ["--no-browser", "--allow-root", "--expose-app-in-browser", "--ServerApp.port_retries=0"]
        settings = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (folder / "jupyter" / "CONFIG" / "labconfig").mkdir(parents=True)
        (folder / "jupyter" / "CONFIG" / "labconfig" / "page_config.json").write_text(json.dumps(settings))
        self.log = (folder / "jupyter" / "log").open("wb")
        own = {**environment, **homes, "PYTHONPATH": ""}
        command = [python, "-m", "jupyterlab", *options]
        self.server = subprocess.Popen(command, env=own, stdout=self.log, stderr=subprocess.STDOUT)
        self.version = _version(python)
        self.playwright = sync_playwright().start()
        try:
            chromium = {"executable_path": vscode()["chromium"], "args": ["--no-sandbox"]}
            self.page = self.playwright.chromium.launch(**chromium).new_page()
            self._open_page(f"http://127.0.0.1:{port}/lab?token={TOKEN}")
        except PlaywrightError:
            self.close()  # its event loop would run on in this thread
            raise

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the file, request a suggestion by its key, and accept it with Tab."""
        before = cursor.before.replace("\r\n", "\n")
        self.show(file.name, len(before.encode("utf-16-le")) // 2)
        self.page.keyboard.press("Alt+\\")
        try:
            self.page.wait_for_selector(GHOST, timeout=3000)
        except PageTimeoutError:
            self.page.evaluate(SAVE_AND_CLOSE)
            return
        self.page.keyboard.press("Tab")
        self.page.wait_for_selector(GHOST, state="detached", timeout=60_000)
        self.page.evaluate(SAVE_AND_CLOSE)

    def show(self, path: str, offset: int | None = None, cell: int | None = None) -> None:
        """Open a file or notebook with the cursor at an offset, by default at the end, of its text or of a cell's."""
        factory = "Editor" if cell is None else "Notebook"
        self.page.evaluate(OPEN, [path, factory, cell, offset])
        self.page.wait_for_function(COMPLETES, timeout=60_000)

    def cells(self) -> list[str]:
        """Return the texts of the cells of the notebook that is open."""
        found: list[str] = self.page.evaluate(CELLS)
        return found

    def ghost(self) -> str:
        """Wait for a suggestion, and return it."""
        self.page.wait_for_selector(GHOST, timeout=60_000)
        return self.page.inner_text(GHOST)

    def close(self) -> None:
        """End the browser and the server of Jupyter."""
        self.playwright.stop()
        self.server.terminate()
        self.server.wait(60)
        self.log.close()

    def _open_page(self, url: str) -> None:
        """Open the page, for which the server must have started."""
        for _ in range(START_S):
            try:
                self.page.goto(url)
                break
            except PlaywrightError:
                assert self.server.poll() is None, (self.folder / "jupyter" / "log").read_text()
                self.page.wait_for_timeout(1000)
        self.page.wait_for_function("window.jupyterapp?.restored", timeout=START_S * 1000)
        self.page.evaluate("async () => { await window.jupyterapp.restored; }")


def notebook(path: Path, *cells: str) -> None:
    """Write a notebook in Python."""
    kernel: dict[str, Any] = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    listed = [{**cell, "id": f"c{number}", "source": text} for number, text in enumerate(cells)]
    content = {"cells": listed, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content), encoding="utf-8")


def _version(python: Path) -> str:
    command = [python, "-c", "import importlib.metadata as m; print(m.version('jupyterlab'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
