"""Draws what Neovim's screen showed over a time as an animated SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from benchmarks.editor_latency.neovim_driver import Screen

CELL_WIDTH, CELL_HEIGHT, MARGIN = 9.0, 20.0, 14.0
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
LABEL = "#f4b860"
STILL = "@media(prefers-reduced-motion:reduce){#film{animation:none}}"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the screen shows from a moment on."""

    at_s: float
    """When, by any clock."""
    rows: tuple[str, ...]
    """SVG elements of each row."""
    cursor: tuple[int, int]
    """Row and column."""
    label: str = ""
    """The key that was just pressed, if it types no character."""

    def looks_like(self, other: Frame) -> bool:
        """Return whether both frames show the same picture."""
        return (self.rows, self.cursor, self.label) == (other.rows, other.cursor, other.label)


def draw_rows(screen: Screen, count: int) -> tuple[str, ...]:
    """Return the SVG elements of the first rows of a screen, each drawn at the top of the picture."""
    return tuple("".join(_draw_runs(screen, row)) for row in range(count))


def draw_animation(frames: list[Frame], *, columns: int, background: str, hold_s: float) -> str:
    """Return an SVG document that shows the frames in turn, without end.

    The frames lie side by side on a strip, which jumps from one to the next. A viewer without animation shows the last.

    Args:
        frames: What was shown, in order of time.
        columns: Width of the screen in cells.
        background: Colour of a cell without highlight, as `#rrggbb`.
        hold_s: Seconds for which the last frame stays.
    """
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = (len(frames[0].rows) + 1) * CELL_HEIGHT + 2 * MARGIN
    step = width + 100  # a gap, so that no neighbour shows at the edge
    names = {row: f"r{number}" for number, row in enumerate(dict.fromkeys(row for one in frames for row in one.rows))}
    start_s = frames[0].at_s
    duration_s = frames[-1].at_s - start_s + hold_s
    stops = "".join(
        f"{100 * (one.at_s - start_s) / duration_s:.3f}%{{transform:translateX({-step * number:g}px)}}"
        for number, one in enumerate(frames)
    )
    film = f"#film{{animation:film {duration_s:.2f}s step-end infinite}}"
    last_left = -step * (len(frames) - 1)
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="15" font-family="{FONT}">',
        f"<style>@keyframes film{{{stops}}}{film}{STILL}</style>",
        "<defs>",
        *(f'<g id="{name}">{row}</g>' for row, name in names.items() if row),
        f'</defs><rect width="100%" height="100%" rx="8" fill="{background}"/>',
        f'<g id="film" transform="translate({last_left:g})">',
    ]
    for number, frame in enumerate(frames):
        parts += _draw_frame(frame, names, number * step)
    return "\n".join([*parts, "</g></svg>\n"])


def _draw_frame(frame: Frame, names: dict[str, str], left: float) -> Iterator[str]:
    for number, row in enumerate(frame.rows):
        if row:
            yield f'<use href="#{names[row]}" x="{left:g}" y="{number * CELL_HEIGHT:g}"/>'
    row_number, column = frame.cursor
    x, y = left + MARGIN + column * CELL_WIDTH, MARGIN + row_number * CELL_HEIGHT
    yield f'<rect x="{x:g}" y="{y:g}" width="2" height="{CELL_HEIGHT:g}" fill="#e0e2ea"/>'
    if frame.label:
        x, y = left + MARGIN, MARGIN + (len(frame.rows) + 0.75) * CELL_HEIGHT
        yield f'<text x="{x:g}" y="{y:g}" fill="{LABEL}" font-weight="bold">{escape(frame.label)}</text>'


def _draw_runs(screen: Screen, row: int) -> Iterator[str]:
    column = 0
    cells = zip(screen.highlights[row], screen.characters[row], strict=True)
    for highlight, run in groupby(cells, lambda cell: cell[0]):
        text = "".join(character for _, character in run)
        style = screen.styles.get(highlight, ({}, set()))[0]
        x = MARGIN + column * CELL_WIDTH
        if "background" in style or style.get("reverse"):
            fill, width = colour(screen, "background", style), len(text) * CELL_WIDTH
            yield f'<rect x="{x:g}" y="{MARGIN:g}" width="{width:g}" height="{CELL_HEIGHT:g}" fill="{fill}"/>'
        if text.strip():
            yield _draw_text(screen, text, style, x)
        column += len(text)


def _draw_text(screen: Screen, text: str, style: dict[str, Any], x: float) -> str:
    text = text.rstrip()
    blanks = len(text) - len(text.lstrip())
    weight = ' font-weight="bold"' if style.get("bold") else ""
    slant = ' font-style="italic"' if style.get("italic") else ""
    return (
        f'<text x="{x + blanks * CELL_WIDTH:g}" y="{MARGIN + 0.75 * CELL_HEIGHT:g}" '
        f'fill="{colour(screen, "foreground", style)}"{weight}{slant} xml:space="preserve" '
        f'textLength="{(len(text) - blanks) * CELL_WIDTH:g}">{escape(text.lstrip())}</text>'
    )


def colour(screen: Screen, name: str, style: dict[str, Any]) -> str:
    """Return a style's `foreground` or `background` as `#rrggbb`."""
    other = {"foreground": "background", "background": "foreground"}[name]
    name = other if style.get("reverse") else name
    return f"#{style.get(name, screen.colours[name]):06x}"
