"""`python -m benchmarks.screen`: what a real VS Code or Neovim shows while someone types, key by key.

It types the first insertions of the sessions of benchmarks.typing, with its pauses, into the editor with its plugin,
the server, the default model and an engine in private folders. All times are from a change of the cursor's line on the
screen to the text on the screen. It prints a table and a JSON line; `--watch` types your own files and prints what the
screen shows. The editors are those of the tests: `make test-editors` unpacks them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile, ratio, rounded
from benchmarks.screen import neovim, vscode
from benchmarks.screen.seen import Seen, seen
from benchmarks.screen.typist import sessions_of
from benchmarks.typing.scripts import Passage, Script

EDITORS = {"vscode": vscode.type_all, "neovim": neovim.type_all}


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
        "keys_with_text": rounded(ratio(sum(one.with_text for one in found.values()), keys), 3),
        "flickers": sum(len(one.flickers) for one in found.values()),
        "text_after_key_p50_ms": rounded(percentile(waits, 0.5), 1),
        "text_after_key_p95_ms": rounded(percentile(waits, 0.95), 1),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screen", description=__doc__)
    parser.add_argument("--editor", choices=EDITORS, default="vscode", help="default: %(default)s")
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--sessions", type=int, default=12, help="number of sessions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of choice and pauses (default: %(default)s)")
    parser.add_argument("--watch", type=Path, nargs="*", default=[], help="files to type and to print key by key")
    chosen = parser.parse_args()
    texts = [(str(path), path.read_text(encoding="utf-8")) for path in chosen.watch]
    own = [Script(path, "", path, "", (Passage(0, 0, text),), len(text)) for path, text in texts]
    scripts = own or sessions_of(chosen.sessions, chosen.seed, chosen.data_dir)
    found: dict[str, Seen] = {}
    for script, states in EDITORS[chosen.editor](scripts, chosen.seed):
        found[script.id] = seen(states)
        print(f"{script.id}: {found[script.id].keys} keys", flush=True)
        if own:
            for before, state in zip([states[0], *states], states, strict=False):
                print(f"{state.at_ms - before.at_ms:6.0f} ms {state.line!r} » {state.text!r}")
    print(json.dumps(report(found)))


if __name__ == "__main__":
    main()
