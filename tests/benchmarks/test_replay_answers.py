"""Recorded answers become what the rules of a checkout make of them; a rule that is off changes that."""

from dataclasses import replace

import pytest

from benchmarks.quality.rows import BLOCK_TOKENS, ROWS
from benchmarks.quality.tasks import Task
from benchmarks.record_answers import HeardEngine
from benchmarks.replay_answers.__main__ import compared, described, report
from benchmarks.replay_answers.answers import Answer, Branch, Token, in_turns, read, write
from benchmarks.replay_answers.judging import Grade, Right, grade
from benchmarks.replay_answers.running import OWN, Outcome, replayed
from completion.cancellation import CancelToken
from completion.workspace.context import WorkspaceContext

CALL = Task("p==1:a.py@7", "repo_context", "python", "a.py", "x = f(", ")\n", "1")


def answer(task: Task, *tokens: str, run: str = "", end: str = "stop_token") -> Answer:
    """Return an answer of these tokens, each of which is certain."""
    rows = tuple(Token(number, data, -0.01) for number, data in enumerate(tokens))
    return Answer(task.id, "m", run, rows, end, len(rows), -0.01 * len(rows), (), 0.1)


def test_answers_are_kept_as_they_were_and_go_on_after_an_interrupted_line(tmp_path):
    kept = replace(answer(CALL, "a", "\xc3"), branches=(Branch((Token(7, "b", -0.5),), -0.5),))
    path = tmp_path / "record.jsonl"
    with path.open("a", encoding="utf-8") as out:
        write(kept, out)
        out.write('{"id": "cut')
    assert read(path, "m") == {kept.id: kept}
    with pytest.raises(SystemExit, match="not of another"):
        read(path, "another")


def test_sets_and_languages_take_turns():
    tasks = [replace(CALL, id=f"{name}{number}", language=name) for name in "ab" for number in range(3)]
    others = [replace(CALL, id=f"c{number}", dataset="mid_line") for number in range(2)]
    assert [task.id for task in in_turns([*tasks, *others], 0)] == ["a0", "c0", "b0", "c1", "a1", "b1", "a2", "b2"]
    assert [task.id for task in in_turns([*tasks, *others], 2)] == ["a0", "c0", "b0", "c1"]


def test_the_rules_of_a_checkout_end_and_cut_a_recorded_text():
    long = replace(CALL, id="q", prefix="def f():\n    re", suffix="\n", reference="turn 1")
    asked = [(CALL, answer(CALL, "1", ")", "\n", "y")), (long, answer(long, " return", " 1", "\n", "y", run=" re"))]
    found = replayed(asked, OWN)
    assert (found[CALL.id].text, found[CALL.id].replaces) == ("1)", 1)
    assert (found["q"].text, found["q"].stop) == ("turn 1", "line_end")
    assert found["q"].text.startswith(found["q"].shown)
    assert not any(outcome.ran_out or outcome.error for outcome in found.values())


def test_a_rule_that_is_off_does_not_act():
    after = answer(CALL, "1", ")", "\n", "y = 2", "\n")
    without = replayed([(CALL, after)], OWN, "resync,line")[CALL.id]
    assert "y = 2" in without.text
    with pytest.raises(SystemExit):
        replayed([(CALL, after)], OWN, "no_rule")


def test_a_text_that_the_rules_would_read_further_says_so():
    task = replace(CALL, prefix="x = ", suffix="\n")
    assert replayed([(task, answer(task, "1", " +", end="enough"))], OWN)[task.id].ran_out


def test_only_the_code_of_the_named_checkout_runs(tmp_path):
    with pytest.raises(SystemExit):
        replayed([(CALL, answer(CALL, "1"))], tmp_path)


def test_a_document_is_worth_what_is_right_of_it_unless_it_is_broken():
    def worth(text, reference="1", replaces=0):
        return grade(replace(CALL, reference=reference), Outcome(text, replaces)).worth

    assert (
        worth("2))(") < worth("") == worth("2") < worth("1", "1 + 2") < worth("1", "1\n+ 2") < worth("1)", replaces=1)
    )
    assert grade(replace(CALL, reference="1\n+ 2"), Outcome("1\n))((")) == Grade(Right.FIRST_LINE, sound=False)
    assert worth("1\n))((", "1\n+ 2") < worth("")
    assert grade(replace(CALL, language="crystal"), Outcome("2))((")) == Grade(Right.NOTHING, sound=None)


def test_differences_are_counted_and_shown_with_the_true_document():
    (each,) = found = compared([(CALL, answer(CALL, "1"))], {CALL.id: Outcome("1")}, {CALL.id: Outcome("2", shown="3")})
    assert each.verdict == "worse"
    figures = report(found)
    assert (figures["worse"], figures["taken_back_after"], figures["languages"]["python"]["worse"]) == (1, 1, 1)
    assert described(each).count("x = f(⟦1⟧)") == 2
    assert "x = f(⟦2⟧)" in described(each)


def test_the_replay_of_a_record_is_what_the_product_suggests(tiny_model):
    prefixes = ("def f(a):\n    return a", "x = [1, ", "for i in range(3):\n    pri", 'text = "a')
    tasks = [replace(CALL, id=prefix, prefix=prefix, suffix="\n") for prefix in prefixes]
    engine, expected, asked = HeardEngine(tiny_model), [], []
    for task in tasks:
        request = ROWS["whole"].request(task, WorkspaceContext(), 0)
        asked.append((task, engine.answer(task, request, "tiny")))
        *_, last = engine.complete(request, CancelToken())
        expected.append(last.suggestions[0].text if last.suggestions else "")
    found = replayed(asked, OWN)
    assert [found[task.id].text for task in tasks] == expected
    assert any(expected)
    whole = [len(record.tokens) < BLOCK_TOKENS and record.end == "enough" for _, record in asked]
    assert all(len(record.tokens) > record.stopped for (_, record), known in zip(asked, whole, strict=True) if known)
