"""Work that is usually over at once is only talked about when it is not."""

import threading

from completion.progress import told_if_slow


def test_slow_work_is_told_while_it_goes_on():
    told = threading.Event()
    with told_if_slow(lambda _sentence, _fraction: told.set(), "Compiling", 0.5, after_s=0.0):
        assert told.wait(10)


def test_quick_work_is_not_told():
    said = []
    with told_if_slow(lambda *words: said.append(words), "Compiling", 0.5, after_s=600.0):
        pass
    assert said == []
