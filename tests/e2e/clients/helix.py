"""Helix in a terminal, with the completion menu."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.clients.client import Client, line_and_column
from tests.e2e.clients.cursors import CURSORS, Cursor
from tests.e2e.clients.documented import set_up
from tests.e2e.clients.programs import unpacked
from tests.e2e.clients.terminal import Terminal

LANGUAGES = {"py": "python", "js": "javascript", "c": "c", "java": "java", "css": "css"}
assert {one.file.rpartition(".")[2] for one in CURSORS} <= set(LANGUAGES)
SERVER, LANGUAGE = set_up("Helix", "toml").split("\n[[language]]")
CONFIG = SERVER + "".join(
    "\n[[language]]" + LANGUAGE.replace('name = "python"', f'name = "{name}"') for name in LANGUAGES.values()
)
ESCAPE, TAB, RETURN, REQUEST = "\x1b", "\t", "\r", "\x18"
MENU = re.compile(r"\btext\b")  # the kind of the item; no document has the word


class Helix(Client):
    """The completion menu of Helix."""

    name = "Helix"
    shows = "the completion menu"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        program = unpacked()["hx"]
        config = folder / "config"
        (config / "helix").mkdir(parents=True)
        (config / "helix" / "languages.toml").write_text(CONFIG, encoding="utf-8")
        (config / "draftline").symlink_to(Path(environment["XDG_CONFIG_HOME"]) / "draftline")
        own = {"XDG_CONFIG_HOME": str(config), "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = version.split()[1]
        self.terminal = Terminal([program], {**environment, **own})
        assert self.terminal.wait_for(lambda text: "NOR" in text), self.terminal.text()

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the file at the cursor, request the menu, select its first item, and accept it."""
        line, column = line_and_column(cursor)
        screen = self.terminal
        screen.press(f":open {file}:{line}:{column + 1}{RETURN}")
        assert screen.wait_for(lambda text: file.name in text.splitlines()[-3]), screen.text()
        screen.press(f"i{REQUEST}")
        if screen.wait_for(MENU.search):
            screen.press(TAB + RETURN)
            screen.wait_for(lambda text: not MENU.search(text))
        screen.press(ESCAPE)
        screen.wait_for(lambda text: "NOR" in text)
        screen.press(f":write{RETURN}")
        screen.wait_for(lambda text: "written" in text)
        screen.press(f":buffer-close{RETURN}")

    def close(self) -> None:
        """End Helix."""
        self.terminal.close()
