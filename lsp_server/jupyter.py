"""The extension of Jupyter's server: each page of JupyterLab gets a language server of its own over a web socket."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado.websocket import WebSocketClosedError, WebSocketHandler

_COMMAND = (sys.executable, "-P", "-m", "lsp_server", "--stdio")
_HEAD = re.compile(rb"Content-Length: (\d+)\r\n.*", re.DOTALL)


class LanguageServerSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Passes the messages of one page on to a language server, and back, for users who may execute code."""

    auth_resource = "draftline"

    @ws_authenticated
    @authorized("execute")
    async def get(self) -> None:
        """Open the web socket."""
        await super().get()

    def open(self) -> None:
        """Start the language server."""
        super().open()
        self._input: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve())

    async def on_message(self, message: str) -> None:
        """Pass a message on to the language server."""
        body, server = message.encode(), await self._input
        server.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await server.drain()

    def on_close(self) -> None:
        """Close the input of the language server, which ends it."""
        self._serving.cancel()

    async def _serve(self) -> None:
        pipe = asyncio.subprocess.PIPE
        server: Any = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
        self._input.set_result(server.stdin)
        with closing(server.stdin), suppress(asyncio.IncompleteReadError, WebSocketClosedError):
            while head := _HEAD.fullmatch(await server.stdout.readuntil(b"\r\n\r\n")):
                body = await server.stdout.readexactly(int(head[1]))
                await self.write_message(body.decode())
        self.close()


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "lsp_server.jupyter"}]


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add the web socket, and tell pages which folder is served."""
    app.web_app.settings.setdefault("page_config_data", {})["draftlineRoot"] = Path(app.root_dir).absolute().as_uri()
    app.web_app.add_handlers(".*", [(url_path_join(app.base_url, "draftline"), LanguageServerSocket)])
