"""`python -m lsp_server --stdio | --tcp PORT`: the language server's process."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import linecache
import os
import sys
from collections.abc import Sequence

_MAX_PORT = 65_535
_THRESHOLDS = gc.get_threshold()
# attrs makes each of lsprotocol's classes twice and leaves the first one, 10 MB in all. A collection that looks at new
# objects only finds them; older ones, which are looked at again by default, take a tenth of the start-up time.
gc.set_threshold(5_000, 1_000_000)

from completion.errors import DraftlineError  # noqa: E402
from completion.paths import write_no_core_dump  # noqa: E402
from lsp_server.server_log import configure_log  # noqa: E402
from lsp_server.transport import serve_stdio, serve_tcp  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client disconnects, and return the process's exit status."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    linecache.clearcache()  # the text of the methods that attrs has made: 1.5 MB
    chosen = _parser().parse_args(arguments)
    configure_log()
    write_no_core_dump()
    try:
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            _serve(chosen.tcp)
    except DraftlineError as error:
        print(f"draftline: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _serve(port: int | None) -> None:
    if port is not None:
        asyncio.run(serve_tcp(port, _token()))
    else:
        # Standard output carries only the protocol, so other prints of this process go to standard error.
        with os.fdopen(os.dup(1), "wb") as protocol_out:
            os.dup2(2, 1)
            asyncio.run(serve_stdio(0, protocol_out))


def _token() -> str:
    """Return the secret of a server on TCP, which its first start creates."""
    from completion.host.process.sockets import own_token  # noqa: PLC0415 - needed for TCP only
    from completion.paths import state_dir  # noqa: PLC0415

    path = state_dir() / "server-token"
    token = own_token(path)
    print(f"Clients must send the token in {path} as initializationOptions.token.", file=sys.stderr)  # noqa: T201
    return token


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port; give a number from 0 to {_MAX_PORT}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lsp_server", description="draftline's language server.")
    channel = parser.add_mutually_exclusive_group(required=True)
    channel.add_argument("--stdio", action="store_true", help="speak over standard input and output")
    channel.add_argument("--tcp", type=_port, metavar="PORT", help="listen on 127.0.0.1; 0 picks a free port")
    return parser


if __name__ == "__main__":
    sys.exit(main())
