"""A real VS Code: a code-server process, a browser window with it, and the actions of a user."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as PageTimeoutError

EXTENSION = Path(__file__).resolve().parents[3] / "ide_clients" / "vscode"
START_TIMEOUT_S = 240
TIMEOUT_MS = 60_000
READY_MS = 300_000  # on a new machine the model is first converted and packed
STATUS_ITEM = ".statusbar-item:has-text('draftline')"

SETTINGS: dict[str, Any] = {
    "breadcrumbs.enabled": False,
    "chat.disableAIFeatures": True,
    "editor.fontSize": 16,
    "editor.minimap.enabled": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "editor.wordBasedSuggestions": "off",
    "editor.inlineSuggest.showToolbar": "never",
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}

# Runs in the page: reads the editor, and keeps each suggestion that appears.
IN_PAGE = r"""
(() => {
  const isGhost = (node) => /ghost-text|suggest-preview/.test(node.className || '');
  const clean = (text) => text.replaceAll('\u00a0', ' ').replaceAll('\u200c', '');
  const read = (node, ghost, wanted) => {
    if (node.nodeType === Node.TEXT_NODE) return ghost === wanted ? node.textContent : '';
    return [...node.childNodes].map((child) => read(child, ghost || isGhost(node), wanted)).join('');
  };
  const all = (selector) => [...document.querySelectorAll(`.part.editor ${selector}`)];
  const rows = () => all('.view-lines .view-line').sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top));
  window.linesShown = () => rows().map((row) => clean(read(row, false, false)).trimEnd());
  window.ghostShown = () => {
    const below = all('.view-zones .suggest-preview-text .view-line').map((row) => clean(row.textContent));
    return [rows().map((row) => clean(read(row, false, true))).join(''), ...below].filter(Boolean).join('\n');
  };
  window.ghostsSeen = [];
  window.endsSeen = [];
  new MutationObserver(() => {
    const [ghost, end] = [window.ghostShown(), window.linesShown().at(-1) || ''];
    if (window.ghostsSeen.at(-1) !== ghost) window.ghostsSeen.push(ghost);
    const latest = window.endsSeen.at(-1);
    if (!latest || latest[0] !== end || latest[1] !== ghost) window.endsSeen.push([end, ghost]);
  }).observe(document, { childList: true, subtree: true, characterData: true, attributeFilter: ['class'] });
})();
"""


def package_extension(paths: Mapping[str, str]) -> Path:
    """Build the extension as its README says, and return the path of the package."""
    environment = {**os.environ, "PATH": f"{Path(paths['node']).parent}{os.pathsep}{os.environ['PATH']}"}
    install = [] if (EXTENSION / "node_modules").exists() else [["npm", "ci"]]
    for step in (*install, ["npm", "run", "package"]):
        done = subprocess.run(
            step, cwd=EXTENSION, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return EXTENSION / "draftline.vsix"


class CodeServer:
    """A running code-server with its own settings and extensions."""

    def __init__(self, paths: Mapping[str, str], home: Path, environment: Mapping[str, str]) -> None:
        self._command = [paths["node"], paths["code_server"], "--user-data-dir", str(home / "data")]
        self._command += ["--extensions-dir", str(home / "extensions"), "--config", str(home / "config.yaml")]
        self._environment = {**os.environ, **environment}
        self._home = home
        self._process: subprocess.Popen[str] | None = None
        self._listening = threading.Event()
        self.address = ""

    def install(self, extension: Path) -> None:
        """Install a .vsix with code-server's command line."""
        command = [*self._command, "--install-extension", str(extension)]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, settings: Mapping[str, Any]) -> None:
        """Start code-server, the first time or after `close`, and wait until it listens."""
        self._listening.clear()
        for scope, chosen in (("User", SETTINGS), ("Machine", settings)):
            folder = self._home / "data" / scope
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")
        options = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"]
        options += ["--disable-workspace-trust", "--disable-getting-started-override"]
        self._process = subprocess.Popen(
            [*self._command, *options],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        # Read all output: a full pipe would stop the server.
        threading.Thread(target=self._follow, args=(self._process,), daemon=True).start()
        assert self._listening.wait(START_TIMEOUT_S), "code-server does not listen"

    def _follow(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"listening on (http://127\.0\.0\.1:\d+)", line)
            if found:
                self.address = found.group(1)
                self._listening.set()

    def backups(self) -> list[str]:
        """Return what it keeps of documents that are changed and not saved."""
        files = (self._home / "data" / "User" / "Backups").rglob("*")
        return [file.read_text(encoding="utf-8") for file in files if file.is_file()]

    def language_servers(self) -> set[int]:
        """Return the processes of draftline's server in all windows."""
        assert self._process is not None
        found = set()
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if {"lsp_server", "--stdio"} <= set(process.cmdline()):
                    found.add(process.pid)
        return found

    def close(self) -> None:
        """End code-server and its child processes."""
        if self._process is not None and self._process.poll() is None:
            main = psutil.Process(self._process.pid)
            processes = [main, *main.children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.terminate()
            for process in psutil.wait_procs(processes, timeout=10)[1]:
                process.kill()


class CodeWindow:
    """A browser window with one open file."""

    def __init__(self, browser: Browser, server: CodeServer, file: Path) -> None:
        self.folder = file.parent
        self.page: Page = browser.new_page(viewport={"width": 1000, "height": 560}, device_scale_factor=2)
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.add_init_script(IN_PAGE)
        payload = json.dumps([["openFile", f"vscode-remote://{server.address.removeprefix('http://')}{file}"]])
        self.page.goto(f"{server.address}/?folder={file.parent}&payload={payload}", wait_until="commit")
        self.page.wait_for_selector(".part.editor .view-lines .view-line")
        self.page.click(".part.editor .view-lines")

    def type(self, text: str, pause_ms: float = 0) -> None:
        """Type text key by key."""
        self.page.keyboard.type(text, delay=pause_ms)

    def press(self, *keys: str) -> None:
        """Press keys or chords ("Tab", "Control+ArrowRight")."""
        for key in keys:
            self.page.keyboard.press(key)

    def open(self, file: Path) -> None:
        """Open a file by its path, and click into its text."""
        self.show(file)
        self.page.click(".part.editor .view-lines")
        self.ghosts_seen()

    def show(self, file: Path) -> None:
        """Open a file by its path, and leave its cursor where it is."""
        self.page.keyboard.press("Control+p")
        self.page.fill(".quick-input-widget:visible input", str(file))
        self.page.wait_for_selector(f".quick-input-list .monaco-list-row:has-text('{file.name}')")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f".tab.active[data-resource-name='{file.name}']")

    def find_command(self, title: str) -> None:
        """Find a command by its title in the command palette."""
        self.page.keyboard.press("F1")
        self.page.fill(".quick-input-widget:visible input", f">{title}")  # at once: the list sorts while one types
        row = f":has-text({json.dumps(title, ensure_ascii=False)})"
        self.page.wait_for_selector(f".quick-input-list .monaco-list-row.focused{row}")

    def command(self, title: str) -> None:
        """Run a command by its title, from the command palette."""
        self.find_command(title)
        self.page.keyboard.press("Enter")

    def ghost(self) -> str:
        """Return the suggestion on the screen, lines separated by newlines."""
        shown: str = self.page.evaluate("ghostShown()")
        return shown

    def ghosts_seen(self) -> list[str]:
        """Return the suggestions that appeared since the last call, in order."""
        seen: list[str] = self.page.evaluate("ghostsSeen.splice(0)")
        return seen

    def ends_seen(self) -> list[tuple[str, str]]:
        """Return the last line and the suggestion at each of their changes since the last call, in order."""
        return [(end, ghost) for end, ghost in self.page.evaluate("endsSeen.splice(0)")]

    def lines(self) -> list[str]:
        """Return the lines on the screen without suggestions and trailing blanks."""
        lines: list[str] = self.page.evaluate("linesShown()")
        return lines

    def wait_for_ghost(self, pattern: str, timeout_s: float = 30) -> str:
        """Wait until the complete suggestion matches a JavaScript pattern, and return it."""
        whole = f"^(?:{pattern})$"
        self.wait_for(f"new RegExp({json.dumps(whole)}, 's').test(ghostShown())", f"ghost {pattern!r}", timeout_s)
        return self.ghost()

    def wait_for_line(self, expected: str, timeout_s: float = 30) -> None:
        """Wait until a line on the screen is `expected`."""
        self.wait_for(f"linesShown().includes({json.dumps(expected)})", f"line {expected!r}", timeout_s)

    def wait_for(self, condition: str, what: str, timeout_s: float = 30) -> None:
        """Wait until a JavaScript expression is true; it is evaluated at every frame."""
        try:
            self.page.wait_for_function(condition, timeout=timeout_s * 1000)
        except PageTimeoutError as error:
            seen = self.page.evaluate("ghostsSeen")
            raise AssertionError(f"no {what}; lines {self.lines()}, ghosts so far {seen[-5:]}") from error

    def status(self) -> str:
        """Return the status bar item's text for screen readers: state, model, device."""
        return self.page.locator(STATUS_ITEM).first.get_attribute("aria-label") or ""

    def status_text(self) -> str:
        """Return the text of the status bar item."""
        return self.page.locator(STATUS_ITEM).first.inner_text()

    def wait_for_ready(self) -> None:
        """Wait until the engine has loaded its model."""
        try:
            self.page.wait_for_selector(f'{STATUS_ITEM}[aria-label*="draftline: ready"]', timeout=READY_MS)
        except PageTimeoutError as error:
            raise AssertionError(f"the engine is not ready; the status bar says {self.status()!r}") from error

    def close(self) -> None:
        """Close the window."""
        self.page.close()
