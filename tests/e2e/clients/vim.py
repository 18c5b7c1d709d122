"""Vim with ALE in a terminal, with the completion menu; a channel of Vim's own tells what it shows."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.clients.client import Client, line_and_column
from tests.e2e.clients.cursors import CURSORS, Cursor
from tests.e2e.clients.documented import set_up
from tests.e2e.clients.programs import unpacked
from tests.e2e.clients.terminal import Terminal

FILETYPES = {"py": "python", "js": "javascript", "c": "c", "java": "java", "css": "css"}
assert {one.file.rpartition(".")[2] for one in CURSORS} <= set(FILETYPES)
DEFINE, MAP = set_up("Vim", "vim").split("imap")
INIT = """set nocompatible noswapfile completeopt=menu,menuone,noinsert,noselect fileformats=unix,dos
let g:ale_linters_explicit = 1
let g:ale_linters = {linters}
let g:ale_completion_enabled = 0
set runtimepath^={ale}
filetype plugin indent on
runtime plugin/ale.vim
{define}
imap{map}let g:channel = ch_open('127.0.0.1:{port}', {{'mode': 'json'}})
"""


class VimAle(Client):
    """The completion menu of Vim, filled by ALE."""

    name = "Vim, ALE"
    shows = "the completion menu"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        paths = unpacked()
        root = Path(paths["root"])
        [runtime] = root.glob("usr/share/vim/vim[0-9]*")
        listener = socket.create_server(("127.0.0.1", 0))
        script = folder / "vimrc"
        script.write_text(
            INIT.format(
                linters=json.dumps({one: ["draftline"] for one in FILETYPES.values()}),
                ale=root / "usr/share/vim-ale",
                define="".join(DEFINE.replace("'python'", f"'{one}'") for one in FILETYPES.values()),
                map=MAP,
                port=listener.getsockname()[1],
            ),
            encoding="utf-8",
        )
        own = {"VIM": str(runtime.parent), "VIMRUNTIME": str(runtime), "HOME": str(folder)}
        self.terminal = Terminal([paths["vim"], "-N", "-u", str(script), "-i", "NONE"], {**environment, **own})
        listener.settimeout(20)
        self._channel = listener.accept()[0]
        self._channel.settimeout(30)
        self._replies = self._channel.makefile("r", encoding="utf-8")
        self._number = 0
        major, patch = divmod(int(self.value("v:versionlong")), 10_000)
        source = (root / "usr/share/vim-ale/autoload/ale.vim").read_text(encoding="utf-8")
        ale = ".".join(re.findall(r"\d+", source.partition("current_ale_version = ")[2])[:3])
        self.version = f"{major // 100}.{major % 100}.{patch}, ALE {ale}"

    def value(self, expression: str) -> Any:
        """Return the value of an expression."""
        self._number -= 1
        self._send(["expr", expression, self._number])
        number, value = json.loads(self._replies.readline())
        assert number == self._number
        return value

    def _send(self, message: list[object]) -> None:
        self._channel.sendall(json.dumps(message).encode())

    def wait_for(self, expression: str, seconds: int = 5) -> bool:
        """Wait until an expression is true; return whether it became so. Vim looks whenever it would wait for a key."""
        return any(self.value(f"[execute('sleep 10m'), {expression}][1]") for _ in range(100 * seconds))

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Open the file at the cursor, request the menu, and take its first item."""
        line, _ = line_and_column(cursor)
        before = len(cursor.before.rpartition("\n")[2].encode())
        self._send(["ex", f"edit {file}"])
        self._send(["ex", f"call cursor({line}, {before + 1})"])
        is_end = self.value("col('$')") == before + 1
        self._send(["normal", "\x1b"])
        self._send(["ex", f"call feedkeys(\"{'A' if is_end else 'i'}\\<F5>\", 't')"])
        if self.wait_for("pumvisible()"):
            self._send(["ex", 'call feedkeys("\\<C-n>\\<C-y>", "t")'])
            self.wait_for("!pumvisible()")
        self._send(["ex", 'call feedkeys("\\<Esc>", "t")'])
        self.wait_for("mode() ==# 'n'")
        self._send(["ex", "silent write"])
        assert self.value("&modified") == 0

    def close(self) -> None:
        """End Vim."""
        self._channel.close()
        self.terminal.close()
