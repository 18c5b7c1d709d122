"""The server's question in the real VS Code: typing does not answer it, a click does, and it is asked once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator

from lsp_server.empty_reason import EmptyReason
from lsp_server.engine.consent import KEEP, SEND
from tests.e2e.conftest import EngineRoom
from tests.e2e.vscode.code_window import CodeServer, CodeWindow

pytestmark = pytest.mark.vscode

ADDRESS = "https://nowhere.invalid:1"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    """Return folders of the test's own, in which nobody has answered anything yet."""
    one = EngineRoom(tmp_path)
    yield one
    one.close()


@pytest.fixture
def asking_server(paths, vsix: Path, room: EngineRoom, tmp_path: Path) -> Iterator[CodeServer]:
    """Return a code-server whose user has named a model server."""
    server = CodeServer(paths, tmp_path / "code-server", room.environment)
    server.install(vsix)
    remote = {"draftline.engineUrl": ADDRESS, "draftline.engineKind": "draftline"}
    server.start({"draftline.python": sys.executable, **remote})
    yield server
    server.close()


@pytest.fixture
def open_project(asking_server, browser, tmp_path: Path) -> Iterator[Callable[[], CodeWindow]]:
    """Return a function that opens a window with a project's file."""
    opened: list[CodeWindow] = []
    file = tmp_path / "project" / "a.py"
    file.parent.mkdir()
    (file.parent / "pyproject.toml").touch()
    file.write_text("x = \n")

    def open_one() -> CodeWindow:
        opened.append(CodeWindow(browser, asking_server, file))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def question(window: CodeWindow) -> Locator:
    return window.page.locator(f".notification-toast:has-text('{ADDRESS}')")


def test_typing_does_not_answer_and_the_answer_of_a_click_is_remembered(open_project, room, tmp_path):
    window = open_project()
    window.press("Control+Home", "End")
    window.type("1")
    question(window).wait_for()
    window.type("2 + 3")
    window.press("Enter")
    window.wait_for_line("x = 12 + 3")
    answers = tmp_path / "state" / "consent.json"
    assert not answers.exists()
    question(window).get_by_role("button", name=SEND, exact=True).wait_for()
    question(window).get_by_role("button", name=KEEP, exact=True).click()
    question(window).wait_for(state="detached")
    deadline = time.monotonic() + 30
    while not answers.exists():
        assert time.monotonic() < deadline, "the answer is not remembered"
    assert list(json.loads(answers.read_text())["answers"].values()) == [False]

    window.close()
    again, unsent = open_project(), room.kept_away(EmptyReason.NOT_SENT)
    again.page.wait_for_selector("[aria-label*='draftline: ']:not([aria-label*='starting'])")
    again.press("Control+Home", "End")
    again.type("5")
    room.wait_for_kept_away(EmptyReason.NOT_SENT, unsent)
    assert question(again).count() == 0
