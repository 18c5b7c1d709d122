"""The user's quiet controls: each holds from the next key on, spares manual requests, and ends as it should."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from lsprotocol import types

from completion.request import CompletionEvent, StopReason, Suggestion
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.empty_reason import EmptyReason
from lsp_server.messages import InvalidMessageError, OffScope, Switch, read_minutes, read_switch
from lsp_server.server import create_server
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.suggesting.request_builder import RequestBuilder
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts


async def test_manual_mode_sends_no_request_in_200_typed_keys_and_answers_a_manual_one():
    editor = ScriptedEditor("", trigger="manual")
    for key in ("value = compute(first, second)\n" * 7)[:196] + "y = ":
        editor.type(key)
        assert (await editor.ask()).reason is EmptyReason.MANUAL
    assert editor.cursor == 200
    assert not editor.engine.requests
    assert texts(await editor.ask_and_hear("567", invoked=True)) == ["567"]
    editor.type("5")
    assert texts(await editor.ask()) == ["67"], "typing along what was requested narrows it"


async def test_a_switch_to_manual_mode_acts_on_what_is_being_generated_and_on_the_next_key():
    editor = ScriptedEditor("x = ")
    running = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("val")
    editor.settings = dataclasses.replace(editor.settings, trigger="manual")
    shown = len(editor.partials)
    await editor.engine.say("value", done=True)
    assert (await running).reason is EmptyReason.MANUAL
    assert len(editor.partials) == shown
    editor.type("v")
    assert (await editor.ask()).reason is EmptyReason.MANUAL
    editor.settings = dataclasses.replace(editor.settings, trigger="automatic")
    editor.type("a")
    assert texts(await editor.ask_and_hear("lue")) == ["lue"]


async def test_the_snooze_ends_by_itself_and_spares_manual_requests():
    editor = ScriptedEditor("x = ")
    assert "snoozed until" in editor.quiet.snooze(10)
    editor.clock.now += 599
    assert (await editor.ask()).reason is EmptyReason.SNOOZED
    assert texts(await editor.ask_and_hear("1", invoked=True)) == ["1"]
    editor.completer.clear(URI)
    editor.clock.now += 2
    assert texts(await editor.ask_and_hear("2")) == ["2"]
    editor.quiet.close()


async def test_the_status_follows_the_snooze_to_its_end(pass_time):
    editor = ScriptedEditor("x = ")
    editor.quiet.snooze(5)
    editor.clock.now += 300
    await pass_time(300)
    editor.quiet.snooze(float("inf"))
    editor.clock.now += 1e9
    assert (await editor.ask()).reason is EmptyReason.SNOOZED
    editor.quiet.resume()
    said = [status["quiet"] for status in editor.statuses]
    assert [bool(one) for one in said] == [True, False, True, False]
    assert said[2] == "Automatic suggestions are snoozed until the server is restarted."


@pytest.mark.parametrize("scope", list(OffScope))
async def test_what_is_switched_off_stays_off_in_other_servers_without_its_name_on_disk(scope, tmp_path):
    where = {"folder": "file:///project", "off_path": tmp_path / "off.json"}
    editor, running = ScriptedEditor("x = ", **where), ScriptedEditor("x = ", **where)
    assert f"off for this {scope}" in editor.quiet.switch(Switch(scope, URI, is_off=True), editor.document)
    for other in (editor, running, ScriptedEditor("x = ", **where)):
        assert (await other.ask(invoked=True)).reason == f"{scope}_off"
    others = {"file": "file:///project/b.py", "language": "go", "workspace": "file:///elsewhere/a.py"}
    elsewhere = ScriptedEditor("x = ", **where)
    setattr(elsewhere.document, "language" if scope is OffScope.LANGUAGE else "uri", others[scope])
    assert texts(await elsewhere.ask_and_hear("1")) == ["1"]
    assert not any(name in where["off_path"].read_text() for name in ("project", "a.py", "python"))
    editor.quiet.switch(Switch(scope, URI, is_off=None), editor.document)
    assert texts(await running.ask_and_hear("2")) == ["2"]
    assert json.loads(where["off_path"].read_text())["answers"] == {}


def test_what_an_earlier_version_switched_off_stays_off(tmp_path):
    digest = hashlib.sha256(b"s\0language\0python").hexdigest()
    (tmp_path / "off.json").write_text(json.dumps({"salt": "s", "off": [digest]}))
    off = HashedAnswers(tmp_path / "off.json")
    assert off.get(OffScope.LANGUAGE, "python")
    off.set(OffScope.LANGUAGE, "python", answer=None)
    assert not HashedAnswers(tmp_path / "off.json").get(OffScope.LANGUAGE, "python")


async def test_a_switch_that_cannot_be_remembered_says_so_and_holds_until_the_server_ends():
    editor = ScriptedEditor("x = ", off_path=Path("/proc/missing/off.json"))  # where nobody can make a folder
    said = editor.quiet.switch(Switch(OffScope.FILE, URI, is_off=True), editor.document)
    assert "until the server ends" in said
    assert (await editor.ask()).reason is EmptyReason.FILE_OFF
    assert "no folder" in editor.quiet.switch(Switch(OffScope.WORKSPACE, URI, is_off=True), editor.document)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"salt": 1, "off": 2}'])
def test_an_invalid_file_counts_as_nothing_switched_off(tmp_path, text):
    path = tmp_path / "off.json"
    path.write_text(text)
    off = HashedAnswers(path)
    assert not off.get(OffScope.LANGUAGE, "python")
    off.set(OffScope.LANGUAGE, "python", answer=True)
    assert HashedAnswers(path).get(OffScope.LANGUAGE, "python")


async def test_a_suggestion_appears_only_after_a_pause_and_then_stays_while_it_is_typed(pass_time):
    editor = ScriptedEditor("x = ", suggestions=1, show_after_ms=400)
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value + 1", done=True)
    editor.clock.now += 0.3
    await pass_time(0.3)
    assert not first.done()
    editor.type("v")
    second = editor.ask()
    assert (await first).reason is EmptyReason.TYPING
    editor.clock.now += 0.3
    await pass_time(0.3)
    assert not second.done()
    assert not editor.partials
    editor.clock.now += 0.2
    await pass_time(0.2)
    assert texts(await second) == ["alue + 1"]
    editor.type("a")
    assert texts(await editor.ask()) == ["lue + 1"]
    assert len(editor.engine.requests) == 1


async def test_a_manual_request_waits_for_no_pause():
    editor = ScriptedEditor("x = ", show_after_ms=10_000)
    assert texts(await editor.ask_and_hear("1", invoked=True)) == ["1"]


async def test_only_automatic_requests_are_bounded_by_lines_and_by_the_syntax_at_the_cursor():
    editor = ScriptedEditor("x = ", automatic_lines=2, in_comments=False, in_strings=False)
    builder = RequestBuilder(editor.documents, WorkspaceFolders())
    automatic, manual = (
        builder.build(editor.document, editor.place(), editor.settings, invoked=invoked) for invoked in (False, True)
    )
    assert (automatic.max_lines, automatic.in_comments, automatic.in_strings) == (2, False, False)
    assert (manual.max_lines, manual.in_comments, manual.in_strings) == (0, True, True)


@pytest.mark.parametrize(("reason", "requests"), [(StopReason.MAX_LINES, 2), (StopReason.BLOCK_END, 1)])
async def test_a_manual_request_does_not_reuse_a_suggestion_that_the_bound_of_lines_cut(reason, requests):
    editor = ScriptedEditor("x = ", suggestions=1, automatic_lines=1)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    editor.engine.queues[-1].put_nowait(CompletionEvent((Suggestion("f("),), done=True, stop_reason=reason, whole=1))
    await task
    again = editor.ask(invoked=True)
    await settle()
    assert len(editor.engine.requests) == requests
    if requests == 2:
        await editor.engine.say("f(\n    1)", done=True)
    assert texts(await again) == (["f(\n    1)"] if requests == 2 else ["f("])


def test_the_commands_name_what_is_wrong_with_their_arguments():
    assert read_minutes([]) == float("inf") == read_minutes([1e300])
    assert read_minutes([2.5]) == 2.5
    for wrong in ("5", 0, -1, True, float("nan"), None):
        with pytest.raises(InvalidMessageError, match="number of minutes"):
            read_minutes([wrong])
    assert read_switch(["file", URI]) == Switch(OffScope.FILE, URI, None)
    assert read_switch(["language", URI, "on"]).is_off is False
    for wrong in ([], ["file"], ["folder", URI], ["file", URI, "maybe"], [["file"], URI], [{}, URI]):
        with pytest.raises(InvalidMessageError, match="workspace"):
            read_switch(wrong)


async def test_a_notebook_on_no_disk_that_is_switched_off_is_off_until_it_is_closed(runtime):
    session = create_server().session
    cells = [types.TextDocumentItem(f"cell:{number}", "python", 1, "") for number in range(2)]
    order = [types.NotebookCell(types.NotebookCellKind.Code, cell.uri) for cell in cells]
    notebook = types.NotebookDocument("untitled:n.ipynb", "jupyter", 1, order)
    named, first = [types.TextDocumentIdentifier(cell.uri) for cell in cells], cells[0].uri
    closed = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(notebook.uri), named)
    for _ in range(2):
        session.documents.open_notebook(types.DidOpenNotebookDocumentParams(notebook, cells))
        assert session.quiet.off(session.documents.get(first)) is None
        session.switch(Switch(OffScope.FILE, first, is_off=True))
        session.document_changes.close(cells[1].uri)
        assert session.quiet.off(session.documents.get(first)) is EmptyReason.FILE_OFF
        session.document_changes.close_notebook(closed)
    await session.close()
