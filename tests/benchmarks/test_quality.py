"""The quality benchmark sends the requests of an editor, computes its scores, and runs programs within limits."""

import json
import sys
from contextlib import suppress

import psutil
import pytest

from benchmarks import filter_harm
from benchmarks.quality import __main__ as quality
from benchmarks.quality.report import Prediction, by_set, keys, print_tables
from benchmarks.quality.scoring import Score, first_line, runs_to_its_end, score
from benchmarks.quality.sets import FILES, MID_LINE, NAMED, OPENED, half_of, mid_line, named, opened
from benchmarks.quality.tasks import distinct, file_tasks, sample, tasks_of
from benchmarks.suggestions import __main__ as suggestions
from completion.request import Mode

LINE = {
    "id": "a",
    "source": "humaneval-infilling/SingleLine",
    "language": "python",
    "prefix": "def f(a):\n",
    "suffix": "    return b\n",
    "reference": "    b = a + 1\n",
    "tests": "assert f(1) == 2",
}


def test_a_hole_of_whole_lines_is_an_empty_line_in_the_editor():
    (task,) = tasks_of(LINE, "humaneval")
    assert (task.dataset, task.mode, task.reference) == ("single_line", Mode.LINE, "    b = a + 1")
    assert task.document_suffix == "\n    return b\n"
    assert score("    b = a + 1", task.reference, task.program("    b = a + 1")) == Score(
        1.0, 1.0, 1.0, 1.0, offered=13, right=13
    )
    assert score("    b = a", task.reference, task.program("    b = a")).passed == 0.0


def test_a_release_replay_has_one_cursor_in_the_first_new_line_of_each_hunk():
    before = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"
    after = before.replace("b = 2", "better = 2\nbest = 3").replace("e = 5", "end = 5")
    record = {"id": "r", "language": "python", "path": "x.py", "before": before, "after": after}
    tasks = tasks_of(record, "release_replay")
    assert [(task.prefix + task.reference).splitlines()[-1] for task in tasks] == ["better = 2", "end = 5"]
    assert tasks[0].suffix == "\nc = 3\nd = 4\ne = 5\n"
    assert "best = 3" in tasks[1].prefix
    assert [task.history for task in tasks] == [
        "@@\n-b = 2\n",
        "@@\n-b = 2\n+better = 2\n+best = 3\n@@\n-e = 5\n",
    ]
    assert all(task.deleted_here for task in tasks)


def test_a_part_of_a_line_is_taken_out_of_its_middle():
    (task,) = tasks_of(LINE | {"id": "c"}, "humaneval")
    hole = mid_line(task)
    assert hole == mid_line(task)
    assert hole.prefix + hole.reference + hole.suffix == "def f(a):\n    b = a + 1\n    return b\n"
    assert hole.reference.strip()
    assert "\n" not in hole.reference
    assert hole.suffix.partition("\n")[0]
    assert hole.program(hole.reference).endswith("assert f(1) == 2\n")


def test_an_opened_place_follows_punctuation_after_a_blank_outside_of_comments():
    record = LINE | {"id": "d", "prefix": "# a = (b\nx = f(1)\n", "reference": "y = [a]\n", "suffix": "# c = (d\n"}
    (task,) = tasks_of(record, "humaneval")
    place = opened(task)
    assert (place.prefix, place.reference, place.suffix) == ("# a = (b\nx = f(1)\ny = [", "a]", "\n# c = (d\n")
    (without,) = tasks_of(LINE, "humaneval")
    assert opened(without) is None


def test_a_named_place_is_the_first_mention_of_the_files_name_at_its_top():
    def places(path, text):
        record = {"id": "a==1:" + path, "language": "java", "path": path, "prefix": text, "reference": "", "suffix": ""}
        return [(task.prefix, task.reference) for task in named(tasks_of(record, "cursor_positions"))]

    assert places("a/OrderService.java", "package a;\n\nclass OrderService {\n}\n") == [
        ("package a;\n\nclass ", "OrderService {")
    ]
    assert places("http_client.py", "class HttpClient:\n") == [("class ", "HttpClient:")]
    assert places("http_client.py", "# HTTP client\nclass HttpClient:\n") == []
    assert places("a.py", "class A:\n") == []
    other = {"path": "b/Cart.java", "text": "class Cart {\n"}
    record = LINE | {"id": "b", "path": "b.py", "context": [other, other]}
    assert [task.path for task in named(tasks_of(record, "repo_context"))] == ["b/Cart.java"]


def test_the_parts_of_a_packages_lines_are_in_its_half():
    for package in map(str, range(8)):
        halves = {
            half_of(f"{part}{package}==1.0:{path}")
            for part in ("", f"{MID_LINE}/", f"{OPENED}/", f"{NAMED}/")
            for path in ("a@3", "b@4")
        }
        assert len(halves) == 1


def test_a_sample_is_the_same_every_time_and_bounded_by_language():
    tasks = [task for i in range(20) for task in tasks_of(LINE | {"id": str(i)}, "humaneval")]
    assert sample(tasks, 5) == sample(tasks[::-1], 5)
    assert len(sample(tasks, 5)) == 5


def test_first_line_skips_blank_ones():
    assert first_line("\n  \n  a  \nb") == "  a"


def test_a_program_that_leaves_early_or_never_ends_has_not_passed(monkeypatch):
    monkeypatch.setattr("benchmarks.quality.scoring.TIME_LIMIT_S", 1)
    assert runs_to_its_end("x = 1\n")
    assert not runs_to_its_end("raise SystemExit(0)\n")
    assert not runs_to_its_end("while True: pass\n")


def test_the_gain_of_the_history_compares_the_same_replays():
    def made(id_, row, right):
        return Prediction(id_, "release_replay", "python", row, Score(0.0, 0.0, right), 0.1)

    pairs = [made(str(n), row, n < right) for row, right in (("whole", 3), ("whole_no_history", 2)) for n in range(10)]
    figures = keys([*pairs, made("more", "whole", 1.0)])
    assert figures["release_replay_first_line"] == 36.36
    assert figures["history_first_line_gain"] == 10.0
    assert figures["history_places"] == 10


def test_ratios_compare_only_tasks_that_both_rows_answered():
    def made(id_, row, exact):
        return Prediction(id_, "repo_context", "python", row, Score(exact, exact, exact), 0.1)

    predictions = [made("1", "whole", 1.0), made("1", "whole_no_context", 0.5), made("2", "whole", 0.0)]
    assert keys(predictions)["context_exact_match_ratio"] == 2.0


def test_a_start_of_the_line_is_right_but_not_a_whole_line_that_differs():
    def characters(text):
        found = score(text, "compute(a, b)", None)
        return found.offered, found.right

    assert [characters(text) for text in ("compute(a", "compute(b", "compute(a, b)\nx", "compute(a\nx", "")] == [
        (9, 9),
        (9, 0),
        (13, 13),
        (9, 0),
        (0, 0),
    ]


def test_offers_of_automatic_and_manual_requests_are_compared_in_pairs():
    def made(id_, row, text):
        return Prediction(id_, "release_replay", "python", row, score(text, "a = b", None), 0.1)

    pairs = [made("1", "whole", "a = c"), made("1", "whole_unasked", "a ="), made("2", "whole", "a = b")]
    figures = keys([*pairs, made("2", "whole_unasked", ""), made("3", "whole", "a = b")])
    assert (figures["whole_offers"], figures["whole_right"], figures["whole_right_alone"]) == (2, 1, 1)
    assert (figures["whole_unasked_right_characters"], figures["whole_unasked_offered_characters"]) == (3, 3)


def test_records_of_any_kind_are_tasks_that_can_be_scored(tmp_path):
    records = [
        {"id": "a", "language": "brainfuck", "prefix": "", "suffix": "", "reference": ""},
        {"id": "b", "language": "python", "prefix": "a = 1\r\n", "suffix": "", "reference": "b = a\r\n", "tests": None},
        LINE | {"id": "c", "source": None, "path": "../a b#c.py", "context": [{"path": "/etc/x", "text": "\r\n"}]},
        {"id": "d", "language": "go", "before": "a\r\nb\r\n", "after": "a\r\n\r\nc\u2028d\r\nb"},
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    tasks = list(file_tasks(path, Mode.AUTO))
    assert [task.id for task in tasks] == ["a", "b", "c", "d:1"]
    made = [Prediction(t.id, t.dataset, t.language, "whole", score("", t.reference, None), 0.0) for t in tasks]
    print_tables(made)
    assert keys(made)["release_replay_first_line"] == 0.0


def test_tasks_of_two_files_with_the_same_name_have_predictions_of_their_own():
    first, second = (tasks_of(LINE | {"prefix": prefix}, "humaneval")[0] for prefix in ("def f(a):\n", "def g(a):\n"))
    (other,) = tasks_of(LINE | {"id": "b"}, "humaneval")
    found = distinct([first, second, first, other])
    assert len({task.id for task in found}) == len(found) == 3
    assert [task.prefix for task in found] == [first.prefix, second.prefix, other.prefix]
    assert found[2] == other
    assert distinct([second, first])[1] == found[0]


@pytest.mark.parametrize("benchmark", [quality, suggestions, filter_harm])
def test_without_tasks_there_are_no_figures(tmp_path, monkeypatch, benchmark):
    for name in FILES.values():
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr("sys.argv", ["benchmark", "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match="The data has no task"):
        benchmark.main()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no groups of processes")
def test_what_a_program_starts_ends_with_it(tmp_path):
    note = tmp_path / "pid"
    start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    assert runs_to_its_end(f"import pathlib, subprocess, sys\npathlib.Path({str(note)!r}).write_text(str({start}.pid))")
    with suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(note.read_text()))
        while child.status() != psutil.STATUS_ZOMBIE:
            with suppress(psutil.TimeoutExpired):
                child.wait(0.1)


def test_the_median_of_an_even_number_of_times_is_between_the_two_in_the_middle(capsys):
    print_tables([Prediction(str(s), "set", "go", "whole", Score(0.0, 0.0, 0.0), s) for s in (1.0, 2.0, 3.0, 9.0)])
    assert "2.50" in capsys.readouterr().out


def test_the_last_line_has_the_figures_of_data_of_ones_own():
    scores = {"a": Score(1.0, 1.0, 1.0, 1.0), "b": Score(0.0, 0.5, 1.0, 0.0), "c": Score(0.0, 0.0, 0.0)}
    made = [Prediction(name, "mine", "go", "whole", each, 0.1) for name, each in scores.items()]
    figures = {"records": 3, "exact_match_share": 0.3333, "edit_similarity": 0.5, "first_line_share": 0.6667}
    assert by_set(made) == {"mine": {"whole": figures | {"pass_share": 0.5, "errors_added_share": None}}}
    untested = by_set([Prediction("c", "mine", "go", "infill", scores["c"], 0.1)])
    assert untested["mine"]["infill"]["pass_share"] is None
