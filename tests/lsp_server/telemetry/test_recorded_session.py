"""Scripted editing sessions: the store contains exactly what happened, and no word of the document's text."""

import pytest

from lsp_server.messages import ItemName, Rejection
from lsp_server.suggesting.generation import PAUSE_S
from lsp_server.telemetry.client_events import ClientEvents
from lsp_server.telemetry.persistence import CHECKPOINTS_S
from lsp_server.telemetry.recorder import SuggestionRecorder, variant_of
from lsp_server.telemetry.report_data import read_report
from lsp_server.telemetry.report_figures import Selection
from lsp_server.telemetry.store import open_store
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle

WALL = 1_700_000_000.0


class RecordedEditor(ScriptedEditor):
    """A scripted editor whose events go into a real store."""

    def __init__(self, text="", **settings):
        super().__init__(text, **settings)
        self.recorder = SuggestionRecorder(lambda: "model", self.clock, lambda: WALL)
        self.signals = ClientEvents(self.policy, self.completer, self.recorder)

    def note_partial(self, query, answer, done):
        super().note_partial(query, answer, done)
        self.recorder.streamed(query, answer)
        self.signals.offered(query, answer)

    def note(self, query, answer):
        super().note(query, answer)
        self.recorder.answered(query, answer)
        if answer.remainders:
            self.signals.offered(query, answer)

    def edited(self, edits):
        super().edited(edits)
        self.recorder.text_changed(self.document, edits)
        self.signals.text_changed(self.document, edits)

    def insert(self, text):
        """Change the document as an acceptance does."""
        self.type(text)

    async def suggest(self, text, **options):
        self.completer.clear(URI)
        self.clock.now += 2
        return await self.ask_and_hear(text, **options)


@pytest.fixture
async def editor(tmp_path):
    editor = RecordedEditor("x = ")
    await editor.recorder.switch(tmp_path / "t.sqlite3")
    yield editor
    await editor.recorder.close()


async def rows(editor, tmp_path, query):
    assert editor.recorder.telemetry.flush()
    store = open_store(tmp_path / "t.sqlite3")
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


OUTCOMES = "SELECT shown, outcome, accepted_characters, characters, reason FROM suggestions ORDER BY at, rowid"


async def test_the_store_has_the_outcome_of_every_suggestion(editor, tmp_path):
    accepted = await editor.suggest("CANARY_value + 1")
    editor.signals.shown(ItemName(accepted.id, 0))
    editor.insert("CANARY_value + 1")
    editor.signals.accepted(ItemName(accepted.id, 0))

    editor.type("\ny = ")
    partly = await editor.suggest("CANARY_first second")
    editor.signals.shown(ItemName(partly.id, 0))
    editor.insert("CANARY_first")
    editor.signals.partly_accepted(ItemName(partly.id, 0), len("CANARY_first"))
    editor.signals.rejected(partly.id, Rejection.TYPED_OVER)

    editor.type("\nz = ")
    dismissed = await editor.suggest("CANARY_no")
    editor.signals.shown(ItemName(dismissed.id, 0))
    editor.signals.rejected(dismissed.id, Rejection.DISMISSED)
    unseen = await editor.suggest("CANARY_unseen")
    editor.signals.rejected(unseen.id, Rejection.CURSOR_MOVED)
    await editor.suggest(None, dropped="repeats_suffix")

    assert await rows(editor, tmp_path, OUTCOMES) == [
        (1, "accepted", 16, 16, ""),
        (1, "partly", 12, 19, ""),
        (1, "dismissed", 0, 9, ""),
        (0, "cursorMoved", 0, 13, ""),
        (0, "", 0, 0, "filtered"),
    ]
    assert await rows(editor, tmp_path, "SELECT DISTINCT language, model, variant FROM suggestions") == [
        ("python", "model", "debounce_ms=0,gate=off,ahead=False")
    ]


async def test_the_acceptances_of_an_editor_that_does_not_report_what_it_shows_count_in_no_rate(editor, tmp_path):
    for number in range(20):
        answer = await editor.suggest(f"value_{number}")
        if number < 3:
            editor.insert(f"value_{number}")
            editor.signals.accepted(ItemName(answer.id, 0))
        editor.type(f"\nx{number} = ")
    assert await rows(editor, tmp_path, "SELECT sum(shown), sum(outcome = 'accepted') FROM suggestions") == [(0, 3)]
    store = open_store(tmp_path / "t.sqlite3")
    report = read_report(store, Selection(0, 2**40))
    store.close()
    assert (report.shown, report.accepted, report.outcomes["accepted"]) == (0, 0, 3)
    assert report.acceptance.count == report.character_acceptance.count == 0


@pytest.fixture(params=["edit first", "report first"])
def accept(request):
    """Return a function that inserts a text, and reports the acceptance of the whole suggestion or its start."""

    def inserts(editor, answer, text, length=None):
        item = ItemName(answer.id, 0)
        if request.param == "edit first":
            editor.insert(text)
        if length is None:
            editor.signals.accepted(item)
        else:
            editor.signals.partly_accepted(item, length)
        if request.param == "report first":
            editor.insert(text)

    return inserts


async def test_what_was_typed_along_does_not_count_as_inserted_by_accepting(editor, tmp_path, accept):
    answer = await editor.suggest("value + other")
    for key in "value + oth":
        editor.type(key)
    accept(editor, answer, "er")
    editor.clock.now += 30
    editor.recorder.checkpoint()
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", 2, 13, "")]
    assert await rows(editor, tmp_path, "SELECT share, characters FROM persistence") == [(1.0, 13)]


async def test_what_is_typed_between_accepted_parts_does_not_count(editor, tmp_path, accept):
    answer = await editor.suggest("value + other")
    editor.type("va")
    accept(editor, answer, "lue", len("value"))
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "partly", 3, 13, "")]
    editor.type(" ")
    accept(editor, answer, "+", len("value +"))
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "partly", 4, 13, "")]
    narrowed = await editor.ask()
    assert narrowed.id == answer.id
    editor.type(" ")
    accept(editor, narrowed, "other")
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", 9, 13, "")]


async def test_what_was_typed_while_the_text_streams_does_not_count(editor, tmp_path, accept):
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    editor.type("va")
    await editor.engine.say("val")
    editor.type("lue ")
    await editor.engine.say("value + other")
    accept(editor, editor.partials[-1][1], "+ other")
    await task
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", 7, 13, "")]


async def test_what_an_acceptance_replaces_with_itself_does_not_count(editor, tmp_path):
    answer = await editor.suggest("value(other)")
    editor.type("val")
    editor.edit(4, 7, "value(other)")
    editor.signals.accepted(ItemName(answer.id, 0))
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", 9, 12, "")]


async def test_keys_after_a_deletion_and_edits_elsewhere_change_nothing_of_what_an_acceptance_inserts(
    editor, tmp_path, accept
):
    answer = await editor.suggest("value + other")
    editor.type("valu")
    editor.delete(2)
    editor.edit(0, 1, "y")
    editor.type("l")
    accept(editor, answer, "ue + other")
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", 10, 13, "")]


async def test_the_gate_learns_an_acceptance_from_an_accepted_part_whatever_follows(editor):
    answer = await editor.suggest("value + other")
    editor.signals.shown(ItemName(answer.id, 0))
    editor.insert("value")
    editor.signals.partly_accepted(ItemName(answer.id, 0), len("value"))
    editor.type("q")
    editor.signals.rejected(answer.id, Rejection.TYPED_OVER)
    assert len(editor.policy.acceptance._model.behaviour.shown) == 1
    assert editor.policy.acceptance._model.user_bias > 0


@pytest.mark.parametrize("how", list(Rejection))
async def test_the_gate_learns_a_rejection_of_what_the_editor_reports_as_shown(editor, how):
    answer = await editor.suggest("value + other")
    editor.signals.shown(ItemName(answer.id, 0))
    editor.signals.rejected(answer.id, how)
    assert len(editor.policy.acceptance._model.behaviour.shown) == 1
    assert editor.policy.acceptance._model.user_bias < 0


async def test_edits_before_it_and_an_alternative_change_nothing_of_what_an_acceptance_inserts(editor, tmp_path):
    editor.edit(0, 0, "a\n")
    editor.cursor += 2
    answer = await editor.ask_and_be_offered("value + other", "number", invoked=True)
    editor.type("va")
    editor.edit(0, 1, "b")
    editor.edit(2, 3, "y")
    editor.signals.accepted(ItemName(answer.id, 0))
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "accepted", len("lue + other"), 13, "")]


async def test_events_on_suggestions_of_a_closed_document_are_ignored(editor, tmp_path):
    answer = await editor.suggest("value")
    editor.signals.forget(editor.document)
    item = ItemName(answer.id, 0)
    editor.signals.shown(item)
    editor.signals.partly_accepted(item, 2)
    editor.signals.accepted(item)
    editor.signals.rejected(answer.id, Rejection.DISMISSED)
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "", 0, 5, "")]
    assert editor.policy.silence(editor.document) is None


async def test_the_remains_of_accepted_text_are_recorded_at_every_checkpoint(editor, tmp_path):
    accepted = await editor.suggest("abcdefgh")
    editor.insert("abcdefgh")
    editor.signals.accepted(ItemName(accepted.id, 0))
    for passed, change in ((30, None), (120, (4, 8, "1234")), (300, (0, 0, "# above\n")), (600, (12, 20, ""))):
        if change:
            editor.edit(*change)
        editor.clock.now += passed - (CHECKPOINTS_S[CHECKPOINTS_S.index(passed) - 1] if passed > 30 else 0)
        editor.recorder.checkpoint()
    assert await rows(editor, tmp_path, "SELECT after_s, share, characters FROM persistence ORDER BY 1") == [
        (30, 1.0, 8),
        (120, 0.5, 4),
        (300, 0.5, 4),
        (600, 0.0, 0),
    ]


async def test_a_text_whose_acceptance_is_reported_before_its_edit_is_followed(editor, tmp_path):
    accepted = await editor.suggest("abcd")
    editor.signals.accepted(ItemName(accepted.id, 0))
    editor.insert("abcd")
    editor.clock.now += 30
    editor.recorder.checkpoint()
    assert await rows(editor, tmp_path, "SELECT after_s, share FROM persistence") == [(30, 1.0)]


async def test_the_remains_are_recorded_when_a_checkpoint_is_due_whenever_the_edit_came(
    editor, tmp_path, accept, pass_time
):
    answer = await editor.suggest("abcd")
    accept(editor, answer, "abcd")
    editor.clock.now += CHECKPOINTS_S[0]
    await pass_time(CHECKPOINTS_S[0])
    assert await rows(editor, tmp_path, "SELECT after_s, share FROM persistence") == [(CHECKPOINTS_S[0], 1.0)]


async def test_the_same_text_long_after_a_reported_acceptance_is_not_its_edit(editor, tmp_path):
    answer = await editor.suggest("abcd")
    editor.signals.accepted(ItemName(answer.id, 0))
    editor.clock.now += 5
    editor.insert("abcd")
    editor.recorder.document_closed(editor.document)
    assert await rows(editor, tmp_path, "SELECT * FROM persistence") == []


async def test_closing_the_document_records_the_remains_at_every_checkpoint(editor, tmp_path):
    accepted = await editor.suggest("abcd")
    editor.insert("abcd")
    editor.signals.accepted(ItemName(accepted.id, 0))
    editor.recorder.document_closed(editor.document)
    assert await rows(editor, tmp_path, "SELECT after_s, share FROM persistence") == [(s, 1.0) for s in CHECKPOINTS_S]


async def test_what_was_accepted_before_telemetry_was_off_is_measured_no_more(editor, tmp_path):
    announced, accepted = await editor.suggest("wxyz"), await editor.suggest("abcd")
    editor.insert("abcd")
    editor.signals.accepted(ItemName(accepted.id, 0))
    editor.signals.accepted(ItemName(announced.id, 0))
    await editor.recorder.switch(None)
    editor.edit(0, 0, "# above\n")
    await editor.recorder.switch(tmp_path / "t.sqlite3")
    editor.insert("wxyz")
    editor.recorder.document_closed(editor.document)
    assert await rows(editor, tmp_path, "SELECT * FROM persistence") == []


async def test_a_narrowed_suggestion_is_recorded_once(editor, tmp_path):
    shown = await editor.suggest("value")
    editor.type("va")
    narrowed = await editor.ask()
    assert narrowed.id == shown.id
    assert len(await rows(editor, tmp_path, OUTCOMES)) == 1


ANSWERS = "SELECT characters, suggestions, reason, first_text_ms, answer_ms FROM suggestions"


async def test_later_queries_of_an_answered_completion_leave_its_record_as_it_is(editor, tmp_path):
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    editor.clock.now += 0.5
    await editor.engine.say("value", done=True)
    await first
    for typed in ("v", "alu"):
        editor.clock.now += 1
        editor.type(typed)
        await editor.ask()
    cancelled = editor.ask()
    await settle()
    cancelled.cancel()
    await settle()
    assert await rows(editor, tmp_path, ANSWERS) == [(5, 1, "", 500, 500)]


async def test_a_query_that_ended_before_any_text_is_recorded_with_its_reason(editor, tmp_path):
    editor.ask()
    await editor.engine.wait_for_request(1)
    editor.type("v")
    editor.ask()
    await settle()
    assert await rows(editor, tmp_path, "SELECT characters, reason FROM suggestions") == [(0, "superseded")]


async def test_a_query_that_was_superseded_before_any_text_is_replaced_in_the_record(editor, tmp_path):
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    editor.type("v")
    editor.clock.now += 1
    second = editor.ask()
    assert (await first).reason == "superseded"
    editor.clock.now += 0.5
    await editor.engine.say("value", done=True)
    await second
    assert await rows(editor, tmp_path, ANSWERS) == [(4, 1, "", 500, 500)]


async def test_times_count_from_the_first_query_that_got_text_although_typing_superseded_it(editor, tmp_path):
    first = editor.ask()
    await editor.engine.wait_for_request(1)
    editor.clock.now += 0.5
    await editor.engine.say("val")
    await editor.engine.say("valu")
    assert await rows(editor, tmp_path, ANSWERS) == [(4, 1, "", 500, 500)]
    editor.type("v")
    second = editor.ask()
    await first
    editor.clock.now += 0.5
    await editor.engine.say("value", done=True)
    await second
    assert await rows(editor, tmp_path, ANSWERS) == [(4, 1, "", 500, 1000)]


@pytest.mark.parametrize("outcome", ["accepted", "partly", "dismissed", "typedOver", "cursorMoved"])
async def test_a_suggestion_whose_fate_is_decided_while_it_streams_is_recorded_with_its_text(editor, tmp_path, outcome):
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    for text in ("value", "value + other"):
        await editor.engine.say(text)
    item = ItemName(editor.partials[-1][1].id, 0)
    editor.signals.shown(item)
    if outcome == "accepted":
        editor.insert("value + other")
        editor.signals.accepted(item)
    elif outcome == "partly":
        editor.insert("value")
        editor.signals.partly_accepted(item, len("value"))
        task.cancel()
    else:
        if outcome == "typedOver":
            editor.type("q")
        editor.signals.rejected(item.id, Rejection(outcome))
    await settle()
    accepted = {"accepted": 13, "partly": 5}.get(outcome, 0)
    assert await rows(editor, tmp_path, OUTCOMES) == [(1, outcome, accepted, 13, "")]


async def test_a_streamed_suggestion_that_the_engine_takes_back_is_recorded_without_text(editor, tmp_path):
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    await editor.engine.say(None, done=True, dropped="repeats_suffix")
    await task
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "", 0, 0, "filtered")]


async def test_typing_along_a_streamed_suggestion_records_what_the_last_query_got(editor, tmp_path):
    editor.ask()
    await editor.engine.wait_for_request(1)
    await editor.engine.say("value")
    editor.type("v")
    second = editor.ask()
    await settle()
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "", 0, 4, "")]
    await editor.engine.say("value + other", done=True)
    await second
    assert await rows(editor, tmp_path, OUTCOMES) == [(0, "", 0, 12, "")]


async def test_the_store_contains_no_word_of_a_document_or_of_its_name(editor, tmp_path):
    editor.type("CANARY_typed ")
    answer = await editor.suggest("CANARY_said", invoked=True)
    editor.insert("CANARY_said")
    editor.signals.accepted(ItemName(answer.id, 0))
    editor.clock.now += 700
    editor.recorder.checkpoint()
    await editor.recorder.close()
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        for word in (b"CANARY", b"a.py", b"project"):
            assert word not in data


NOT_DISMISSED = [Rejection.CURSOR_MOVED, Rejection.TYPED_OVER]


@pytest.mark.parametrize("how", NOT_DISMISSED)
async def test_no_alternatives_are_generated_for_a_suggestion_that_left_the_screen(how, pass_time):
    editor = RecordedEditor("x = ", suggestions=3)
    answer = await editor.ask_and_be_offered("value")
    editor.signals.rejected(answer.id, how)
    await pass_time(2 * PAUSE_S)
    assert len(editor.engine.requests) == 1


@pytest.mark.parametrize("how", NOT_DISMISSED)
async def test_the_rejection_of_an_older_suggestion_does_not_stop_a_newer_one(how):
    editor = RecordedEditor("x = ")
    older = await editor.suggest("value")
    editor.type("1")
    newer = editor.ask()
    await editor.engine.wait_for_request(2)
    editor.signals.rejected(older.id, how)
    await settle()
    assert editor.engine.closed == [0]
    await editor.engine.say(" + 2", done=True)
    assert [remainder.text for remainder in (await newer).remainders] == [" + 2"]


async def test_refusals_and_typed_characters_are_counted(editor, tmp_path):
    editor.type("abc")
    editor.edit(0, 0, "x" * 5000)  # a reload is not typing
    editor.policy.note_rejection(editor.document)
    await editor.ask()
    assert await rows(editor, tmp_path, "SELECT language, reason, requests FROM refusals") == [
        ("python", "after_rejection", 1)
    ]
    assert await rows(editor, tmp_path, "SELECT characters FROM written") == [(3,)]


async def test_nothing_is_recorded_while_telemetry_is_off(tmp_path):
    editor = RecordedEditor("x = ")
    answer = await editor.suggest("value")
    editor.insert("value")
    editor.signals.accepted(ItemName(answer.id, 0))
    editor.recorder.document_closed(editor.document)
    await editor.recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_variant_has_only_settings_that_differ_from_their_defaults():
    editor = ScriptedEditor("", debounce_ms=60, max_tokens=32)
    assert variant_of(editor.settings) == "max_tokens=32,gate=off,ahead=False"
