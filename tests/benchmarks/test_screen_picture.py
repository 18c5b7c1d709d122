"""The recorded screen as an animated SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from benchmarks.editor_latency.neovim_driver import Screen
from benchmarks.editor_latency.screen_picture import Frame, draw_animation, draw_rows

SVG = "{http://www.w3.org/2000/svg}"


def screen_with(*rows: str) -> Screen:
    screen = Screen(12, len(rows), colours={"foreground": 0xE0E2EA, "background": 0x14161B})
    screen.grid_clear(1)
    for number, row in enumerate(rows):
        screen.grid_line(1, number, 0, [[character, 0] for character in row])
    return screen


def picture_of(*moments: tuple[float, str]) -> str:
    frames = [Frame(at_s, draw_rows(screen_with("x = <", row), 2), (1, len(row))) for at_s, row in moments]
    return draw_animation(frames, columns=12, background="#14161b", hold_s=2.0)


def test_each_frame_shows_from_its_recorded_time_on_and_the_last_one_for_its_hold():
    stops = re.findall(
        r"([\d.]+)%\{transform:translateX\((-?[\d.]+)px\)\}", picture_of((5.0, "a"), (6.0, "b"), (8.0, "c"))
    )
    assert [float(share) for share, _ in stops] == [0.0, 20.0, 60.0]
    assert len({left for _, left in stops}) == 3


def test_a_viewer_without_animation_shows_the_last_frame():
    svg = picture_of((0.0, "a"), (1.0, "b"))
    last = re.findall(r"translateX\((-?[\d.]+)px\)", svg)[-1]
    film = ET.fromstring(svg).find(f".//{SVG}g[@id='film']")
    assert film is not None
    assert film.get("transform") == f"translate({last})"
    assert "prefers-reduced-motion" in svg


def test_rows_that_stay_are_drawn_once_and_text_is_escaped():
    rows = ET.fromstring(picture_of((0.0, "a"), (1.0, "b"))).findall(f"{SVG}defs/{SVG}g")
    assert ["".join(row.itertext()) for row in rows] == ["x = <", "a", "b"]
