"""The telemetry store: its content, salted documents, several writers, locks, migration and size limit."""

import multiprocessing
import os
import queue
import signal
import sqlite3

import pytest

from completion.errors import StorageError
from completion.request import Statistics
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.store import MIGRATIONS, clear, open_store
from lsp_server.telemetry.writer import StoreWriter, shrink

NOW = 1_700_000_000.0


@pytest.fixture
def store(tmp_path):
    return tmp_path / "telemetry.sqlite3"


@pytest.fixture
def telemetry(store):
    telemetry = Telemetry(store, lambda: NOW)
    yield telemetry
    telemetry.close()


def rows(store, query, *values):
    connection = open_store(store)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def record(id_, at=NOW, **fields):
    return SuggestionRecord(id_, at, language="python", **fields)


def test_a_suggestion_is_recorded_with_its_outcome_and_its_remains(store, telemetry):
    telemetry.save(record("a", characters=12, statistics=Statistics(accepted_by_drafter={"prompt_lookup": 3})))
    telemetry.shown("a")
    telemetry.accepted("a", 5, whole=False)
    telemetry.rejected("a", "typedOver")
    telemetry.accepted("a", 12, whole=True)
    telemetry.persisted("a", 30, 0.5, 6)
    assert telemetry.flush()
    assert rows(store, "SELECT shown, outcome, accepted_characters, accepted_by_drafter FROM suggestions") == [
        (1, "accepted", 12, '{"prompt_lookup": 3}')
    ]
    assert rows(store, "SELECT * FROM persistence") == [("a", 30, 0.5, 6)]


def test_events_after_a_clear_by_another_process_go_into_a_new_store(store, telemetry):
    telemetry.save(record("before"))
    assert telemetry.flush()
    clear(store)
    telemetry.save(record("after"))
    assert telemetry.flush()
    assert rows(store, "SELECT id FROM suggestions") == [("after",)]


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_only_the_user_can_read_the_store_and_the_files_beside_it(store, telemetry):
    before = os.umask(0o022)
    try:
        for id_ in ("first", "second"):
            telemetry.save(record(id_))
            assert telemetry.flush()
            assert {file.name: file.stat().st_mode & 0o777 for file in store.parent.iterdir()} == {
                f"{store.name}{suffix}": 0o600 for suffix in ("", "-wal", "-shm")
            }
            for file in store.parent.iterdir():
                file.chmod(0o644)  # as earlier versions left them
            open_store(store).close()
    finally:
        os.umask(before)


def test_a_later_answer_of_the_same_completion_updates_its_row_and_keeps_the_outcome(store, telemetry):
    telemetry.save(record("a", characters=1))
    telemetry.accepted("a", 1, whole=True)
    telemetry.save(record("a", at=NOW + 5, characters=9, reason="superseded"))
    assert telemetry.flush()
    assert rows(store, "SELECT at, characters, outcome FROM suggestions") == [(NOW, 9, "accepted")]


def test_a_flush_just_as_the_queue_is_emptied_is_written_with_the_next_batch_without_waiting(store):
    telemetry = Telemetry(store, lambda: NOW)
    telemetry.close()  # its thread has ended, and the test takes its place

    class Queue(queue.SimpleQueue):
        def get_nowait(self):
            if self.empty():
                telemetry._write_now.set()  # as `flush` does after it has queued its event
            return super().get_nowait()

    telemetry._queue = Queue()
    telemetry.shown("a")
    telemetry._next_batch()
    assert telemetry._write_now.is_set()


def test_a_partly_accepted_suggestion_stays_so_when_its_remainder_is_rejected(store, telemetry):
    telemetry.save(record("a"))
    telemetry.accepted("a", 3, whole=False)
    telemetry.rejected("a", "dismissed")
    assert telemetry.flush()
    assert rows(store, "SELECT outcome, accepted_characters FROM suggestions") == [("partly", 3)]


def test_refusals_and_written_characters_are_sums(store, telemetry):
    for _ in range(3):
        telemetry.refused("python", "deleting")
        telemetry.written("python", 4)
    assert telemetry.flush()
    assert rows(store, "SELECT * FROM refusals") == [(int(NOW // 3600), "python", "deleting", 3)]
    assert rows(store, "SELECT characters FROM written") == [(12,)]


def test_documents_are_salted_hashes_that_differ_between_stores(tmp_path):
    keys = set()
    for name in ("one", "two"):
        telemetry = Telemetry(tmp_path / name)
        telemetry.save(record("1", document="file:///a.py"))
        telemetry.save(record("2", document="file:///a.py"))
        telemetry.close()
        ((key,),) = rows(tmp_path / name, "SELECT DISTINCT document FROM suggestions")
        keys.add(key)
    assert len(keys) == 2
    assert not any("a.py" in key for key in keys)


def test_an_older_store_is_migrated_and_keeps_its_rows(store):
    connection = sqlite3.connect(store)
    connection.executescript(MIGRATIONS[0])
    connection.execute("PRAGMA user_version = 1")
    connection.execute("INSERT INTO persistence VALUES ('old', 30, 1.0, 5)")
    connection.commit()
    connection.close()
    telemetry = Telemetry(store, lambda: NOW)
    telemetry.refused("python", "disabled")
    telemetry.close()
    assert rows(store, "SELECT suggestion FROM persistence") == [("old",)]
    assert rows(store, "SELECT requests FROM refusals") == [(1,)]


def test_a_newer_store_is_refused_with_what_to_do_and_a_damaged_one_is_set_aside(store, caplog):
    connection = sqlite3.connect(store)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    telemetry = Telemetry(store)
    for _ in range(3):
        telemetry.shown("a")
        assert telemetry.flush()
    assert len(caplog.messages) == 1
    assert "newer draftline" in caplog.text
    store.write_bytes(b"not a database" * 100)
    telemetry.written("python", 3)
    telemetry.close()
    assert rows(store, "SELECT characters FROM written") == [(3,)]
    clear(store)
    assert not [*store.parent.glob(f"{store.name}*")]


@pytest.fixture
def lock(store):
    """A transaction of another connection that does not end."""
    connection = open_store(store)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


@pytest.mark.usefixtures("lock")
def test_a_command_does_not_advise_to_delete_a_store_that_another_program_has_locked(store):
    with pytest.raises(StorageError, match=r"Another program has it open: close that program, or try again\.$"):
        open_store(store, timeout_s=0.01)


def test_a_locked_store_does_not_delay_the_start_and_gets_its_events_once_unlocked(store, lock):
    telemetry = Telemetry(store)
    telemetry.save(record("a"))
    assert not telemetry.flush(0)
    lock.execute("ROLLBACK")
    telemetry.shown("a")
    assert telemetry.flush()
    assert rows(store, "SELECT id, shown FROM suggestions") == [("a", 1)]
    telemetry.close()


def test_closing_makes_one_attempt_at_a_locked_store_and_logs_the_lost_events(store, lock, caplog):
    telemetry = Telemetry(store)
    telemetry.save(record("a"))
    telemetry.close()
    assert not telemetry._thread.is_alive()
    assert caplog.messages == [f"1 telemetry events are lost: another process locks {store}."]


def test_a_lock_while_the_store_shrinks_neither_ends_the_writer_nor_repeats_its_writes(store):
    writer = StoreWriter(store, size_limit_bytes=1)
    one = (
        "INSERT INTO refusals VALUES (1, 'python', 'disabled', 1) ON CONFLICT DO UPDATE SET requests = requests + 1",
        (),
    )
    assert writer.write([one]) == 1
    other = sqlite3.connect(store, isolation_level=None)

    def lock_before_shrinking(statement):
        if "page_count" in statement:
            other.execute("BEGIN IMMEDIATE")

    writer._connection.set_trace_callback(lock_before_shrinking)
    assert writer.write([one] * 5001) == 5001
    assert other.in_transaction
    other.close()
    writer._connection.set_trace_callback(None)
    assert writer.write([one]) == 1
    writer.close()
    assert rows(store, "SELECT requests FROM refusals") == [(5003,)]


@pytest.mark.parametrize("value", ["lone \udce9", 1 << 70], ids=["no UTF-8", "no 64-bit number"])
def test_a_value_that_the_store_cannot_hold_does_not_end_the_writer(store, telemetry, value):
    telemetry.refused(value, "") if isinstance(value, str) else telemetry.written("python", value)
    assert telemetry.flush()
    telemetry.save(record("a"))
    assert telemetry.flush()
    assert rows(store, "SELECT id FROM suggestions") == [("a",)]


def test_the_oldest_rows_of_a_store_over_its_limit_are_deleted(store, telemetry):
    for number in range(2000):
        telemetry.save(record(f"id{number}", at=NOW + number))
    telemetry.persisted("id0", 30, 1.0, 1)
    assert telemetry.flush()
    connection = open_store(store)
    shrink(connection, limit_bytes=10_000_000)
    assert connection.execute("SELECT count(*) FROM suggestions").fetchone() == (2000,)
    shrink(connection, limit_bytes=10_000)
    assert connection.execute("SELECT count(*), min(at) FROM suggestions").fetchone() == (1600, NOW + 400)
    assert connection.execute("SELECT count(*) FROM persistence").fetchone() == (0,)
    connection.close()


def test_sessions_of_few_events_keep_the_store_under_its_limit(store):
    for number in range(100):
        writer = Telemetry(store, size_limit_bytes=150_000)
        for each in range(10):
            writer.save(record(f"{number}.{each}", at=NOW + number, model="m" * 1000))
        writer.close()
    assert store.stat().st_size < 300_000
    assert rows(store, "SELECT count(*) FROM suggestions WHERE id LIKE '99.%'") == [(10,)]


def test_clear_deletes_everything(store):
    telemetry = Telemetry(store)
    telemetry.save(record("a"))
    telemetry.close()
    clear(store)
    assert list(store.parent.iterdir()) == []


def _write_forever(path, committed):
    telemetry = Telemetry(path, on_committed=committed.send)
    number = 0
    while True:
        telemetry.save(record(f"{os.getpid()}-{number}"))
        number += 1
        if number % 200 == 0:
            telemetry.flush()


def test_two_writers_of_which_one_is_killed_lose_nothing_that_was_committed(store):
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    writer = context.Process(target=_write_forever, args=(store, there), daemon=True)
    writer.start()
    telemetry = Telemetry(store)
    committed = here.recv()
    for number in range(500):
        telemetry.save(record(f"mine-{number}"))
    while committed < 1000:
        committed = here.recv()
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    while here.poll():
        try:
            committed = here.recv()
        except EOFError:
            break
    telemetry.close()
    assert rows(store, "SELECT count(*) FROM suggestions WHERE id LIKE 'mine-%'") == [(500,)]
    ((found,),) = rows(store, "SELECT count(*) FROM suggestions WHERE id NOT LIKE 'mine-%'")
    assert found >= committed
    assert rows(store, "PRAGMA integrity_check") == [("ok",)]
