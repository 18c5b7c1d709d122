"""Quiet controls in the real VS Code with the real server and model: what keeps suggestions away, and until when."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.sample_documents import ADD, MULTIPLY
from tests.e2e.vscode.code_window import STATUS_ITEM, CodeServer, CodeWindow

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]

QUIET = {
    "draftline.serverCommand": [sys.executable, "-P", "-m", "tests.lsp_server.moved_clock_server", "--stdio"],
    "draftline.inComments": False,
    "draftline.inStrings": False,
}


@pytest.fixture(scope="module")
def clock(tmp_path_factory) -> Path:
    """Return the file with the seconds by which the servers' clock is ahead."""
    return tmp_path_factory.mktemp("clock") / "ahead"


@pytest.fixture(scope="module")
def quiet_server(paths, vsix: Path, engine_room, clock, tmp_path_factory) -> Iterator[CodeServer]:
    """Return a code-server without suggestions in comments and strings, whose language servers have a moved clock."""
    environment = {**engine_room.environment, "PATH": os.environ["PATH"], "DRAFTLINE_TEST_CLOCK": str(clock)}
    server = CodeServer(paths, tmp_path_factory.mktemp("code-server"), environment)
    server.install(vsix)
    server.start(QUIET)
    yield server
    server.close()


@pytest.fixture
def edit(quiet_server, browser, tmp_path) -> Iterator[Callable[[], CodeWindow]]:
    """Return a function that opens a window with a new extension host and a function to complete."""
    opened: list[CodeWindow] = []

    def edit_one(text: str = MULTIPLY) -> CodeWindow:
        file = tmp_path / "example.py"
        file.write_text(text)
        opened.append(CodeWindow(browser, quiet_server, file))
        opened[-1].wait_for_ready()
        opened[-1].press("Control+End")
        opened[-1].ghosts_seen()
        return opened[-1]

    yield edit_one
    for one in opened:
        one.close()


def wait_for_status(window: CodeWindow, part: str) -> None:
    window.page.wait_for_selector(f'{STATUS_ITEM}[aria-label*="{part}"]')


def run(window: CodeWindow, title: str, choice: str = "") -> None:
    """Run a command of the palette, and choose from the list that it shows."""
    window.command(f"draftline: {title}")
    if choice:
        window.page.wait_for_selector(f".quick-input-list .monaco-list-row:has-text('{choice}')")
        window.page.keyboard.type(choice)
        window.page.wait_for_selector(f".quick-input-list .monaco-list-row.focused:has-text('{choice}')")
        window.press("Enter")
    window.page.wait_for_selector(".quick-input-widget", state="hidden")
    window.page.click(".part.editor .view-lines")
    window.press("Control+End")


def test_manual_mode_sends_no_request_in_200_typed_keys_and_the_key_for_a_request_still_works(edit, engine_room):
    window = edit()
    run(window, "Switch Between Automatic and Manual")
    wait_for_status(window, "on request only")
    before, refused = engine_room.completions(), engine_room.kept_away("manual")
    typed = ("total = first + second - third; " * 7)[:198] + "re"
    window.type(typed)
    window.wait_for(f"linesShown().some((line) => line.endsWith({typed[-40:]!r}))", "200 typed keys")
    engine_room.wait_for_kept_away("manual", refused)
    assert engine_room.completions() == before
    assert not any(window.ghosts_seen())
    window.press("Enter")
    window.type("re")
    window.press("Alt+\\")
    window.wait_for_ghost("t.+")
    run(window, "Switch Between Automatic and Manual")
    window.page.wait_for_selector(f'{STATUS_ITEM}:not([aria-label*="on request only"])')
    window.press("Enter")
    window.type("re")
    window.wait_for_ghost("t.+")


@pytest.mark.parametrize(("typed", "reason"), [("# Multiply two num", "in_comment"), ("name = 'the prod", "in_string")])
def test_a_comment_and_a_string_get_suggestions_only_on_request(edit, engine_room, typed, reason):
    window = edit(ADD)
    refused = engine_room.kept_away(reason)
    window.type(typed)
    engine_room.wait_for_kept_away(reason, refused)
    assert not any(window.ghosts_seen())
    window.press("Alt+\\")
    window.wait_for_ghost(".+")


def test_the_snooze_ends_by_itself(edit, engine_room, clock):
    window = edit()
    run(window, "Snooze…", "5 minutes")
    wait_for_status(window, "snoozed until")
    refused = engine_room.kept_away("snoozed")
    window.type("re")
    engine_room.wait_for_kept_away("snoozed", refused)
    assert not any(window.ghosts_seen())
    clock.write_text("301")
    window.type("t")
    window.wait_for_ghost(r"urn a \* b")
    window.page.wait_for_selector(f'{STATUS_ITEM}:not([aria-label*="snoozed"])')


def test_a_language_that_is_switched_off_stays_off_after_a_restart_of_the_editor(edit, quiet_server, engine_room):
    first = edit()
    run(first, "Switch On or Off for This Language")
    wait_for_status(first, "off for this language")
    first.close()
    quiet_server.close()
    quiet_server.start(QUIET)
    window = edit()
    refused = engine_room.kept_away("language_off")
    window.type("re")
    engine_room.wait_for_kept_away("language_off", refused)
    wait_for_status(window, "off for this language")
    assert not any(window.ghosts_seen())
    run(window, "Switch On or Off for This Language")
    window.page.wait_for_selector(f'{STATUS_ITEM}:not([aria-label*="off for this language"])')
    window.type("t")
    window.wait_for_ghost(r"urn a \* b")


def test_switching_on_changes_the_value_of_the_workspace_that_counts(edit, tmp_path):
    window = edit()
    settings = tmp_path / ".vscode" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"draftline.enabled": false}')
    wait_for_status(window, "draftline: off")
    run(window, "Switch On or Off")
    wait_for_status(window, "draftline: ready")
    assert json.loads(settings.read_text()) == {"draftline.enabled": True}
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")


def test_a_setting_that_is_removed_no_longer_counts(edit, tmp_path):
    settings = tmp_path / ".vscode" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"draftline.trigger": "manual"}')
    window = edit()
    wait_for_status(window, "on request only")
    settings.write_text("{}")
    window.page.wait_for_selector(f'{STATUS_ITEM}:not([aria-label*="on request only"])')
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")


def test_the_status_is_about_the_editor_in_front_before_any_key(quiet_server, browser, tmp_path):
    settings, notes = tmp_path / ".vscode" / "settings.json", tmp_path / "notes.md"
    settings.parent.mkdir()
    settings.write_text('{"draftline.languagesOff": ["markdown"]}')
    notes.write_text("# Notes\n")
    (tmp_path / "example.py").write_text(MULTIPLY)
    window = CodeWindow(browser, quiet_server, notes)
    try:
        wait_for_status(window, "off for this language")
        window.show(tmp_path / "example.py")
        window.page.wait_for_selector(f'{STATUS_ITEM}:not([aria-label*="off for this language"])')
    finally:
        window.close()


def test_the_command_for_a_larger_model_says_when_none_is_offered(edit):
    window = edit()
    run(window, "Download the Offered Model")
    window.page.wait_for_selector('[aria-label*="No better model"]')


def test_the_doctor_is_not_run_by_a_command_of_the_users_own(edit):
    window = edit()
    window.command("draftline: Run Doctor")
    window.page.wait_for_selector(".notification-toast:has-text('draftline.serverCommand')")
