"""Progress of work that is usually quick is reported only if it is slow."""

import threading

from completion.progress import report_if_slow


def test_slow_work_is_reported_while_it_runs():
    reported = threading.Event()
    with report_if_slow(lambda _sentence, _fraction: reported.set(), "Compiling", 0.5, after_s=0.0):
        assert reported.wait(10)


def test_quick_work_is_not_reported():
    reports = []
    with report_if_slow(lambda *report: reports.append(report), "Compiling", 0.5, after_s=600.0):
        pass
    assert reports == []
