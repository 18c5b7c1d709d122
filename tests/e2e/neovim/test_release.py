"""The Neovim plugin of dist/, which the real lazy.nvim installs from a repository, with the installed server."""

import json
import subprocess

import pytest

from benchmarks.editor_latency.neovim_driver import Neovim
from tests.e2e.neovim.plugins import git, plugin_folder
from tests.e2e.sample_documents import MULTIPLY

pytestmark = [pytest.mark.release, pytest.mark.timeout(3000)]

SPEC = """
vim.o.swapfile = false
vim.g.mapleader = " "
vim.opt.rtp:prepend(LAZY)
require("lazy").setup({
  spec = { { "draftline/draftline.nvim", url = URL, opts = { cmd = COMMAND } } },
  root = HOME .. "/plugins",
  lockfile = HOME .. "/lazy-lock.json",
  rocks = { enabled = false },
})
"""


@pytest.fixture
def repository(dist, tmp_path):
    """A git repository whose root is the plugin."""
    folder = tmp_path / "draftline.nvim"
    subprocess.run(["cp", "-r", dist / "draftline.nvim", folder], check=True)
    git("init", "--quiet", "--initial-branch=main", folder=folder)
    git("add", "--all", folder=folder)
    git("-c", "user.name=d", "-c", "user.email=d@localhost", "commit", "--quiet", "--message=release", folder=folder)
    return folder


def test_lazy_installs_the_plugin_and_it_completes_and_is_healthy(neovim_program, repository, released, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    command = [str(released.program("python")), "-P", "-m", "lsp_server", "--stdio"]
    values = {"LAZY": str(plugin_folder("lazy.nvim")), "URL": f"file://{repository}", "HOME": str(home)}
    lines = [f"local {name} = {json.dumps(value)}" for name, value in values.items()]
    lines.append(f"local COMMAND = {{ {', '.join(map(json.dumps, command))} }}")
    (home / "init.lua").write_text("\n".join(lines) + SPEC)
    file = home / "example.py"
    file.write_text(MULTIPLY)
    variables = released.variables | {f"XDG_{name}_HOME": str(home) for name in ("CONFIG", "DATA", "STATE")}
    neovim = Neovim(neovim_program, ["-u", str(home / "init.lua"), "-i", "NONE", str(file)], variables)
    try:
        ready = "(require('draftline.status').latest() or {}).kind == 'ready'"
        neovim.wait_for_lua(ready, "engine that is ready", 900)
        assert neovim.lua("return require('lazy').stats().loaded") >= 1
        assert (home / "plugins" / "draftline.nvim" / "doc" / "tags").is_file()
        neovim.type("G$are")
        assert neovim.wait_for_ghost(lambda ghost: ghost.startswith("turn a * b"), 60)
        neovim.type("<Esc>")
        neovim.command("checkhealth draftline")
        report = "\n".join(neovim.lines())
        print(f"\n{report}")
        assert "draftline: " in report
        assert "ERROR" not in report
        assert "❌" not in report
    finally:
        neovim.close()
