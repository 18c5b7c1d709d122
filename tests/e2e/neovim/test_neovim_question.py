"""The server's question in the real Neovim: no key of the user's typing answers it."""

from __future__ import annotations

import json
import sys

import pytest

from lsp_server.engine.consent import KEEP, SEND

pytestmark = pytest.mark.neovim

RECORDED = """
asked, notified = {}, {}
vim.notify = function(message) table.insert(notified, message) end
vim.ui.select = function(items, options, choose)
  local titles = vim.tbl_map(options.format_item, items)
  table.insert(asked, { mode = vim.api.nvim_get_mode().mode, prompt = options.prompt, titles = titles })
  choose(items[2])
end
"""


@pytest.fixture
def settings():
    return {"engine_url": "https://nowhere.invalid:1", "engine_kind": "draftline", "debounce_ms": 0}


def open_file(open_neovim, tmp_path, settings, setup):
    (tmp_path / "project").mkdir()
    file = tmp_path / "project" / "a.py"
    file.write_text("x = \n")
    (tmp_path / "project" / "pyproject.toml").touch()
    options = {"cmd": [sys.executable, "-P", "-m", "lsp_server", "--stdio"], "settings": settings}
    lua = RECORDED + setup.replace("OPTIONS", f"vim.json.decode({json.dumps(json.dumps(options))})")
    return open_neovim(lua, file, environment={"DRAFTLINE_STATE_DIR": str(tmp_path / "state")})


BUILT_IN = """
local config = require("draftline.config")
config.options = vim.tbl_extend("force", config.options, OPTIONS)
vim.lsp.enable("draftline")
"""


@pytest.mark.parametrize("setup", ["require('draftline').setup(OPTIONS)", BUILT_IN])
def test_the_question_waits_for_normal_mode_and_its_answer_is_remembered(open_neovim, tmp_path, settings, setup):
    neovim = open_file(open_neovim, tmp_path, settings, setup)
    neovim.type("A")
    neovim.wait_for_lua("#vim.lsp.get_clients({ name = 'draftline' }) > 0", "server")
    neovim.type("1")
    neovim.wait_for_lua("#notified > 0 or #asked > 0", "question")
    neovim.type("2")
    assert neovim.lua("return #asked") == 0 or neovim.lua("return asked[1].mode") == "n"
    neovim.type("<Esc>")
    neovim.wait_for_lua("#asked == 1", "menu")
    (asked,) = neovim.lua("return asked")
    assert asked["mode"] == "n"
    assert asked["titles"] == [SEND, KEEP]
    assert "https://nowhere.invalid:1" in asked["prompt"]
    path = tmp_path / "state" / "consent.json"
    neovim.wait_for_lua(f"vim.uv.fs_stat({json.dumps(str(path))}) ~= nil", "answer")
    assert list(json.loads(path.read_text())["answers"].values()) == [False]
