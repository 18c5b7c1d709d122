"""The report: figures of a known store, confidence intervals, and the page in a real browser without a network."""

import json
import shutil
import time
from dataclasses import replace

import pytest

from benchmarks.telemetry import SAMPLES_UNTIL, fill, make_samples
from completion.request import Statistics
from lsp_server.cli.main import main
from lsp_server.cli.report.page import render_page
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.report_comparison import compare, winner_sentence
from lsp_server.telemetry.report_data import read_report, variants_with
from lsp_server.telemetry.report_figures import Estimate, Selection, difference, median, quantile, share
from lsp_server.telemetry.store import open_store, store_path

NOW = 1_700_000_000.0


@pytest.fixture
def truth(tmp_path):
    """A store of ten suggestions: six shown, of which three accepted and one partly; two filtered, two superseded."""
    telemetry = Telemetry(tmp_path / "t.sqlite3", lambda: NOW)
    for number in range(10):
        reason, detail = {6: ("filtered", "repeats_suffix"), 7: ("filtered", "repeats_suffix"), 8: ("superseded", ""),
                          9: ("superseded", "")}.get(number, ("", ""))  # fmt: skip
        telemetry.save(
            SuggestionRecord(
                f"s{number}", NOW - number, language="python" if number % 2 else "go", characters=10, reason=reason,
                detail=detail, answer_ms=100.0 * (number + 1), variant="mode=line" if number < 3 else "",
                statistics=Statistics(accepted_by_drafter={"lookup": 2} if number < 2 else {}, generated_tokens=6,
                                      steps=3),
            )
        )  # fmt: skip
        if number < 6:
            telemetry.shown(f"s{number}")
    for number in range(3):
        telemetry.accepted(f"s{number}", 10, whole=True)
        telemetry.persisted(f"s{number}", 30, [1.0, 0.5, 0.0][number], [10, 5, 0][number])
    telemetry.accepted("s3", 4, whole=False)
    telemetry.rejected("s4", "dismissed")
    telemetry.refused("go", "deleting")
    telemetry.written("go", 68)
    telemetry.close()
    store = open_store(tmp_path / "t.sqlite3")
    yield store
    store.close()


def whole(store, **options):
    return read_report(store, Selection(NOW - 100, NOW + 1, **options))


def test_the_report_counts_what_each_quiet_control_kept_away(tmp_path, capsys):
    telemetry = Telemetry(tmp_path / "t.sqlite3", lambda: NOW)
    for reason in ("manual", "manual", "file_off", "deleting"):
        telemetry.refused("python", reason)
    ends = [("in_comment", ""), ("typing", ""), ("", "max_lines"), ("typing", "max_lines"), ("filtered", "max_lines")]
    for number, (reason, stop_reason) in enumerate(ends):
        telemetry.save(SuggestionRecord(f"q{number}", NOW, reason=reason, stop_reason=stop_reason))
    telemetry.save(SuggestionRecord("q1", NOW))  # it appeared after the pause
    telemetry.close()
    store = open_store(tmp_path / "t.sqlite3")
    report = whole(store)
    store.close()
    assert report.quiet == {
        "trigger = manual": 2, "off for the file": 1, "in_comments = false": 1, "show_after_ms": 1,
        "automatic_lines (shortened)": 1,
    }  # fmt: skip
    assert '<tr><td>trigger = manual</td><td class="n">2</td></tr>' in render_page(["now"], [report])
    assert "quiet controls" not in render_page(["now"], [replace(report, quiet={})])


def test_the_report_has_the_figures_of_the_store(truth):
    report = whole(truth)
    assert (report.offered, report.shown, report.accepted) == (6, 6, 4)
    assert (report.shown_characters, report.accepted_characters, report.written_characters) == (60, 34, 68)
    assert report.written_share == 0.5
    assert report.outcomes == {"accepted": 3, "partly": 1, "dismissed": 1}
    assert report.reasons == {"filtered: repeats_suffix": 2, "superseded": 2, "deleting": 1}
    assert (report.remaining[0].after_s, report.remaining[0].share.value, report.remaining[0].characters) == (
        30,
        0.5,
        15,
    )
    assert report.remaining[1].share.count == 0
    assert {(group.name, group.shown, group.accepted) for group in report.groups["language"]} == {
        ("go", 3, 2), ("python", 3, 2)
    }  # fmt: skip
    assert [(group.name, group.shown) for group in report.groups["length"]] == [("10 to 29", 6)]
    assert {group.name: group.accepted for group in report.groups["drafter"]} == {"lookup": 2, "none": 2}
    assert report.latency["answer_ms"][0] == 350.0
    assert report.tokens["generated_tokens"] == 60
    assert report.drafters == {"lookup": 4}


def test_a_report_covers_only_its_time_span_and_variants(truth):
    assert whole(truth, variants=("mode=line",)).shown == 3
    assert read_report(truth, Selection(NOW - 2.5, NOW + 1)).shown == 3
    assert read_report(truth, Selection(0, 1)).acceptance == Estimate(0.0, 0.0, 1.0, 0)
    assert variants_with(truth, "mode", "line", default="auto") == ("mode=line",)
    assert variants_with(truth, "mode", "auto", default="auto") == ("",)


def test_the_interval_of_a_share_is_wilsons_as_published():
    estimate = share(8, 10)
    assert (round(estimate.low, 3), round(estimate.high, 3)) == (0.490, 0.943)
    assert share(0, 20).low == 0.0
    assert share(20, 20).high == 1.0


def test_the_interval_of_a_difference_is_newcombes_as_published():
    """For 56 of 70 against 48 of 80, method 10 of the paper gives 0.0524 to 0.3339."""
    found = difference(share(48, 80), share(56, 70))
    assert (round(found.low, 4), round(found.high, 4)) == (0.0524, 0.3339)


def test_quantiles_are_interpolated_and_the_interval_of_a_median_contains_it():
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([], 0.5) == 0.0
    estimate = median([float(number) for number in range(101)])
    assert estimate.value == 50.0
    assert estimate.low < 45 < 55 < estimate.high
    assert difference(estimate, estimate).value == 0.0


def test_a_difference_that_chance_may_explain_is_no_clear_difference(truth):
    report = whole(truth)
    assert {row.verdict for row in compare(report, report)} == {"no clear difference"}


def test_a_side_without_records_has_no_difference_and_is_named(truth):
    before, after = read_report(truth, Selection(NOW - 300, NOW - 200)), whole(truth)
    rows = compare(before, after)
    assert {(row.difference, row.verdict) for row in rows} == {(None, "nothing to compare")}
    names = ("last month", "this month")
    assert winner_sentence(names, rows) == 'There is nothing to compare: no suggestion was shown with "last month".'
    none = winner_sentence(names, compare(before, before))
    assert none.endswith('no suggestion was shown with "last month" or "this month".')
    page = render_page(names, [before, after])
    assert '<td class="n">–</td><td class="n">67' in page.replace("66.7", "67")


def test_a_clear_difference_is_better_or_worse(tmp_path):
    telemetry = Telemetry(tmp_path / "t.sqlite3", lambda: NOW)
    for number in range(400):
        old = number < 200
        taken = number % 10 < (2 if old else 6)
        at = NOW - (50 if old else 1)
        telemetry.save(
            SuggestionRecord(f"s{number}", at, characters=9, answer_ms=(300.0 if old else 500.0) + number % 7)
        )
        telemetry.shown(f"s{number}")
        if taken:
            telemetry.accepted(f"s{number}", 9, whole=True)
    telemetry.close()
    store = open_store(tmp_path / "t.sqlite3")
    before, after = read_report(store, Selection(NOW - 60, NOW - 40)), read_report(store, Selection(NOW - 40, NOW + 1))
    store.close()
    verdicts = {row.name: row.verdict for row in compare(before, after)}
    assert verdicts["accepted of shown"] == "better"
    assert verdicts["median time to the whole answer"] == "worse"


@pytest.fixture
def sample_store(runtime):
    """Fill the store with suggestions of the last month."""
    telemetry = Telemetry(store_path())
    shift_s = time.time() - SAMPLES_UNTIL
    fill(telemetry, [replace(sample, at=sample.at + shift_s) for sample in make_samples(2000)])
    telemetry.written("python", 60_000)
    telemetry.close()


def test_the_commands_report_compare_export_and_clear(sample_store, capsys, tmp_path):
    days = "--days=100000"
    assert main(["report", days]) == 0
    assert "Latency" in capsys.readouterr().out
    assert main(["report", days, "--compare", "previous"]) == 0
    assert "difference" in capsys.readouterr().out
    assert main(["report", days, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["offered"] > 100
    assert main(["report", days, "--json", "--html", str(tmp_path / "page.html")]) == 0
    assert json.loads(capsys.readouterr().out)["offered"] > 100
    assert main(["report", days, "--compare", "mode=auto,line", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]
    assert main(["report", "--compare", "mood=a,b"]) == 2
    assert main(["telemetry", "export"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert {line["table"] for line in lines} == {"suggestions", "persistence", "written"}
    assert main(["telemetry", "clear"]) == 0
    assert capsys.readouterr().out == f"Deleted {store_path()}\n"
    assert main(["telemetry", "clear"]) == 0
    assert capsys.readouterr().out == f"No telemetry is recorded: {store_path()} does not exist.\n"
    assert not store_path().exists()
    assert main(["report"]) == 1


def test_the_page_shows_its_plots_in_a_browser_without_a_network(sample_store, tmp_path, images):
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    page_path = tmp_path / "report.html"
    assert main(["report", "--html", str(page_path)]) == 0
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_context(offline=True, viewport={"width": 1140, "height": 1400}).new_page()
        page.set_default_timeout(90_000)  # the plots' script takes long on two busy cores
        requested, failed = [], []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(page_path.as_uri())
        page.wait_for_selector(".plotly-graph-div .bars path")
        plots = page.locator(".plotly-graph-div:has(.bars path)").count()
        page.screenshot(path=images / "report.png")
        browser.close()
    assert plots == 7
    assert not failed
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []


def test_the_page_escapes_what_it_shows(truth):
    page = render_page(["<script>alert(1)</script>"], [whole(truth)])
    assert "<script>alert(1)</script>" not in page
