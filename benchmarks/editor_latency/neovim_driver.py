"""Driver of a real Neovim with an emulated screen: it starts Neovim, types, and waits for what the screen shows."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

TIMEOUT_S = 30.0
GHOST_GROUP = "ComplHint"  # the highlight group that all groups of a suggestion link to
COUNT_GROUP = "DraftlineGhostCount"  # that of the number of suggestions, unless it links to another one

# Redraw events that change the screen. Each one is a method of `Screen`.
DRAWN = frozenset({
    "grid_resize", "grid_clear", "default_colors_set", "hl_attr_define", "grid_cursor_goto", "grid_line", "grid_scroll",
})  # fmt: skip


class NeovimError(AssertionError):
    """Neovim answered with an error, or an expected event did not come in time."""


@dataclass(slots=True)
class Screen:
    """The grid that Neovim draws: a character and a highlight number for each cell."""

    width: int
    height: int
    characters: list[list[str]] = field(default_factory=list)
    highlights: list[list[int]] = field(default_factory=list)
    styles: dict[int, tuple[dict[str, Any], set[str]]] = field(default_factory=dict)
    colours: dict[str, int] = field(default_factory=dict)
    cursor: tuple[int, int] = (0, 0)

    def grid_resize(self, _grid: int, width: int, height: int) -> None:
        """Set the size of the screen and clear it."""
        self.width, self.height = width, height
        self.grid_clear(1)

    def grid_clear(self, _grid: int) -> None:
        """Clear every cell."""
        self.characters = [[" "] * self.width for _ in range(self.height)]
        self.highlights = [[0] * self.width for _ in range(self.height)]

    def default_colors_set(self, foreground: int, background: int, *_rest: int) -> None:
        """Set the colours of cells without a highlight."""
        self.colours = {"foreground": foreground, "background": background}

    def hl_attr_define(self, number: int, rgb: dict[str, Any], _cterm: dict[str, Any], info: list[Any]) -> None:
        """Define the style and the groups of a highlight number."""
        self.styles[number] = (rgb, {part.get("hi_name", "") for part in info})

    def grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        """Move the cursor."""
        self.cursor = (row, column)

    def grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_rest: object) -> None:
        """Draw cells of one row. A cell without a highlight has that of the cell before it."""
        highlight = 0
        for cell in cells:
            highlight = cell[1] if len(cell) > 1 else highlight
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self.characters[row][column] = cell[0]
                self.highlights[row][column] = highlight
                column += 1

    def grid_scroll(self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int) -> None:
        """Move a region up by `rows`, or down if `rows` is negative."""
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.characters[row][left:right] = self.characters[row + rows][left:right]
            self.highlights[row][left:right] = self.highlights[row + rows][left:right]

    def lines(self) -> list[str]:
        """Return the rows of the screen without trailing blanks."""
        return ["".join(row).rstrip() for row in self.characters]

    def cursor_line(self) -> str:
        """Return the cursor's row without the suggestion, the number of suggestions and blanks after the cursor."""
        row, column = self.cursor
        drawn = {GHOST_GROUP, COUNT_GROUP}
        cells = zip(self.characters[row], self.highlights[row], strict=True)
        shown = [character if drawn.isdisjoint(self._groups(highlight)) else "" for character, highlight in cells]
        return "".join(shown[:column]) + "".join(shown[column:]).rstrip()

    def ghost_text(self) -> str:
        """Return the suggestion on the screen, its lines joined by newlines."""
        rows: list[str] = []
        for characters, highlights in zip(self.characters, self.highlights, strict=True):
            pairs = zip(characters, highlights, strict=True)
            row = "".join(character for character, highlight in pairs if self._is_ghost(highlight))
            if row:
                rows.append(row)
        return "\n".join(rows)

    def _is_ghost(self, highlight: int) -> bool:
        return GHOST_GROUP in self._groups(highlight)

    def _groups(self, highlight: int) -> set[str]:
        return self.styles.get(highlight, ({}, set()))[1]


class Neovim:
    """One Neovim process with a user interface attached over its RPC."""

    def __init__(
        self,
        program: Path,
        arguments: list[str],
        environment: dict[str, str],
        *,
        size: tuple[int, int] = (90, 24),
        on_redraw: Callable[[Screen], None] = lambda _: None,
    ) -> None:
        self.screen = Screen(*size)
        self._on_redraw = on_redraw
        self.ghosts: list[str] = []  # suggestions on the screen, in order, each change once
        self.ghost_times: list[float] = []  # time of each change, by the monotonic clock
        self.errors: list[str] = []
        self._changed = threading.Condition()
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._next_id = 0
        self._closed = False
        self.process = subprocess.Popen(
            [program, "--embed", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.request("nvim_ui_attach", *size, {"rgb": True, "ext_linegrid": True, "ext_hlstate": True})

    # ---- requests ----

    def request(self, method: str, *arguments: object, timeout_s: float = TIMEOUT_S) -> Any:  # noqa: ANN401 - as the API
        """Call an API function and return its answer."""
        with self._changed:
            self._next_id += 1
            number = self._next_id
        self._send([0, number, method, list(arguments)])
        self._wait(lambda: number in self._answers or self._closed, f"an answer to {method}", timeout_s)
        if number not in self._answers:
            raise NeovimError(f"Neovim ended before it answered {method}.")
        error, result = self._answers.pop(number)
        if error:
            raise NeovimError(f"{method}: {error}")
        return result

    def lua(self, code: str, *arguments: object) -> Any:  # noqa: ANN401 - as the code
        """Run Lua code and return its result."""
        return self.request("nvim_exec_lua", code, list(arguments))

    def command(self, command: str) -> None:
        """Run an Ex command."""
        self.request("nvim_command", command)

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation (`<Tab>`, `<Esc>`)."""
        self.request("nvim_input", keys)

    def lines(self) -> list[str]:
        """Return the buffer's lines."""
        return list(self.request("nvim_buf_get_lines", 0, 0, -1, True))

    # ---- waiting ----

    def wait_for(self, condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until a condition on the screen holds. It is checked after each redraw."""
        try:
            self._wait(lambda: condition() or self._closed, what, timeout_s)
        except NeovimError as error:
            shown = "\n".join(self.screen.lines())
            raise NeovimError(f"{error}; the screen shows:\n{shown}\nghosts so far: {self.ghosts[-5:]}") from None
        if self._closed:
            raise NeovimError(f"Neovim ended while this process waited for {what}.")

    def wait_for_lua(self, expression: str, what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait in the event loop of Neovim until a Lua expression is true."""
        code = f"return vim.wait({int(timeout_s * 1000)}, function() return {expression} end, 5)"
        if not self.request("nvim_exec_lua", code, [], timeout_s=timeout_s + 5):
            messages = self.request("nvim_exec2", "messages", {"output": True})["output"]
            raise NeovimError(f"no {what} within {timeout_s} s\n{messages}")

    def wait_for_ghost(self, condition: Callable[[str], object] = bool, timeout_s: float = TIMEOUT_S) -> str:
        """Wait for a suggestion on the screen and return it."""
        self.wait_for(lambda: condition(self.screen.ghost_text()), "ghost text", timeout_s)
        return self.screen.ghost_text()

    def wait_for_no_ghost(self) -> None:
        """Wait until the screen shows no suggestion."""
        self.wait_for(lambda: not self.screen.ghost_text(), "no ghost text")

    def close(self) -> None:
        """End the process and wait for it."""
        if self.process.poll() is None:
            self._send([2, "nvim_command", ["qall!"]])
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)

    # ---- the wire ----

    def _send(self, message: list[Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(msgpack.packb(message))
        self.process.stdin.flush()

    def _wait(self, condition: Callable[[], object], what: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NeovimError(f"no {what} within {timeout_s} s")
                self._changed.wait(left)

    def _read(self) -> None:
        assert self.process.stdout is not None
        unpacker = msgpack.Unpacker(raw=False, unicode_errors="surrogateescape", strict_map_key=False)
        while data := os.read(self.process.stdout.fileno(), 65536):
            unpacker.feed(data)
            for message in unpacker:
                with self._changed:
                    self._receive(message)
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _receive(self, message: list[Any]) -> None:
        if message[0] == 1:
            self._answers[message[1]] = (message[2], message[3])
        elif message[0] == 2 and message[1] == "redraw":
            for name, *calls in message[2]:
                for call in calls if name in DRAWN else ():
                    getattr(self.screen, name)(*call)
                if name == "flush":
                    self._remember_ghost()
                    self._on_redraw(self.screen)
        elif message[0] == 2 and message[1] == "nvim_error_event":
            self.errors.append(message[2][1])

    def _remember_ghost(self) -> None:
        ghost = self.screen.ghost_text()
        if not self.ghosts or self.ghosts[-1] != ghost:
            self.ghosts.append(ghost)
            self.ghost_times.append(time.monotonic())
