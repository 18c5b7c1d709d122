"""Record a real Neovim that completes code with the default model, as an animated SVG.

`python scripts/record_neovim.py` writes docs/images/neovim.svg. It needs the extras "default-model" and "dev", and the
Neovim that scripts/unpack_neovim.py unpacks. Frames have the times at which Neovim drew them; nothing is sped up.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))  # a checkout needs no installation

from benchmarks.editor_latency.neovim_driver import Neovim, NeovimError, Screen  # noqa: E402
from benchmarks.editor_latency.screen_picture import Frame, colour, draw_animation, draw_rows  # noqa: E402
from lsp_server.cli.demo import examples  # noqa: E402

NEOVIM = REPOSITORY / ".cache" / "neovim" / "root" / "usr" / "bin" / "nvim"
PICTURE = REPOSITORY / "docs" / "images" / "neovim.svg"
COLUMNS, ROWS = 80, 24
MODEL_READY_S = 600.0  # on a new machine the model is converted and packed first
KEY_S = 0.1
READ_S = 1.2
HOLD_S = 4.0

INIT = """
vim.opt.runtimepath:prepend(PLUGIN)
vim.o.swapfile, vim.o.laststatus, vim.o.ruler, vim.o.showmode, vim.o.hlsearch = false, 0, false, false, false
vim.api.nvim_set_hl(0, "ComplHint", { fg = "#8a90a0", italic = true })
require("draftline").setup({ cmd = { PYTHON, "-P", "-m", "lsp_server", "--stdio" } })
"""


class Recorder:
    """Keeps a frame for every change of Neovim's screen."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.label = ""
        self._is_on = False
        self._lock = threading.Lock()  # Neovim's redraws arrive on a thread of their own

    def start(self, screen: Screen) -> None:
        """Start with the current screen."""
        self._is_on = True
        self.record(screen)

    def record(self, screen: Screen) -> None:
        """Keep the screen if it differs from the last frame."""
        if not self._is_on:
            return
        with self._lock:
            frame = Frame(time.monotonic(), draw_rows(screen, ROWS), screen.cursor, self.label)
            if not self.frames or not frame.looks_like(self.frames[-1]):
                self.frames.append(frame)


class Typist:
    """A person at the keyboard of a recorded Neovim."""

    def __init__(self, neovim: Neovim, recorder: Recorder) -> None:
        self._neovim, self._recorder = neovim, recorder

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation, at an even pace."""
        for key in re.findall(r"<[A-Z][^>]*>|.", keys):
            self._neovim.type(key)
            time.sleep(KEY_S)

    def read(self, expected: str) -> None:
        """Wait for a suggestion with this text, then read it."""
        self._neovim.wait_for_ghost(lambda ghost: expected in ghost)
        time.sleep(READ_S)

    def press(self, key: str, label: str, until: Callable[[str, str], bool]) -> None:
        """Press a key that types no text and read what follows.

        Args:
            key: The key in Neovim's notation.
            label: The key's name in the picture.
            until: Given the suggestion before and now, returns whether the key has had its effect.
        """
        before = self._neovim.screen.ghost_text()
        self._recorder.label = label
        self._neovim.type(key)
        self._neovim.wait_for(lambda: until(before, self._neovim.screen.ghost_text()), f"effect of {label}")
        time.sleep(READ_S)
        self._recorder.label = ""
        self._recorder.record(self._neovim.screen)

    def accept(self) -> None:
        """Accept the suggestion."""
        self.press("<Tab>", "Tab", lambda before, now: now != before)

    def cycle(self, key: str, label: str) -> None:
        """Wait for alternatives, then show another suggestion."""
        count = re.compile(r" \d/\d$")
        self._neovim.wait_for(lambda: any(map(count.search, self._neovim.screen.lines())), "alternatives")
        self.press(key, label, lambda before, now: now not in ("", before))


def perform(typist: Typist) -> None:
    """Write two methods: accept the body of the first, look at an alternative for that of the second."""
    typist.type("def remove(self, name: str) -> None:<CR>")
    typist.read("del self.items[name]")
    typist.accept()
    typist.type("<CR><CR><C-d><C-d>def out_of_stock(self) -> list[Item]:<CR>")
    typist.read("key=lambda")
    typist.cycle("<M-]>", "Alt+]")
    typist.cycle("<M-[>", "Alt+[")
    typist.accept()


def start_neovim(program: Path, folder: Path, recorder: Recorder) -> Neovim:
    """Open the demo's file in a Neovim with an engine of its own, and wait until the model is loaded."""
    example = next(one for one in examples() if one.name == "inventory.py")
    before, _, _ = example.prefix.partition("def total_cents")
    file, init = folder / example.name, folder / "init.lua"
    file.write_text(before + example.suffix, encoding="utf-8")
    plugin = json.dumps(str(REPOSITORY / "ide_clients" / "neovim"))
    init.write_text(INIT.replace("PLUGIN", plugin).replace("PYTHON", json.dumps(sys.executable)), encoding="utf-8")
    environment = {f"XDG_{name}_HOME": str(folder) for name in ("CONFIG", "DATA", "STATE")}
    environment |= {f"DRAFTLINE_{name}_DIR": str(folder / name.lower()) for name in ("RUNTIME", "STATE")}
    environment["PYTHONPATH"] = str(REPOSITORY)
    arguments = ["-u", str(init), "-i", "NONE", str(file)]
    neovim = Neovim(program, arguments, environment, size=(COLUMNS, ROWS + 1), on_redraw=recorder.record)
    ready = "(require('draftline.status').latest() or {}).kind == 'ready'"
    neovim.wait_for_lua(ready, "engine that is ready", MODEL_READY_S)
    return neovim


def record(program: Path, folder: Path) -> str:
    """Return the picture of one performance; its files and its engine's lie in `folder`."""
    recorder = Recorder()
    neovim = start_neovim(program, folder, recorder)
    try:
        neovim.type(r"gg/^@dataclass<CR>zt/^    $<CR>A")
        neovim.wait_for_lua("vim.fn.mode() == 'i'", "insert mode")
        time.sleep(READ_S)  # the engine reads the file meanwhile
        recorder.start(neovim.screen)
        time.sleep(READ_S)
        perform(Typist(neovim, recorder))
        print("\n".join(neovim.lines()))
        return draw_animation(
            recorder.frames, columns=COLUMNS, background=colour(neovim.screen, "background", {}), hold_s=HOLD_S
        )
    finally:
        neovim.close()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Record Neovim completing code, as an animated SVG.")
    parser.add_argument("--neovim", type=Path, default=NEOVIM, help="the program (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the picture (default: %(default)s)")
    chosen = parser.parse_args()
    if not chosen.neovim.exists():
        print(f"{chosen.neovim} is missing; run: python scripts/unpack_neovim.py", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="draftline-record-") as folder:
        try:
            picture = record(chosen.neovim, Path(folder))
        except NeovimError as error:
            print(f"record_neovim: {error}", file=sys.stderr)
            return 1
    chosen.output.write_text(picture, encoding="utf-8")
    print(f"wrote {chosen.output}, {len(picture) // 1000} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
