"""`draftline report` with arguments that it cannot use."""

import io
import sys
import time

import pytest

from completion.request import Statistics
from lsp_server.cli.main import main
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.report_figures import day_of
from lsp_server.telemetry.store import open_store, store_path


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Make an empty store."""
    monkeypatch.setenv("DRAFTLINE_STATE_DIR", str(tmp_path))
    open_store(store_path()).close()


@pytest.mark.parametrize("days", ["0", "-1", "1e7", "inf", "nan"])
@pytest.mark.parametrize("more", [[], ["--compare", "previous"]])
def test_a_number_of_days_that_no_store_can_have_is_named(days, more, capsys):
    assert main(["report", "--days", days, *more]) == 2
    assert capsys.readouterr().err.startswith(f"draftline: --days is {float(days):g}. Give a number")


def test_the_longest_time_is_reported(capsys):
    assert main(["report", "--days", "100000", "--compare", "previous"]) == 0
    assert capsys.readouterr().out


def test_two_comparisons_at_once_are_refused(capsys):
    assert main(["report", "--compare", "previous", "--experiment"]) == 2
    assert "--compare has no effect with --experiment" in capsys.readouterr().err


def test_a_comparison_of_nothing_says_so(capsys):
    assert main(["report", "--compare", "mode=line,block"]) == 0
    assert 'no suggestion was shown with "mode=line" or "mode=block"' in capsys.readouterr().out


def test_a_comparison_of_a_value_with_itself_is_refused(capsys):
    assert main(["report", "--compare", "mode=line,line"]) == 2
    assert "whose values are the same. Give two different values." in capsys.readouterr().err


def test_without_an_experiment_the_command_says_how_to_start_one(capsys):
    assert main(["report", "--experiment"]) == 1
    assert "To start one: draftline experiment start NAME SETTING=A,B" in capsys.readouterr().err


def test_the_tables_have_whole_names_and_days_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "56")
    telemetry, at = Telemetry(store_path()), time.time()
    drafted = Statistics(accepted_by_drafter={"token_recycling": 2}, generated_tokens=6, steps=3)
    telemetry.save(SuggestionRecord("s", at, language="typescriptreact", characters=10, statistics=drafted))
    telemetry.shown("s")
    telemetry.close()
    assert main(["report"]) == 0
    printed = capsys.readouterr().out
    for name in ("typescriptreact", "token_recycling", day_of(at)):
        assert f" {name} " in printed


def test_a_page_that_cannot_be_written_is_named(tmp_path, capsys):
    page = tmp_path / "missing" / "page.html"
    assert main(["report", "--html", str(page)]) == 1
    assert capsys.readouterr().err.startswith(f"draftline: The page {page} cannot be written (No such file")


@pytest.mark.parametrize(
    "command",
    [["report"], ["telemetry", "export"], ["experiment", "status"], ["experiment", "start", "b", "mode=line,block"]],
)
def test_a_damaged_store_is_named_with_what_to_do(command, capsys):
    telemetry = Telemetry(store_path())
    for number in range(300):
        telemetry.save(SuggestionRecord(f"s{number}", time.time(), model="model" * 20))
    telemetry.close()
    if command[1:] == ["status"]:
        assert main(["experiment", "start", "a", "mode=line,block"]) == 0
    with store_path().open("r+b") as file:
        file.seek(8 * 4096)  # after the pages of the tables' definitions
        file.write(b"x" * 20 * 4096)
    assert main(command) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"draftline: The telemetry store {store_path()} cannot be used (database disk image")
    assert printed.endswith("To delete it, run: draftline telemetry clear\n")


def test_tables_that_leave_rows_out_have_the_most_used_languages_and_the_last_days_and_say_so(capsys):
    telemetry, now = Telemetry(store_path()), time.time()
    for number in range(26):
        for again in range(1 + (number < 3)):
            id_ = f"{number}.{again}"
            telemetry.save(SuggestionRecord(id_, now - 86_400 * number, language=f"language{number}", characters=10))
            telemetry.shown(id_)
    telemetry.close()
    assert main(["report"]) == 0
    printed = capsys.readouterr().out
    assert "By language, 10 of 26" in printed
    for number in range(3):
        assert f" language{number} " in printed
    assert "By day, 10 of 26" in printed
    assert day_of(now) in printed.partition("By day")[2]
    assert day_of(now - 86_400 * 20) not in printed.partition("By day")[2]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_report_goes_to_a_file_of_any_encoding(encoding, monkeypatch):
    telemetry = Telemetry(store_path())
    telemetry.save(SuggestionRecord("s", time.time(), language="python", characters=10))
    telemetry.accepted("s", 10, whole=True)
    telemetry.close()
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", file)
    assert main(["report"]) == 0
    file.flush()
    assert "#" * 19 in file.buffer.getvalue().decode(encoding)
