"""A host whose engine has one suggestion at each known cursor, and the environment of servers that use it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Generator
from pathlib import Path

from completion.cancellation import CancelToken
from completion.host.engine_protocol import LoadedEngine
from completion.host.process.address import host_address
from completion.host.process.sockets import own_socket
from completion.host.server import HostServer, HostSettings
from completion.progress import Progress
from completion.request import CompletionEvent, CompletionRequest, Statistics, StopReason, Suggestion
from tests.e2e.clients.cursors import CURSORS
from tests.torture.echo_engine import EchoEngine

REPOSITORY = Path(__file__).resolve().parents[3]
COMMAND = (sys.executable, "-P", "-m", "lsp_server", "--stdio")
SETTINGS = """model = "forced"
gate = "off"
debounce_ms = 0
quiet_ms = 0
prepare_ms = 0
ahead = false
suggestions = 1
next_edit = "off"
"""


def _key(before: str, after: str) -> str:
    return f"{before}‸{after}".replace("\r\n", "\n")


KNOWN = {_key(one.before, one.after): one for one in CURSORS}
NAMED = re.compile(r"def (\w+)\(.*^value = \Z", re.DOTALL | re.MULTILINE)
"""Text before the cursor where it suggests a call of the function above."""


class ForcedEngine(EchoEngine):
    """Suggests what belongs to a known cursor, with the document's line ends, and little elsewhere."""

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the suggestion at once."""
        cancel.raise_if_cancelled()
        known = KNOWN.get(_key(request.prefix, request.suffix))
        found: tuple[Suggestion, ...] = ()
        if named := NAMED.search(request.prefix):
            found = (Suggestion(f"{named[1]}()"),)
        if known is not None:
            text = known.text.replace("\r\n", "\n")
            has_crlf = "\r\n" in request.prefix + request.suffix
            found = (Suggestion(text.replace("\n", "\r\n") if has_crlf else text, known.replaced),)
        yield CompletionEvent(
            found, done=True, stop_reason=StopReason.LINE_END, statistics=Statistics(), whole=len(found)
        )

    def load(self, progress: Progress) -> LoadedEngine:
        """Return the engine at once."""
        progress("Loading nothing.", 0.5)
        return LoadedEngine(self, "forced", "test", context_tokens=1000)


class ForcedHost:
    """The host in a thread, where servers with `environment` find it.

    Attributes:
        environment: Of the editor, and so of the language server that it starts.
    """

    def __init__(self, folder: Path) -> None:
        """Start the host; the runtime variables of this process must already name folders in `folder`."""
        config = folder / "config" / "draftline" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(SETTINGS, encoding="utf-8")
        self.environment = {
            **os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(folder / "config"), "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        self._listening = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))
        self._thread.start()
        assert self._listening.wait(60)

    async def _serve(self) -> None:
        own = own_socket(host_address("forced", "auto").endpoint_path)
        self._server = HostServer(HostSettings(model="forced", idle_s=0), ForcedEngine().load, own.token)
        self._loop = asyncio.get_running_loop()
        self._listening.set()
        await self._server.run([own.listener])

    def close(self) -> None:
        """End the host."""
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(30)
