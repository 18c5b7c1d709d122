"""The event loop's errors in the server's log."""

import asyncio
import logging

import pytest

from completion.host.process.log import NoTextFormatter
from lsp_server.server_log import BodyFreeFormatter, ignore_late_wakeups


async def turn():
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(done.set_result, None)
    await done


async def test_a_cancelled_read_that_a_socket_wakes_leaves_no_error_in_the_log(caplog):
    loop = asyncio.get_running_loop()
    ignore_late_wakeups(loop)
    read = loop.create_future()
    loop.call_soon(read.set_result, None)
    read.cancel()
    await turn()
    assert caplog.records == []


@pytest.mark.parametrize("error", [ValueError, asyncio.InvalidStateError])
async def test_other_errors_of_the_loop_are_logged(error, caplog):
    loop = asyncio.get_running_loop()
    ignore_late_wakeups(loop)

    def fail():
        raise error

    loop.call_soon(fail)
    await turn()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_line_takes_no_more_than_its_bound_of_what_comes_from_outside():
    for name in ("lsp_server.session", "pygls.protocol"):
        record = logging.LogRecord(name, logging.ERROR, "", 0, "x" * 20_000_000 + "%s", ("y" * 20_000_000,), None)
        assert len(BodyFreeFormatter().format(record)) < 20_000
    record = logging.LogRecord("completion", logging.ERROR, "", 0, "%s", ("y" * 20_000_000,), None)
    assert len(NoTextFormatter().format(record)) < 20_000
