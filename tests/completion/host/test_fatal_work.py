"""The record of documents and files on which hosts ended, as the hosts of one address write it one after the other."""

import pytest

from completion.cancellation import CancelToken
from completion.errors import DocumentRefusedError
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.fatal_work import ALONE_S, REFUSED_S, CountedEngine, FatalWork, counted
from completion.instruct import instruct_request
from completion.request import Message
from tests.completion.host.paced_engine import PacedEngine


class Hosts:
    """Hosts one after the other; time passes only when a test says so."""

    def __init__(self, path):
        self.path = path
        self.now = 1000.0
        self.blocks = []

    def start(self):
        return FatalWork(self.path, clock=lambda: self.now)

    def end_on(self, key, version, hosts=1):
        for _ in range(hosts):
            self.blocks.append(self.start().serving(key, version))
            self.blocks[-1].__enter__()  # and never leave it: the process is gone


@pytest.fixture
def hosts(tmp_path):
    return Hosts(tmp_path / "engine.fatal")


def is_served(fatal, key, version):
    try:
        with fatal.serving(key, version):
            pass
    except DocumentRefusedError:
        return False
    fatal.served(key)
    return True


def test_a_text_is_refused_after_two_hosts_ended_on_it(hosts):
    hosts.end_on("document", "text")
    assert is_served(hosts.start(), "document", "text")
    hosts.end_on("document", "text", hosts=2)
    assert not is_served(hosts.start(), "document", "text")
    assert is_served(hosts.start(), "other", "text")


def test_a_changed_text_is_served_again_after_a_while_and_then_all_is_forgotten(hosts):
    hosts.end_on("document", "text", hosts=2)
    fatal = hosts.start()
    assert not is_served(fatal, "document", "changed")
    hosts.now += REFUSED_S
    assert not is_served(fatal, "document", "text")
    assert is_served(fatal, "document", "changed")
    assert is_served(fatal, "document", "text")


def test_a_clock_that_jumps_back_does_not_refuse_a_changed_text_for_longer(hosts):
    hosts.end_on("document", "text", hosts=2)
    fatal = hosts.start()
    hosts.now -= 1e5
    assert is_served(fatal, "document", "changed")


def test_works_that_ran_together_count_together_and_then_run_one_by_one_for_a_while(hosts):
    loaded = LoadedEngine(PacedEngine(), "tiny", "cpu")
    loaded.requests.joint_requests = 8
    first = hosts.start()
    assert counted(loaded, first).joint_requests == 8
    for name in ("innocent", "ended", "fatal"):
        hosts.blocks.append(first.serving(name, "text"))
        hosts.blocks[-1].__enter__()
    hosts.blocks.pop(1).__exit__(None, None, None)
    second = hosts.start()
    assert counted(loaded, second).joint_requests == 1
    assert is_served(second, "innocent", "text")
    hosts.end_on("fatal", "text")
    third = hosts.start()
    assert [is_served(third, name, "text") for name in ("innocent", "ended", "fatal")] == [True, True, False]
    hosts.now += ALONE_S
    assert counted(loaded, third).joint_requests == 8


def test_one_document_that_is_served_twice_at_once_counts_until_both_have_ended(hosts):
    fatal = hosts.start()
    for _ in range(2):
        hosts.blocks.append(fatal.serving("document", "text"))
        hosts.blocks[-1].__enter__()
    hosts.blocks.pop().__exit__(None, None, None)
    hosts.end_on("document", "text")
    assert not is_served(hosts.start(), "document", "text")


def test_an_end_is_forgotten_after_a_day(hosts):
    hosts.end_on("document", "text", hosts=2)
    hosts.start()
    hosts.now += 100_000.0
    assert is_served(hosts.start(), "document", "text")


def test_an_idle_host_that_is_killed_and_a_failed_request_count_for_nothing(hosts):
    for _ in range(3):
        with pytest.raises(ValueError, match="failed"), hosts.start().serving("document", "text"):
            raise ValueError("failed")
    assert is_served(hosts.start(), "document", "text")


def test_a_file_that_ends_hosts_at_its_second_piece_is_left_out(hosts):
    for _ in range(2):
        fatal = hosts.start()
        with fatal.serving("file", "text"):
            pass  # its first piece is served each time
        hosts.blocks.append(fatal.serving("file", "text"))
        hosts.blocks[-1].__enter__()
    assert not is_served(hosts.start(), "file", "text")


class DoomedEngine(PacedEngine):
    """An engine that keeps the record as it is at its work: that of a host that ends there."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def complete(self, request, cancel):
        self.record = self.path.read_bytes()
        yield from super().complete(request, cancel)

    def prepare(self, request, cancel):
        self.record = self.path.read_bytes()


def conversation(question):
    return instruct_request([Message("system", "Be brief."), Message("user", question)], max_tokens=2)


def complete(engine, request):
    return list(engine.complete(request, CancelToken()))


def prepare(engine, request):
    engine.prepare(request, CancelToken())


@pytest.mark.parametrize("work", [complete, prepare])
def test_after_two_hosts_ended_on_conversations_only_these_are_refused(hosts, work):
    for question in ("one", "two"):
        engine = DoomedEngine(hosts.path)
        work(CountedEngine(engine, hosts.start()), conversation(question))
        hosts.path.write_bytes(engine.record)
    fatal = CountedEngine(PacedEngine(), hosts.start())
    hosts.now += REFUSED_S
    for question in ("one", "two"):
        with pytest.raises(DocumentRefusedError):
            complete(fatal, conversation(question))
    assert complete(fatal, conversation("another question"))[-1].done


@pytest.mark.parametrize(
    "content", [b"\0" * 50, b"[]\n", b'{"deaths": {"a": {}}}\n', b'{"serving": 5}\n', b"[" * 100_000]
)
def test_a_damaged_record_starts_anew(hosts, content):
    hosts.path.write_bytes(content)
    hosts.end_on("document", "text", hosts=2)
    assert not is_served(hosts.start(), "document", "text")


def test_a_host_that_ends_in_order_leaves_no_record_unless_it_counts_something(hosts):
    hosts.start().close()
    assert not hosts.path.exists()
    hosts.end_on("document", "text", hosts=2)
    hosts.start().close()
    assert not is_served(hosts.start(), "document", "text")


def test_a_disk_that_takes_no_more_does_not_stop_the_work(hosts, monkeypatch):
    fatal = hosts.start()

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    assert is_served(fatal, "document", "text")
