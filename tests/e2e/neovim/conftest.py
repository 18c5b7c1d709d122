"""A real Neovim for each test, with this repository's plugin, server and model and no other configuration."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.editor_latency.neovim_driver import Neovim
from tests.narrowing_cases import closers_sent

REPOSITORY = Path(__file__).resolve().parents[3]
PLUGIN = REPOSITORY / "ide_clients" / "neovim"
MODEL_READY_S = 300.0  # on a new machine the model is converted and packed first

INIT = f"""
vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})
vim.o.swapfile = false
vim.api.nvim_set_hl(0, "ComplHint", {{ fg = "#7a8090", italic = true }})
sent = {{}}
vim.api.nvim_create_autocmd({{ "LspRequest", "LspNotify" }}, {{
  callback = function(event)
    local method = event.data.method or event.data.request.method
    local is_new = not event.data.request or event.data.request.type == "pending"
    if is_new then table.insert(sent, method) end
  end,
}})
"""

# A language server in Lua. `answers[text before the cursor]` has the items for an automatic request, `more[...]` those
# for a manual request: a `text`, the characters that it `replaced`, and its `closers`. `tell` sends a notification,
# `crash` ends the server. A request with its text in `held` waits until `waiting[text]` runs. `started` has the
# parameters of each start. `edits` are the next edits.
SERVER = """
answers, more, held, accepted, waiting, started, edits = ANSWERS, MORE, HELD, {}, {}, {}, {}
version, versions = 0, {} -- of the document: the current one, and that of the last request at each column
function items_at(list, position)
  return vim.iter(ipairs(list or {})):map(function(index, one)
    local to = { line = position.line, character = position.character + #(one.replaced or "") }
    return {
      insertText = one.text,
      closers = one.closers,
      range = { start = position, ["end"] = to },
      command = { title = "", command = "draftline.accepted", arguments = { "offer", index - 1 } },
    }
  end):totable()
end
local function server(dispatchers)
  crash = function() dispatchers.on_exit(0, 0) end
  tell = function(method, params)
    params.version = params.version or versions[params.position.character]
    dispatchers.notification(method, params)
  end
  local function answer(params, callback)
    versions[params.position.character] = version
    local head = vim.api.nvim_get_current_line():sub(1, params.position.character)
    local list = params.context.triggerKind == 1 and more[head] or answers[head]
    local reply = function() callback(nil, { items = items_at(list, params.position) }) end
    if held[head] then waiting[head] = reply else reply() end
  end
  return {
    request = function(method, params, callback)
      if method == "initialize" then
        table.insert(started, params)
        callback(nil, { capabilities = {
          positionEncoding = "utf-8", textDocumentSync = 1, inlineCompletionProvider = vim.empty_dict(),
          executeCommandProvider = { commands = { "draftline.accepted" } },
        } })
      elseif method == "textDocument/inlineCompletion" then
        answer(params, callback)
      elseif method == "draftline/nextEdit" then
        callback(nil, { edits = edits })
      elseif method == "draftline/edit" then
        -- no reply
      elseif method == "workspace/executeCommand" then
        table.insert(accepted, params.arguments)
        callback(nil, vim.NIL)
      else
        callback(nil, vim.NIL)
      end
      return true, 1
    end,
    notify = function(method, params)
      if method == "exit" then dispatchers.on_exit(0, 0) end
      version = vim.tbl_get(params or {}, "textDocument", "version") or version
      return true
    end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
vim.lsp.config("draftline", { cmd = server })
"""


@pytest.fixture(scope="session")
def neovim_program() -> Path:
    """Unpack Neovim, unless an earlier run did, and return its path."""
    script = REPOSITORY / "scripts" / "unpack_neovim.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


@pytest.fixture
def open_neovim(neovim_program: Path, tmp_path: Path) -> Iterator[Callable[..., Neovim]]:
    """Return a function that starts Neovim with the Lua text of an init file and opens files."""
    started: list[Neovim] = []

    def open_one(lua: str = "", *files: Path, environment: dict[str, str] | None = None) -> Neovim:
        home = tmp_path / f"home-{len(started)}"
        home.mkdir()
        init = home / "init.lua"
        init.write_text(INIT + lua, encoding="utf-8")
        folders = {f"XDG_{name}_HOME": str(home) for name in ("CONFIG", "DATA", "STATE")}
        arguments = ["-u", str(init), "-i", "NONE", *map(str, files)]
        started.append(Neovim(neovim_program, arguments, {**folders, **(environment or {})}))
        return started[-1]

    yield open_one
    for neovim in started:
        neovim.close()


@pytest.fixture
def edit(open_neovim, engine_room, tmp_path: Path) -> Callable[..., Neovim]:
    """Return a function that opens a file in Neovim, waits for the engine, and puts the cursor at the end."""

    def edit_one(
        text: str, *, lua: str | None = None, name: str = "example.py", options: str = "", clock: bool = False
    ) -> Neovim:
        file = tmp_path / name
        file.write_bytes(text.encode())
        python = json.dumps(sys.executable)
        module = "tests.lsp_server.moved_clock_server" if clock else "lsp_server"
        command = f'cmd = {{ {python}, "-P", "-m", "{module}", "--stdio" }}, {options}'
        lua = lua or f'require("draftline").setup({{ {command} }})'
        environment = {**engine_room.environment, "DRAFTLINE_TEST_CLOCK": str(tmp_path / "clock")}
        neovim = open_neovim(lua.replace("COMMAND", command), file, environment=environment)
        ready = "(require('draftline.status').latest() or {}).kind == 'ready'"
        neovim.wait_for_lua(ready, "engine that is ready", MODEL_READY_S)
        neovim.type("G$")
        return neovim

    return edit_one


@pytest.fixture
def serve(open_neovim, tmp_path):
    """Return a function that opens a file in Neovim with a server that sends these replies."""
    set_up = 'require("draftline").setup({})'

    def serve_one(answers, *, more=None, held=(), text="", start=set_up, options=""):
        def lua(value):
            return f"vim.json.decode([==[{json.dumps(value)}]==])"

        for one in itertools.chain(*answers.values(), *(more or {}).values()):
            one["closers"] = closers_sent(one["text"], one.get("replaced", ""))

        file = tmp_path / "example.txt"
        file.write_text(text, encoding="utf-8")
        code = SERVER.replace("ANSWERS", lua(answers)).replace("MORE", lua(more or {}))
        code = code.replace("HELD", lua(dict.fromkeys(held, True)))
        neovim = open_neovim(f"{start}\n{code}{options}", file)
        neovim.wait_for_lua("require('draftline.server').client(0)", "a client")
        return neovim

    return serve_one
