"""`python -m benchmarks.vscode_screen`: what a real VS Code shows while someone types, key by key.

It types the first insertions of the sessions of benchmarks.typing, with its pauses, into a code-server with the built
extension, the server, the default model and an engine in private folders. The editor closes brackets and quotes, and
does not indent. All times are from a change of the cursor's line on the screen to the text on the screen. The browser
has no graphics card, so it draws on the cores that the engine uses. It prints a table and a JSON line; `--watch` types
your own files and prints each state of the screen. The editor is the one of the tests: `make test-editors` unpacks it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.data import read_records
from benchmarks.engine_processes import private_folders
from benchmarks.figures import percentile, rounded
from benchmarks.typing.person import Habits, strokes
from benchmarks.typing.scripts import Passage, Script, choose, release_scripts
from benchmarks.vscode_screen.seen import Seen, State, seen
from tests.e2e.vscode.code_window import CodeServer, CodeWindow

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = REPOSITORY / "ide_clients" / "vscode"
CHARACTERS = 400
"""Maximum number of typed characters of a session."""
FEWEST_CHARACTERS = 60
_LAST_MS = 1_500  # what the last key shows

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


def sessions_of(count: int, seed: int) -> list[Script]:
    """Return sessions that begin with an insertion that is long enough."""
    found = release_scripts(read_records("open_release_replay.jsonl.gz"), CHARACTERS)
    inserting = [
        one for one in found if not one.passages[0].deleted and len(one.passages[0].typed.strip()) >= FEWEST_CHARACTERS
    ]
    return choose(inserting, [], count, seed)


def keys_of(typed: str) -> Iterator[str]:
    """Yield a character, or a line end with the blanks after it, for each key."""
    for match in re.finditer(r"\n[ \t]*|^[ \t]+|.", typed):
        yield match.group()


def watch(window: CodeWindow, script: Script, folder: Path, random: Random) -> list[State]:
    """Type the first insertion of a session at its place, and return what the screen showed."""
    passage = script.passages[0]
    file = folder / Path(script.path).name
    file.write_text(script.text, encoding="utf-8")
    window.open(file)
    before = script.text[: passage.offset]
    window.press("Control+g")
    place = f":{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    window.page.fill(".quick-input-widget:visible input", place)
    window.press("Enter")
    window.page.evaluate("states.splice(0)")
    pauses = iter(strokes(passage, Habits(), random))
    for key in keys_of(passage.typed[:CHARACTERS]):
        window.page.wait_for_timeout(1e3 * max(next(pauses).pause_s for _ in key))
        if len(key) == 1 and key.isprintable():
            window.type(key)
        else:
            window.page.keyboard.insert_text(key)  # a tab key would accept the suggestion
    window.page.wait_for_timeout(_LAST_MS)
    states = [State(*state) for state in window.page.evaluate("states.splice(0)")]
    window.press("Control+s", "Control+F4")
    return states


def build_extension(paths: Mapping[str, str]) -> Path:
    """Build the extension, and return the path of the package.

    Raises:
        SystemExit: npm failed.
    """
    environment = {**os.environ, "PATH": f"{Path(paths['node']).parent}{os.pathsep}{os.environ['PATH']}"}
    for step in ([] if (EXTENSION / "node_modules").exists() else [["npm", "ci"]]) + [["npm", "run", "package"]]:
        done = subprocess.run(step, cwd=EXTENSION, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"`{' '.join(step)}` failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return EXTENSION / "draftline.vsix"


def type_all(scripts: Sequence[Script], seed: int) -> Iterator[tuple[Script, list[State]]]:
    """Yield each session with what the screen showed."""
    unpack = [sys.executable, str(REPOSITORY / "scripts" / "unpack_vscode.py")]
    paths = json.loads(subprocess.run(unpack, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    python_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with private_folders() as folders, tempfile.TemporaryDirectory(prefix="dl-") as home, sync_playwright() as driver:
        shown = {**folders, "PATH": python_first, "VSCODE_CLI": "1", "PYTHONPATH": str(REPOSITORY)}
        server = CodeServer(paths, Path(home) / "code-server", shown)
        server.install(build_extension(paths))
        server.start({"editor.autoIndent": "none"})
        browser = driver.chromium.launch(executable_path=paths["chromium"], args=["--no-sandbox"])
        folder = Path(home) / "project"
        folder.mkdir()
        (folder / "warm_up.py").touch()
        with closing(server), closing(browser), closing(CodeWindow(browser, server, folder / "warm_up.py")) as window:
            window.page.evaluate(_IN_PAGE)
            window.wait_for_ready()
            for script in scripts:
                yield script, watch(window, script, folder, Random(f"{seed}:{script.id}"))


def report(found: Mapping[str, Seen]) -> dict[str, Any]:
    """Print a row for each session, and return the figures of all."""
    table = Table("session", "keys", "with text", "flickers", title="What the screen showed")
    for name, one in found.items():
        table.add_row(name, f"{one.keys}", f"{one.with_text}", f"{len(one.flickers)}")
    Console().print(table)
    keys = sum(one.keys for one in found.values())
    waits = [wait for one in found.values() for wait in one.waits_ms]
    return {
        "sessions": len(found),
        "keys": keys,
        "keys_with_text": round(sum(one.with_text for one in found.values()) / keys, 3),
        "flickers": sum(len(one.flickers) for one in found.values()),
        "text_after_key_p50_ms": rounded(percentile(waits, 0.5), 1),
        "text_after_key_p95_ms": rounded(percentile(waits, 0.95), 1),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=12, help="number of sessions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of choice and pauses (default: %(default)s)")
    parser.add_argument("--watch", type=Path, nargs="*", default=[], help="files to type and to print key by key")
    chosen = parser.parse_args()
    texts = [(str(path), path.read_text(encoding="utf-8")) for path in chosen.watch]
    own = [Script(path, "", path, "", (Passage(0, 0, text),), len(text)) for path, text in texts]
    found: dict[str, Seen] = {}
    for script, states in type_all(own or sessions_of(chosen.sessions, chosen.seed), chosen.seed):
        found[script.id] = seen(states)
        print(f"{script.id}: {found[script.id].keys} keys", flush=True)
        if own:
            for before, state in zip([states[0], *states], states, strict=False):
                print(f"{state.at_ms - before.at_ms:6.0f} ms {state.line!r} » {state.text!r}")
    print(json.dumps(report(found)))


if __name__ == "__main__":
    main()
