"""Types into a real Neovim, and reads the screen that it draws.

Mappings close brackets and quotes as plugins do, by the rules of VS Code. The editor does not indent.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.editor_latency.neovim_driver import Neovim, Screen
from benchmarks.engine_processes import private_folders
from benchmarks.screen.seen import State
from benchmarks.screen.typist import LAST_S, place_of, timed_keys
from benchmarks.typing.scripts import Script

REPOSITORY = Path(__file__).resolve().parents[2]
_SIZE = (200, 50)  # columns and rows of the screen
_READY_S = 300.0  # on a new machine the model is converted and packed first

_INIT = """
vim.opt.runtimepath:prepend(PLUGIN)
vim.o.swapfile, vim.o.wrap, vim.o.autoindent, vim.o.shortmess = false, false, false, "IF"
vim.o.ruler, vim.o.showcmd, vim.o.showmode = false, false, false -- which draw on the last row
vim.cmd("filetype plugin indent off | syntax off")
vim.api.nvim_set_hl(0, "ComplHint", { fg = "#7a8090" })
vim.api.nvim_set_hl(0, "DraftlineGhostCount", { fg = "#7a8090" })
require("draftline").setup({ cmd = COMMAND })

-- Closes what is opened before a blank or a closer, and types over closers.
for opener, closer in pairs({ ["("] = ")", ["["] = "]", ["{"] = "}", ['"'] = '"', ["'"] = "'" }) do
  local function around()
    local line, column = vim.api.nvim_get_current_line(), vim.fn.col(".")
    return line:sub(column - 1, column - 1), line:sub(column, column)
  end
  local function close()
    local _, after = around()
    return after == closer and "<C-g>U<Right>" or closer
  end
  local function open()
    local before, after = around()
    if opener == closer and (after == closer or before:match("[%w_]") or before == opener) then return close() end
    return after:match("^[^%s%)%]}]") and opener or opener .. closer .. "<C-g>U<Left>"
  end
  vim.keymap.set("i", opener, open, { expr = true })
  if opener ~= closer then vim.keymap.set("i", closer, close, { expr = true }) end
end
"""


def type_all(scripts: Sequence[Script], seed: int) -> Iterator[tuple[Script, list[State]]]:
    """Yield each session with what the screen showed, each in an editor of its own at one engine."""
    unpack = [sys.executable, str(REPOSITORY / "scripts" / "unpack_neovim.py")]
    program = subprocess.run(unpack, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    with private_folders() as folders, tempfile.TemporaryDirectory(prefix="dl-") as name:
        home = Path(name)
        homes = {f"XDG_{kind}_HOME": str(home) for kind in ("CONFIG", "DATA", "STATE")}
        command = ", ".join(json.dumps(word) for word in (sys.executable, "-P", "-m", "lsp_server", "--stdio"))
        plugin = json.dumps(str(REPOSITORY / "ide_clients" / "neovim"))
        init = home / "init.lua"
        init.write_text(_INIT.replace("PLUGIN", plugin).replace("COMMAND", f"{{ {command} }}"), encoding="utf-8")
        environment = {**folders, **homes, "PYTHONPATH": str(REPOSITORY)}
        for script in scripts:
            file = home / Path(script.path).name
            file.write_text(script.text, encoding="utf-8")
            states = States()
            arguments = ["-u", str(init), "-i", "NONE", str(file)]
            editor = Neovim(Path(program), arguments, environment, size=_SIZE, on_redraw=states.note)
            with closing(editor):
                yield script, _type(editor, states, script, seed)


class States(list[State]):
    """Each state of the cursor's line and of the suggestion."""

    def note(self, screen: Screen) -> None:
        """Add the screen's state if it is new."""
        line, text = screen.cursor_line(), screen.ghost_text()
        if not self or (self[-1].line, self[-1].text) != (line, text):
            self.append(State(1e3 * time.monotonic(), line, text))


def _type(editor: Neovim, states: States, script: Script, seed: int) -> list[State]:
    editor.wait_for_lua("(require('draftline.status').latest() or {}).kind == 'ready'", "ready engine", _READY_S)
    line, column = place_of(script)
    column = len(script.text.split("\n")[line][:column].encode())  # in bytes
    editor.command("startinsert")
    editor.wait_for_lua("vim.api.nvim_get_mode().mode == 'i'", "insert mode")
    editor.lua("vim.api.nvim_win_set_cursor(0, { ... })", line + 1, column)
    editor.command("redraw")
    states.clear()
    for pause_s, key in timed_keys(script, seed):
        time.sleep(pause_s)
        editor.type(key.replace("<", "<lt>").replace("\n", "<CR>").replace("\t", "<C-v><Tab>"))  # Tab alone accepts
    time.sleep(LAST_S)
    return [*states]
