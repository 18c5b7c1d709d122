"""`python -m lsp_server --stdio | --tcp PORT`: the language server's process."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Sequence

gc.disable()  # the protocol's types are many and live on: looking through them costs a tenth of the time to start

from lsp_server.server_log import configure_log  # noqa: E402
from lsp_server.transport import serve_stdio, serve_tcp  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client leaves; the result is the process's exit status."""
    gc.freeze()
    gc.enable()
    chosen = _parser().parse_args(arguments)
    configure_log()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        if chosen.tcp is not None:
            asyncio.run(serve_tcp(chosen.tcp))
        else:
            # Whatever else prints in this process goes to standard error: standard output is the protocol's alone.
            with os.fdopen(os.dup(1), "wb") as protocol_out:
                os.dup2(2, 1)
                asyncio.run(serve_stdio(0, protocol_out))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lsp_server", description="draftline's language server.")
    channel = parser.add_mutually_exclusive_group(required=True)
    channel.add_argument("--stdio", action="store_true", help="speak over standard input and output")
    channel.add_argument("--tcp", type=int, metavar="PORT", help="listen on 127.0.0.1; 0 picks a free port")
    return parser


if __name__ == "__main__":
    sys.exit(main())
