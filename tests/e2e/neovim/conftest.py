"""A real Neovim for each test, with this repository's plugin and nothing of the person who runs the tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from neovim_driver import Neovim

REPOSITORY = Path(__file__).resolve().parents[3]
PLUGIN = REPOSITORY / "ide_clients" / "neovim"


@pytest.fixture(scope="session")
def neovim_program() -> Path:
    """Unpack Neovim once; later runs find it."""
    script = REPOSITORY / "scripts" / "unpack_neovim.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


@pytest.fixture
def open_neovim(neovim_program: Path, tmp_path: Path) -> Iterator[Callable[..., Neovim]]:
    """Return a function that starts Neovim with an init file's Lua text and the files to open."""
    started: list[Neovim] = []

    def open_one(lua: str = "", *files: Path, environment: dict[str, str] | None = None) -> Neovim:
        home = tmp_path / f"home-{len(started)}"
        home.mkdir()
        init = home / "init.lua"
        init.write_text(
            f"vim.opt.runtimepath:prepend({str(PLUGIN)!r})\n"
            "vim.o.swapfile = false\n"
            'vim.api.nvim_set_hl(0, "ComplHint", { fg = "#7a8090", italic = true })\n' + lua,
            encoding="utf-8",
        )
        folders = {f"XDG_{name}_HOME": str(home) for name in ("CONFIG", "DATA", "STATE")}
        arguments = ["-u", str(init), "-i", "NONE", *map(str, files)]
        started.append(Neovim(neovim_program, arguments, {**folders, **(environment or {})}))
        return started[-1]

    yield open_one
    for neovim in started:
        neovim.close()
