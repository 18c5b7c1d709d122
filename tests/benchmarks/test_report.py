"""The report: README and docs show the figures of one file, and a benchmark that fails stops no other one."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.report import __main__ as report
from benchmarks.report.machine import ROOT, machine
from benchmarks.report.pages import FIGURES, PAGES, figure, regions, render
from benchmarks.report.running import run_all, run_one
from benchmarks.report.runs import BY_NAME, RUNS, Run, Size
from benchmarks.report.tables import README, TABLES

SHIPPED = report.read(FIGURES)
OPTION = re.compile(r"--[a-z][a-z-]*")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_the_figures_of_the_file(page: Path):
    text = page.read_text(encoding="utf-8")
    assert render(text, SHIPPED) == text, "run: python -m benchmarks.report --from docs/figures.json"


def test_each_table_is_on_one_page():
    shown = [name for page in PAGES for name in regions(page.read_text(encoding="utf-8"))]
    assert sorted(name for name in shown if name != "age") == sorted(TABLES)


def test_each_row_names_a_run():
    assert {row.run for table in TABLES.values() for row in table.rows} <= BY_NAME.keys()


def test_the_readme_has_five_numbers_with_the_commands_that_print_them():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(README.rows) == 5
    for row in README.rows:
        shown = row.shape.format(figure(SHIPPED, row.keys[0])).replace("%", " %")
        line = next(line for line in text.splitlines() if f"| {shown} |" in line)
        assert f"`python -m benchmarks.{BY_NAME[row.run].module}`" in line


def test_a_page_changes_with_the_file():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    other = json.loads(json.dumps(SHIPPED))
    other["runs"]["typing"]["figures"]["first_text_p50_ms"] = 123456
    assert "123456 ms" in render(text, other)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_run_has_options_that_its_benchmark_declares(run: Run):
    single, folder = ROOT / "benchmarks" / f"{run.module}.py", ROOT / "benchmarks" / run.module
    sources = "".join(
        path.read_text(encoding="utf-8") for path in ([single] if single.exists() else folder.glob("*.py"))
    )
    words = {word for size in (run.short, run.long) if size for word in OPTION.findall(size.arguments)}
    assert {word for word in words if f'"{word}"' not in sources} == set()


def test_the_short_form_takes_less_than_forty_minutes():
    assert sum(run.short.minutes for run in RUNS if run.short) < 40


def test_a_run_that_fails_is_named_and_the_next_one_runs(tmp_path, capsys):
    broken = Run("broken", "of_no_such_name", None, Size("", 0.1))
    found = dict(run_all([("broken", broken), ("debounce", BY_NAME["debounce"])], "long", tmp_path))
    assert found["broken"]["failed"] == "It ended with status 1, without figures."
    assert found["debounce"]["figures"]["answers_kept"] > 0
    assert "python -m benchmarks.debounce; about" in capsys.readouterr().out


@pytest.mark.parametrize("code", ["print('no object')", "print([1])", "pass", "print('{}'); raise SystemExit(1)"])
def test_what_prints_no_object_has_no_figures(code: str, tmp_path):
    assert run_one(["-c", code], tmp_path, 60).keys() == {"failed"}


def test_a_run_that_does_not_end_is_ended(tmp_path):
    assert "was ended after" in run_one(["-c", "import threading; threading.Event().wait()"], tmp_path, 0.5)["failed"]


def test_predictions_are_handed_on(tmp_path):
    code = "import json, sys; print(json.dumps({'path': sys.argv[1]}))"
    assert run_one(["-c", code, "PREDICTIONS"], tmp_path, 60)["figures"]["path"] == str(tmp_path / "predictions.jsonl")


def test_the_file_names_no_folder_and_no_host():
    shown = json.dumps([SHIPPED, machine()])
    assert not re.search(r'"(?:/|~|[A-Z]:\\)', shown)
    assert not re.search(r"/(?:root|home|tmp|work|Users)\b", shown)


def test_a_part_of_another_commit_is_not_mixed_in(tmp_path):
    other = tmp_path / "figures.json"
    other.write_text(json.dumps(SHIPPED | {"commit": "another"}), encoding="utf-8")
    with pytest.raises(SystemExit, match="figures of another"):
        report.measure(report.options(["--only", "debounce", "--out", str(other)]))


@pytest.mark.parametrize("text", ["", "[]", '{"runs": {}}'])
def test_another_file_is_refused_with_a_sentence(text: str, tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"python -m benchmarks\.report"):
        report.read(path)


def test_a_share_is_a_percentage_and_a_count_is_none():
    harm = {"command": "c", "figures": {"references": 5293, "changed_share": 0}}
    shown = render("<!-- figures: filters -->\n<!-- end of figures -->", {"runs": {"filter_harm": harm}})
    assert "| right answers | 5,293 |" in shown
    assert "| of them changed by a filter | 0.00 % |" in shown


def test_a_figure_that_the_report_lacks_has_no_row():
    quality = {"sets": {"single_line": {"whole": {"records": 60, "pass_share": 0.75}, "infill": {"pass_share": None}}}}
    runs = {"quality_tests": {"command": "c", "figures": quality}}
    rows = render("<!-- figures: quality -->\n<!-- end of figures -->", {"runs": runs}).splitlines()[5:-1]
    assert rows == ["| HumanEval, single lines: pass their tests, of 60 | 75.0 % | – |"]


def test_a_table_of_another_form_is_a_sentence_with_its_command():
    shown = render("<!-- figures: soak -->\n<!-- end of figures -->", {"runs": {}})
    assert "`python -m benchmarks.soak` is not part of this report." in shown
    failed = {"soak": {"command": "python -m benchmarks.soak", "failed": "It ended with status 1, without figures."}}
    shown = render("<!-- figures: soak -->\n<!-- end of figures -->", {"runs": failed})
    assert "`python -m benchmarks.soak` gave no figures." in shown
