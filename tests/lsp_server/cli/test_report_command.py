"""`draftline report` with arguments that it cannot use."""

import pytest

from lsp_server.cli.main import main
from lsp_server.telemetry.schema import open_store, store_path


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


def test_a_page_that_cannot_be_written_is_named(tmp_path, capsys):
    page = tmp_path / "missing" / "page.html"
    assert main(["report", "--html", str(page)]) == 1
    assert capsys.readouterr().err.startswith(f"draftline: The page {page} cannot be written (No such file")
