"""Neovim with our plugin, and with nothing but its own inline completion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from benchmarks.editor_latency.neovim_driver import Neovim
from tests.e2e.clients.client import Client, line_and_column
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.documented import set_up
from tests.e2e.clients.forced_host import COMMAND, REPOSITORY
from tests.e2e.clients.programs import neovim

BUILT_IN = 1  # the second block of the section
WORDS = ", ".join(map(json.dumps, COMMAND))


class _Neovim(Client):
    init: ClassVar[str]
    shown: ClassVar[str]

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        program = neovim()
        script = folder / "init.lua"
        script.write_text("vim.o.swapfile = false\n" + self.init, encoding="utf-8")
        homes = {f"XDG_{name}_HOME": str(folder) for name in ("DATA", "STATE")}
        self.neovim = Neovim(program, ["-u", str(script), "-i", "NONE"], {**environment, **homes})
        self.version = self.neovim.lua("return tostring(vim.version())")

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Enter insert mode at the cursor, wait for the suggestion, and press Tab."""
        editor = self.neovim
        editor.command(f"edit {file}")
        editor.wait_for_lua("#vim.lsp.get_clients({ bufnr = 0 }) > 0", "language server")
        editor.wait_for_lua("vim.lsp.get_clients({ bufnr = 0 })[1].initialized", "answer of the language server")
        line, column = line_and_column(cursor)
        text = editor.lines()[line - 1]
        units = len(text[:column].encode())
        is_end = column == len(text)
        editor.request("nvim_win_set_cursor", 0, [line, max(0, len(text[: column - 1].encode())) if is_end else units])
        editor.type("A" if is_end else "i")
        editor.wait_for_lua(f"vim.fn.mode() == 'i' and vim.fn.col('.') == {units + 1}", "cursor")
        if editor.lua(f"return vim.wait(5000, function() return {self.shown} end, 5)"):
            before = editor.lines()
            editor.type("<Tab>")
            editor.wait_for(lambda: editor.lines() != before, "accepted text", 5)
        editor.type("<Esc>")
        editor.command("silent write")

    def close(self) -> None:
        """End Neovim."""
        self.neovim.close()


class OurPlugin(_Neovim):
    """Neovim with this repository's plugin: every other client is compared with it."""

    name = "draftline.nvim"
    shows = "ghost text that streams"
    init = (
        f"vim.opt.runtimepath:prepend({json.dumps(str(REPOSITORY / 'ide_clients' / 'neovim'))})\n"
        f'require("draftline").setup({{ cmd = {{ {WORDS} }} }})\n'
    )
    shown = "#vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('draftline.ghost'), 0, -1, {}) > 0"


class BuiltIn(_Neovim):
    """Neovim's own inline completion, as docs/editors.md sets it up."""

    name = "Neovim, built in"
    shows = "ghost text, complete"
    init = set_up("Neovim", "lua", BUILT_IN)
    shown = (
        "#vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('nvim.lsp.inline_completion'), 0, -1, {}) > 0"
    )
