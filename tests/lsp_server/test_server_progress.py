"""The progress bar of the real server while a host loads its model."""

import asyncio
import threading

from lsprotocol import types

from completion.host.process.address import host_address
from completion.host.process.sockets import own_socket
from completion.host.server import HostServer, HostSettings
from tests.completion.host.paced_engine import PacedEngine


async def test_loading_shows_progress_from_its_begin_to_its_end(runtime, start_client):
    engine, may_load = PacedEngine(), threading.Event()

    def load(progress):
        assert may_load.wait(60)
        return engine.load(progress)

    own = own_socket(host_address("paced", "auto").endpoint_path)
    server = HostServer(HostSettings(model="paced"), load, own.token)
    task = asyncio.create_task(server.run([own.listener]))
    client = await start_client(progress=True)
    reports = client.lsp.progress_reports
    while not any(reports.values()):
        await client.lsp.wait_for_notification(types.PROGRESS)
    assert client.statuses[-1].kind == "starting"
    may_load.set()
    [shown] = reports.values()
    assert isinstance(shown[0], types.WorkDoneProgressBegin)
    while not isinstance(shown[-1], types.WorkDoneProgressEnd):
        await client.lsp.wait_for_notification(types.PROGRESS)
    assert (await client.ready()).kind == "ready"
    await client.stop()
    server.stop()
    await task
