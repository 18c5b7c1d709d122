"""Editors of web pages in Chromium, each with its own LSP client."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PageTimeoutError
from playwright.sync_api import sync_playwright

from tests.e2e.clients.client import Client
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.forced_host import COMMAND, REPOSITORY
from tests.e2e.clients.programs import vscode

SOURCE = Path(__file__).parent / "pages"
BUILT = REPOSITORY / ".cache" / "pages"
WORKER = "node_modules/monaco-editor/esm/vs/editor/editor.worker.js"
LANGUAGES = {"py": "python", "js": "javascript", "c": "c", "java": "java", "css": "css"}


@functools.cache
def built() -> Path:
    """Return the folder of the built pages; their packages are fetched first if they are missing."""
    programs = Path(vscode()["node"]).parent
    path = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    BUILT.mkdir(parents=True, exist_ok=True)
    for file in SOURCE.iterdir():
        shutil.copy(file, BUILT)
    packages = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(packages, cwd=BUILT, env=path, check=True, capture_output=True, timeout=600)
    esbuild = ["node_modules/.bin/esbuild", "--bundle", "--outdir=built", "--entry-names=[name]", "--loader:.ttf=file"]
    build = [*esbuild, "--format=esm", "codemirror.js", "monaco.js"]
    subprocess.run([*esbuild, WORKER], cwd=BUILT, env=path, check=True, capture_output=True, timeout=300)
    subprocess.run(build, cwd=BUILT, env=path, check=True, capture_output=True, timeout=300)
    for name in ("codemirror", "monaco"):
        head = f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{name}.css">'
        (BUILT / "built" / f"{name}.html").write_text(
            f'{head}<body><script type="module" src="{name}.js"></script>', encoding="utf-8"
        )
    return BUILT


class _Page(Client):
    page_name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        site = built()
        self.version = ", ".join(
            f"{json.loads((site / 'node_modules' / name / 'package.json').read_text())['version']}"
            for name in self.packages
        )
        serve = [vscode()["node"], str(site / "serve.mjs"), str(site), *COMMAND]
        self.server = subprocess.Popen(serve, env=dict(environment), stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        port = self.server.stdout.readline().strip()
        self.playwright = sync_playwright().start()
        try:
            options = {"executable_path": vscode()["chromium"], "args": ["--no-sandbox"]}
            self.page = self.playwright.chromium.launch(**options).new_page()
            self.page.goto(f"http://127.0.0.1:{port}/{self.page_name}.html")
            self.page.wait_for_function("window.ready", timeout=120_000)
        except PlaywrightError:
            self.close()  # its event loop would run on in this thread
            raise

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the text, request the menu by its key, and take the first item."""
        language = LANGUAGES[cursor.file.rpartition(".")[2]]
        before = cursor.before.replace("\r\n", "\n") if self.counts_newlines_once else cursor.before
        text = cursor.before + cursor.after
        units = len(before.encode("utf-16-le")) // 2
        uri = f"file:///{file.name}"  # Monaco's client opens a name in lower case, and asks about the name as it is
        self.page.evaluate("(each) => show(...each)", [uri, language, text, units])
        self.page.keyboard.press("Control+Space")
        try:
            self.page.wait_for_function("isShown()", timeout=3000)
        except PageTimeoutError:
            return
        self.page.keyboard.press("Enter")
        self.page.wait_for_function("!isShown()")
        after = self.page.evaluate("text()")
        file.write_bytes((after.replace("\n", "\r\n") if "\r\n" in text else after).encode())

    counts_newlines_once: ClassVar[bool] = False

    def close(self) -> None:
        """End the browser and the page's server."""
        self.playwright.stop()
        self.server.kill()
        self.server.wait(10)


class CodeMirror(_Page):
    """CodeMirror with its LSP client."""

    name = "CodeMirror, its LSP client"
    shows = "the completion menu"
    page_name = "codemirror"
    packages = ("codemirror", "@codemirror/lsp-client")
    counts_newlines_once = True


class Monaco(_Page):
    """Monaco with the LSP client that it brings."""

    name = "Monaco, its LSP client"
    shows = "the completion menu"
    page_name = "monaco"
    packages = ("monaco-editor",)
