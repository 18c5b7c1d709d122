"""The benchmark of next edits: its division of the data, scenarios in folders, and random edits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data import read_file
from benchmarks.next_edit import __main__ as next_edit
from benchmarks.next_edit.__main__ import spread
from benchmarks.next_edit.choosing import (
    THRESHOLDS,
    Way,
    by_rules,
    chosen_thresholds,
    constant,
    crossed,
    errors_by_kind,
    ranking,
    report,
    resampled,
)
from benchmarks.next_edit.replay import Outcome, states
from benchmarks.next_edit.scenarios import history_edits, scenarios
from benchmarks.next_edit.staleness import run
from benchmarks.next_edit.training import FOLDS, Row, folds, half
from completion.edits import LineEdit
from completion.next_edit.edited_nodes import ChangeSyntax
from completion.next_edit.proposals import Proposal
from completion.next_edit.rewrites import Candidate

USES = "\nx = {0}.open(1)\nprint(x)\ny = {0}.read(x)\n"
BUFFER = "import zstandard\n" + USES.format("zstd")
HISTORY = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-import zstd\n+import zstandard\n \n"


def record(package: str, path: str = "a.py") -> dict[str, str]:
    """Return a release replay in which a name is renamed in three lines."""
    before, after = (f"import {name}\n{USES.format(name)}" for name in ("zstd", "zstandard"))
    source = f"{package}==1.0"
    return {"id": source, "source": source, "language": "python", "path": path, "before": before, "after": after}


def row(state, name: str = "zstandard") -> Row:
    """Return the proposal of a new name for the first line that still has the old one."""
    line = next((number for number, text in enumerate(state.lines) if "zstd." in text), 2)
    old = state.lines[line]
    candidate = Candidate(line, (old,), (old.replace("zstd.", f"{name}."),), frozenset({"name"}), 0)
    return Row(
        state,
        Proposal(candidate, ChangeSyntax(), 0, state.edits[0], frozenset()),
        state.outcome(candidate),
        is_first=True,
    )


def test_each_row_is_tested_once_by_a_gate_without_its_package():
    rows = [row(state) for number in range(20) for state in states(record(f"package{number}"))]
    parts = list(folds(rows))
    assert len(parts) == FOLDS
    assert sorted(id(each) for _, testing in parts for each in testing) == sorted(map(id, rows))
    for training, testing in parts:
        packages = ({each.state.package for each in part} for part in (training, testing))
        assert set.isdisjoint(*packages)


def test_the_report_counts_right_edits_covered_changes_and_silence():
    replay = list(states(record("p")))
    rows = [row(state) for state in replay[:-1]]
    assert [each.outcome for each in rows] == [Outcome.EXACT, Outcome.EXACT]
    figures = report([replay], rows, Way(constant(1.0), constant(0.5)))
    assert (figures["shown"], figures["precision_exact"], figures["quiet_rate"]) == (2, 1.0, 1.0)
    assert figures["coverage_exact"] == 1.0
    silent = report([replay], rows, Way(constant(0.0), constant(0.5)))
    assert (silent["shown"], silent["coverage_exact"], silent["quiet_rate"]) == (0, 0.0, 1.0)
    assert silent["precision_exact"] is None


def test_a_figure_without_data_is_none():
    replay = list(states(record("p")))[:1]
    rows, way = [row(state) for state in replay], Way(constant(1.0), constant(0.5))
    assert report([replay], rows, way)["quiet_rate"] is None
    assert resampled([replay], [], way)["precision_exact_90"] is None
    found = ranking(rows, {"rules_gate": way}, "rules_gate")
    assert (found["judge_auc"], found["rules_auc"], found["judged"]) == (None, None, 0)


def test_lines_that_become_others_are_not_deleted():
    state = next(states(record("p")))
    gone = Candidate(2, (state.lines[2],), (), frozenset({"analogy"}), 0)
    assert state.outcome(gone) is Outcome.PLACE
    shorter = {**record("p"), "after": "import zstandard\n" + USES.replace("x = {0}.open(1)\n", "").format("zstd")}
    assert next(states(shorter)).outcome(gone) is Outcome.EXACT


def test_errors_are_counted_by_what_became_of_their_lines_and_by_rule():
    replay = list(states(record("p")))
    rows = [row(replay[0], "zlib"), row(replay[-1])]
    assert errors_by_kind([replay], rows, Way(constant(1.0), constant(0.5))) == {"place: name": 1, "wrong: name": 1}
    assert errors_by_kind([replay], [row(replay[0])], Way(constant(1.0), constant(0.5))) == {}


def test_the_spread_of_a_figure_is_that_of_samples_of_the_packages():
    replays = [list(states(record(package))) for package in ("p", "q")]
    right, wrong = row(replays[0][0]), row(replays[1][0], "zlib")
    spread = resampled(replays, [right, wrong], Way(constant(1.0), constant(0.5)))
    assert spread["precision_exact_90"] == [0.0, 1.0]


def test_a_scenario_is_a_state_with_what_is_expected_later(tmp_path):
    folder = tmp_path / "rename"
    folder.mkdir()
    (folder / "buffer.py").write_text(BUFFER)
    (folder / "history.diff").write_text(HISTORY)
    (folder / "expected.py").write_text("import zstandard\n" + USES.format("zstandard"))
    ((state,),) = scenarios(tmp_path)
    assert state.language == "python"
    assert state.edits == (LineEdit(0, ("import zstd",), ("import zstandard",)),)
    expected = [(2, 3, ("x = zstandard.open(1)",)), (4, 5, ("y = zstandard.read(x)",))]
    assert [(later.start, later.end, later.new) for later in state.later] == expected
    (folder / "buffer.py").write_text("import json\n")
    with pytest.raises(SystemExit, match=r"the buffer has other lines at 1 than history\.diff"):
        scenarios(tmp_path)
    with pytest.raises(SystemExit, match="has no scenarios"):
        scenarios(folder)


def test_the_hunks_of_a_history_name_lines_of_the_buffer():
    diff = ["@@ -7,2 +7,3 @@", " def f():", "+    log()", "     pass", "@@ -3,1 +2,0 @@", "-import os"]
    assert list(history_edits(diff)) == [LineEdit(7, (), ("    log()",)), LineEdit(2, ("import os",), ())]


def test_removed_comments_of_two_hyphens_are_no_headers():
    diff = ["--- a/a.lua", "+++ b/a.lua", "@@ -1,2 +1,1 @@", "--- gone", " local x", "--- a/b.lua", "+++ b/b.lua"]
    diff += ["@@ -4,1 +3,1 @@", "--- old", "+++ new"]
    assert list(history_edits(diff)) == [LineEdit(0, ("-- gone",), ()), LineEdit(2, ("-- old",), ("++ new",))]


def test_random_edits_never_meet_an_edit_for_another_text():
    text = "import zstd\n" + "".join(f"value_{number} = zstd.open({number})\n\n" for number in range(12))
    counts = run([{**record("p"), "before": text}], edits=600, seed=1)
    assert counts["wrong_text"] == 0
    assert counts["same_text"] == counts["pauses"], "the server has the text of the client"
    assert counts["applied"] > 20
    assert counts["dropped"] > 0


def test_one_package_cannot_train_and_test_a_gate():
    rows = [row(state) for state in states(record("p"))]
    with pytest.raises(SystemExit, match="--shipped"):
        crossed(rows, by_rules, constant(0.5))
    assert resampled([], [], Way(constant(1.0), constant(0.0))) == {
        "precision_exact_90": None,
        "coverage_exact_90": None,
    }


def test_packages_of_one_part_show_nothing_because_no_threshold_can_be_chosen():
    packages = [
        next(name for name in map(str, range(99)) if half(row(next(states(record(name))))) == own) for own in (0, 1)
    ]
    replays = [list(states(record(name))) for name in packages]
    rows = [row(state) for replay in replays for state in replay]
    assert chosen_thresholds(replays, rows) == (THRESHOLDS[-1], THRESHOLDS[-1])


def test_a_record_without_a_source_is_of_the_package_that_its_name_begins_with(tmp_path):
    path = tmp_path / "data.jsonl"
    changed = record("p")
    path.write_text(
        json.dumps({"id": "p==1.0:a.py"} | {name: changed[name] for name in ("language", "before", "after")})
    )
    assert {state.package for each in read_file(path) for state in states(each)} == {"p"}


def test_times_are_measured_in_as_many_files_as_were_given():
    records = [{"id": number} for number in range(152)]
    for count in (1, 40, 64, 152):
        assert len(spread(records, count)) == count
    assert spread(records, 200) == records
    assert spread([], 40) == []


def test_without_changes_of_files_there_are_no_figures(tmp_path, monkeypatch):
    (tmp_path / next_edit.FILE).write_text("")
    monkeypatch.setattr("sys.argv", ["next_edit", "--model", "none", "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match="no changes"):
        next_edit.main()
    with pytest.raises(SystemExit, match="no files"):
        run([], 10, 1)


def test_the_script_that_makes_the_gates_data_runs_the_maker_with_our_packages_or_says_what_it_lacks(tmp_path):
    script = [sys.executable, Path(__file__).parents[2] / "scripts" / "make_gate_data.py"]
    maker = tmp_path / "maker.py"
    maker.write_text(
        "import sys\nREPLAYS, replays = {}, None\ndef main():\n    print(sorted(PACKAGES), sys.argv[1:])\n"
    )
    done = subprocess.run([*script, maker, "folder"], capture_output=True, text=True, check=True)
    assert done.stdout == "['Apache-2.0', 'BSD', 'MIT'] ['folder']\n"
    for arguments, words in (([], "MAKER, FOLDER"), ([tmp_path / "none", "folder"], "none is no Python file")):
        done = subprocess.run([*script, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert words in done.stderr
