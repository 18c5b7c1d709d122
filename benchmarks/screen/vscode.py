"""Types into a real VS Code in a browser, and reads its screen.

It is a code-server with the built extension. The browser has no graphics card, so it draws on the cores that the engine
uses. The editor closes brackets and quotes, and does not indent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.engine_processes import private_folders
from benchmarks.screen.seen import State
from benchmarks.screen.typist import LAST_S, place_of, timed_keys
from benchmarks.typing.scripts import Script
from tests.e2e.vscode.code_window import CodeServer, CodeWindow

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = REPOSITORY / "ide_clients" / "vscode"

# Keeps each state of the cursor's line and of the suggestion.
_IN_PAGE = r"""
(() => {
  const all = (selector) => [...document.querySelectorAll(`.part.editor ${selector}`)];
  window.states = [];
  new MutationObserver(() => {
    const top = all('.cursors-layer .cursor')[0]?.style.top;
    const rows = all('.view-lines .view-line').map((row) => parseFloat(row.style.top)).sort((a, b) => a - b);
    const line = linesShown()[rows.indexOf(parseFloat(top))] ?? '';
    const [text, last] = [ghostShown(), states.at(-1)];
    if (!last || last[1] !== line || last[2] !== text) states.push([performance.now(), line, text]);
  }).observe(document, { childList: true, subtree: true, characterData: true, attributeFilter: ['class', 'style'] });
})();
"""


def type_all(scripts: Sequence[Script], seed: int) -> Iterator[tuple[Script, list[State]]]:
    """Yield each session with what the screen showed, in one window.

    Raises:
        SystemExit: npm failed.
    """
    unpack = [sys.executable, str(REPOSITORY / "scripts" / "unpack_vscode.py")]
    paths = json.loads(subprocess.run(unpack, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    python_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with private_folders() as folders, tempfile.TemporaryDirectory(prefix="dl-") as home, sync_playwright() as driver:
        shown = {**folders, "PATH": python_first, "VSCODE_CLI": "1", "PYTHONPATH": str(REPOSITORY)}
        server = CodeServer(paths, Path(home) / "code-server", shown)
        server.install(_build_extension(paths))
        server.start({"editor.autoIndent": "none"})
        browser = driver.chromium.launch(executable_path=paths["chromium"], args=["--no-sandbox"])
        folder = Path(home) / "project"
        folder.mkdir()
        (folder / "warm_up.py").touch()
        with closing(server), closing(browser), closing(CodeWindow(browser, server, folder / "warm_up.py")) as window:
            window.page.evaluate(_IN_PAGE)
            window.wait_for_ready()
            for script in scripts:
                yield script, _type(window, script, folder, seed)


def _type(window: CodeWindow, script: Script, folder: Path, seed: int) -> list[State]:
    file = folder / Path(script.path).name
    file.write_text(script.text, encoding="utf-8")
    window.open(file)
    line, column = place_of(script)
    window.press("Control+g")
    window.page.fill(".quick-input-widget:visible input", f":{line + 1}:{column + 1}")
    window.press("Enter")
    window.page.evaluate("states.splice(0)")
    for pause_s, key in timed_keys(script, seed):
        window.page.wait_for_timeout(1e3 * pause_s)
        if len(key) == 1 and key.isprintable():
            window.type(key)
        else:
            window.page.keyboard.insert_text(key)  # a tab key would accept the suggestion
    window.page.wait_for_timeout(1e3 * LAST_S)
    states = [State(*state) for state in window.page.evaluate("states.splice(0)")]
    window.press("Control+s", "Control+F4")
    return states


def _build_extension(paths: Mapping[str, str]) -> Path:
    environment = {**os.environ, "PATH": f"{Path(paths['node']).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in ([] if (EXTENSION / "node_modules").exists() else [["npm", "ci"]]) + [["npm", "run", "package"]]:
        done = subprocess.run(step, cwd=EXTENSION, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"`{' '.join(step)}` failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return EXTENSION / "draftline.vsix"
