"""Real VS Code, real server, real default model: what the user sees and does at the cursor."""

from __future__ import annotations

import json

import psutil
import pytest

from benchmarks.screen.seen import State, seen
from tests.e2e.sample_documents import CART, LIBRARY, MULTIPLY

pytestmark = [pytest.mark.vscode, pytest.mark.real_model]


def test_ghost_text_grows_while_it_is_generated_and_tab_accepts_it(edit):
    window = edit(LIBRARY.rstrip())
    window.type("\n")
    window.press("Alt+\\")  # the whole block, which an automatic request shows only as far as it is likely
    window.wait_for("new Set(ghostsSeen.filter(Boolean)).size > 2", "text that grows")
    grown = window.ghosts_seen()
    grown = grown[grown.index(next(filter(None, grown))) :]
    # It never flickers. The editor draws the first line and the lines below one after the other, in either order.
    for ghost in grown:
        assert ghost, grown
        whole = iter(max(grown, key=len).split("\n"))
        assert all(any(line.startswith(start) for line in whole) for start in ghost.split("\n")), grown
    window.press("Tab")
    accepted = "        " + max(grown, key=len).splitlines()[0]
    window.wait_for(f"linesShown().some((line) => line.startsWith({json.dumps(accepted)}))", "the accepted text")
    assert " ms" in window.status_text()


def test_typing_along_while_text_grows_never_hides_it(edit):
    window = edit("import sqlite3\n\n\ndef save(books: list[Book], database: str) -> None:\n    ")
    window.ends_seen()
    for line in ("connection = sqlite3.connect(database)\n", "cursor = connection.cursor()\n", "for book in books:\n"):
        window.type(line, pause_ms=90)
    states = [State(0, end, ghost) for end, ghost in window.ends_seen()]
    assert not seen(states).flickers
    assert len({state.text for state in states}) > 20


def test_typing_a_suggestion_narrows_it(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    for typed, remainder in (("t", r"urn a \* b"), ("u", r"rn a \* b"), ("rn", r" a \* b")):
        window.type(typed)
        window.wait_for_ghost(remainder)
    window.press("Tab")
    window.wait_for_line("    return a * b")


def test_accepting_a_word_then_the_suggestion(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Control+ArrowRight")
    window.wait_for_line("    return")
    window.wait_for_ghost(r" a \* b")
    window.press("Tab")
    window.wait_for_line("    return a * b")


def test_escape_dismisses_the_suggestion_and_keeps_the_text(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Escape")
    window.wait_for_ghost("")
    assert window.lines()[-1] == "    re"


def test_escape_leaves_open_what_is_opened_right_after_it(edit):
    for name in ("one", "two", "three", "four", "five", "six"):  # the palette used to close in one of twenty-five
        window = edit(MULTIPLY, f"escape_{name}.py")
        window.type("re")
        window.wait_for_ghost(r"turn a \* b")
        window.press("Escape")
        window.find_command("draftline: Show Log")
        window.press("Escape")


def test_one_undo_removes_what_was_accepted(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Tab")
    window.wait_for_line("    return a * b")
    window.press("Control+z")
    window.wait_for_line("    re")


def test_several_lines_are_shown_and_accepted(edit, images):
    window = edit(CART.rstrip(), "cart.py")
    window.type("\n")
    window.wait_for_ghost(r"if name in self\.prices:\n\s*del self\.prices\[name\]")
    window.page.screenshot(path=images / "vscode.png")
    window.press("Tab")
    window.wait_for_line("            del self.prices[name]")


def test_typing_something_else_removes_the_suggestion(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.type("x")
    window.wait_for("!ghostShown().startsWith('turn')", "end of the old suggestion")
    assert window.lines()[-1] == "    rex"


def test_typing_brackets_and_lines_along_a_suggestion_neither_rejects_nor_partly_accepts_it(edit, engine_room):
    window = edit(CART.rstrip() + "\n        if name in self.prices")
    before = {outcome: engine_room.outcomes(outcome) for outcome in ("accepted", "partly", "typedOver")}
    window.type(":")
    window.wait_for_ghost(r"\s*del self\.prices\[name\]")
    window.press("Enter")  # the editor indents the new line
    window.wait_for_ghost(r"del self\.prices\[name\]")
    window.type("del self.prices[")  # the editor closes the bracket
    window.wait_for_ghost("name")
    window.type("name]")  # over the editor's bracket
    window.wait_for_line("            del self.prices[name]")
    window.type("\nre")
    window.wait_for_ghost(r"turn .+")  # complete: a part of a text that grows is accepted in part
    window.press("Tab")
    engine_room.wait_for_outcome("accepted", before["accepted"])
    assert engine_room.outcomes("typedOver") == before["typedOver"]
    assert engine_room.outcomes("partly") == before["partly"]


def test_fast_typing_with_late_replies(edit):
    window = edit(MULTIPLY)
    window.type("result = b * a\nre")
    shown = window.wait_for_ghost("turn.*")
    window.press("Tab")
    window.wait_for(f"linesShown().some((line) => line.startsWith({('    re' + shown)!r}))", "the accepted text")
    assert "    result = b * a" in window.lines()


def test_a_request_for_alternatives_keeps_a_suggestion_on_the_screen(edit):
    window = edit(MULTIPLY)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Alt+]")
    window.wait_for_ghost("turn.*")
    window.press("Tab")
    window.wait_for("linesShown().at(-1).length > '    re'.length", "the accepted text")


def test_alternatives_that_arrive_and_are_requested_never_hide_the_suggestion(edit):
    window = edit("import re\n\n\ndef f(path):\n    with open(path) as file:\n        for line in file:\n           ")
    window.type(" ")
    window.wait_for_ghost(".+")
    for keys in ("Alt+]", "Alt+["):  # while the first request runs
        window.press(keys)
        window.wait_for_ghost(".+")
    ghosts = window.ghosts_seen()
    assert "" not in ghosts[1:], ghosts


def test_windows_line_ends_and_wide_characters(edit, tmp_path):
    window = edit("# é😀 👩‍👩‍👧\r\n" + MULTIPLY.replace("\n", "\r\n"))
    window.type("s = 'é😀 ü'; ret")
    window.press("Alt+\\")  # after a `;` the word alone is too unlikely for an automatic request
    window.wait_for_ghost("urn.*")
    window.press("Tab")
    window.wait_for("!ghostShown() && linesShown().at(-1).includes('return')", "the accepted text")
    window.press("Control+s")
    window.page.wait_for_selector(".tab.active:not(.dirty)")
    saved = next(tmp_path.glob("*.py")).read_bytes().decode()
    assert "\r\n    s = 'é😀 ü'; return" in saved, saved
    assert saved.count("\n") == saved.count("\r\n")


def test_two_windows_share_one_engine(edit, open_window, engine_room, tmp_path):
    first = edit(MULTIPLY)
    file = tmp_path / "other.py"
    file.write_text(MULTIPLY)
    second = open_window(file)
    second.wait_for_ready()
    second.press("Control+End")
    for window in (first, second):
        window.page.bring_to_front()
        window.type("re")
        window.wait_for_ghost(r"turn a \* b")
    assert len(engine_room.hosts()) == 1


def test_a_trusted_repository_chooses_neither_program_nor_model(open_window, tmp_path):
    executed = tmp_path / "executed"
    trap = tmp_path / "lsp_server" / "__init__.py"
    trap.parent.mkdir()
    trap.write_text(f"open({str(executed)!r}, 'w').close()\n")
    chosen = {"model": "/nowhere", "backend": "fp32", "python": "/nowhere", "serverCommand": ["touch", str(executed)]}
    (tmp_path / ".vscode").mkdir()
    settings = json.dumps({f"draftline.{name}": value for name, value in chosen.items()})
    (tmp_path / ".vscode" / "settings.json").write_text(settings)
    (tmp_path / ".draftline.toml").write_text('model = "/nowhere"\n')
    file = tmp_path / "orders.py"
    file.touch()
    window = open_window(file)
    window.wait_for_ready()
    assert not executed.exists()


def test_the_next_key_restarts_a_killed_engine(edit, engine_room):
    window = edit(MULTIPLY)
    hosts = engine_room.hosts()
    for host in hosts:
        host.kill()
    psutil.wait_procs(hosts, timeout=10)
    window.type("re")
    window.wait_for_ghost(r"turn a \* b", timeout_s=90)
    assert window.page.locator(".notification-toast .codicon-error").count() == 0


def test_restarts_that_overlap_leave_one_server(edit, code_server):
    window = edit(MULTIPLY)
    before = code_server.language_servers()
    for _ in range(3):
        window.command("draftline: Restart the Server")
    window.page.wait_for_selector("[aria-label*='draftline: starting']")
    window.wait_for_ready()
    assert len(code_server.language_servers() - before) == 1
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")


def test_the_server_is_restarted_and_switched_off_and_on(edit):
    window = edit(MULTIPLY)
    window.command("draftline: Restart the Server")
    window.page.wait_for_selector("[aria-label*='draftline: starting']")
    window.wait_for_ready()
    window.type("re")
    window.wait_for_ghost(r"turn a \* b")
    window.press("Escape")
    window.command("draftline: Switch On or Off")
    window.page.wait_for_selector("[aria-label*='draftline: off']")
    window.command("draftline: Switch On or Off")
    window.page.wait_for_selector("[aria-label*='draftline: ready']")
