"""Draws a screen of Neovim as an SVG picture, cell by cell."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import Any

from benchmarks.editor_latency.neovim_driver import Screen

CELL_WIDTH, CELL_HEIGHT, MARGIN = 9.0, 20.0, 14.0
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def draw_svg(screen: Screen, *, rows: int) -> str:
    """Return the first rows of a screen as an SVG document."""
    width = screen.width * CELL_WIDTH + 2 * MARGIN
    height = rows * CELL_HEIGHT + 2 * MARGIN
    size = f'width="{width:g}" height="{height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="15" font-family="{FONT}">',
        f'<rect width="100%" height="100%" rx="8" fill="{_colour(screen, "background", {})}"/>',
    ]
    for row in range(rows):
        parts += _draw_row(screen, row)
    row, column = screen.cursor
    x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
    parts.append(f'<rect x="{x:g}" y="{y:g}" width="2" height="{CELL_HEIGHT:g}" fill="#e0e2ea"/>')
    return "\n".join([*parts, "</svg>\n"])


def _draw_row(screen: Screen, row: int) -> list[str]:
    parts: list[str] = []
    column = 0
    for highlight, cells in groupby(
        zip(screen.highlights[row], screen.characters[row], strict=True), lambda cell: cell[0]
    ):
        text = "".join(character for _, character in cells)
        style = screen.styles.get(highlight, ({}, set()))[0]
        x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
        if "background" in style or style.get("reverse"):
            fill = _colour(screen, "background", style)
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="{len(text) * CELL_WIDTH:g}" height="{CELL_HEIGHT:g}" fill="{fill}"/>'
            )
        if text.strip():
            parts.append(_draw_text(screen, text, style, x, y))
        column += len(text)
    return parts


def _draw_text(screen: Screen, text: str, style: dict[str, Any], x: float, y: float) -> str:
    weight = ' font-weight="bold"' if style.get("bold") else ""
    slant = ' font-style="italic"' if style.get("italic") else ""
    return (
        f'<text x="{x:g}" y="{y + 0.75 * CELL_HEIGHT:g}" fill="{_colour(screen, "foreground", style)}"{weight}{slant} '
        f'xml:space="preserve" textLength="{len(text) * CELL_WIDTH:g}">{escape(text)}</text>'
    )


def _colour(screen: Screen, name: str, style: dict[str, Any]) -> str:
    other = {"foreground": "background", "background": "foreground"}[name]
    name = other if style.get("reverse") else name
    return f"#{style.get(name, screen.colours[name]):06x}"
