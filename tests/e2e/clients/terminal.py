"""Programs of the terminal: Neovim's emulator shows them, tests press keys and wait for what the screen has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.editor_latency.neovim_driver import Neovim, NeovimError
from tests.e2e.clients.programs import neovim


class Terminal:
    """One program on an emulated screen."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        quiet = ["-u", "NONE", "-i", "NONE"]
        self._neovim = Neovim(neovim(), [*quiet, "--cmd", "set laststatus=0 noswapfile"], dict(environment))
        own = {"VIM": "", "VIMRUNTIME": "", "NVIM": "", "TERM": "xterm-256color", **environment}
        start = "local command, env = ...; return vim.fn.jobstart(command, { term = true, env = env })"
        self._job = self._neovim.lua(start, list(command), own)

    def press(self, keys: str) -> None:
        """Send keys as their bytes."""
        self._neovim.request("nvim_chan_send", self._job, keys)

    def wait_for(self, condition: Callable[[str], object], timeout_s: float = 5) -> bool:
        """Wait until the text on the screen has what a condition wants; return whether it came."""
        try:
            self._neovim.wait_for(lambda: condition(self.text()), "text on the screen", timeout_s)
        except NeovimError:
            return False
        return True

    def text(self) -> str:
        """Return the text on the screen."""
        return "\n".join(self._neovim.screen.lines())

    def close(self) -> None:
        """End the program."""
        self._neovim.close()
