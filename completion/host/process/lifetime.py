"""The lifetime of the host's process: take the lock, listen, serve, clean up."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Callable, Sequence

from filelock import FileLock, Timeout

from completion.backend import BACKENDS
from completion.host.engine_protocol import EngineLoader
from completion.host.process.address import ALREADY_RUNNING, LOADING_FAILED, HostAddress, host_address
from completion.host.process.fatal_work import FatalWork, counted
from completion.host.process.log import configure_log
from completion.host.process.sockets import own_socket, tcp_socket
from completion.host.server import HostServer, HostSettings
from completion.paths import write_no_core_dump, writing_to
from completion.remote.address import RemoteAddress

logger = logging.getLogger(__name__)


def parse_settings(arguments: Sequence[str]) -> HostSettings:
    """Parse the command line that clients start a host with."""
    parser = argparse.ArgumentParser(prog="draftline-host", description="The engine host. Clients start it on demand.")
    defaults = HostSettings()
    parser.add_argument("--model", default=defaults.model)
    parser.add_argument("--backend", choices=BACKENDS, default=defaults.backend)
    parser.add_argument("--threads", type=int, default=defaults.threads)
    parser.add_argument("--gpu-memory-share", type=float, default=defaults.gpu_memory_share)
    parser.add_argument("--idle-seconds", dest="idle_s", type=float, default=defaults.idle_s)
    parser.add_argument("--log-level", type=str.upper, default=defaults.log_level)
    parser.add_argument("--remote", type=lambda text: RemoteAddress(**json.loads(text)), default=defaults.remote)
    return HostSettings(**vars(parser.parse_args(arguments)))


def serve(settings: HostSettings, load: EngineLoader, on_listening: Callable[[HostAddress], None]) -> int:
    """Run a host until it is idle or a signal stops it.

    `load` is called on the model's thread, `on_listening` once clients can connect. The model may still be loading.

    Returns:
        The exit status: 0, ALREADY_RUNNING if another process serves this model, or LOADING_FAILED.

    Raises:
        StorageError: The lock, the log or the socket cannot be created.
        DraftlineError: The host cannot listen.
    """
    write_no_core_dump()
    address = host_address(settings.model, settings.backend, settings.remote.arguments())
    lock = FileLock(address.lock_path, mode=0o600, blocking=False)
    with writing_to(address.runtime_folder, "DRAFTLINE_RUNTIME_DIR"):
        try:
            lock.acquire()
        except Timeout:
            return ALREADY_RUNNING
    try:
        loading_failed = _serve_locked(settings, load, address, on_listening)
    finally:
        lock.release()
    return LOADING_FAILED if loading_failed else 0


def _serve_locked(
    settings: HostSettings, load: EngineLoader, address: HostAddress, on_listening: Callable[[HostAddress], None]
) -> bool:
    async def run() -> bool:
        on_listening(address)
        server = HostServer(settings, lambda progress: counted(load(progress), fatal), own.token)
        await server.run(sockets)
        return server.loading_failed

    configure_log(address.log_path, settings.log_level)
    fatal = FatalWork(address.fatal_path)
    own = own_socket(address.endpoint_path)
    sockets = [own.listener]
    try:
        if settings.tcp is not None:
            sockets.append(tcp_socket(settings.tcp))
        return asyncio.run(run())
    finally:
        address.endpoint_path.unlink(missing_ok=True)
        fatal.close()
        logger.info("Stopped")
