"""`draftline serve`: runs the engine host in the foreground, for other programs and other machines."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from completion.errors import ConfigurationError, DraftlineError, EngineUnavailableError
from completion.host.process.address import ALREADY_RUNNING, LOADING_FAILED, HostAddress
from completion.host.process.sockets import TcpAddress, tcp_address, tls_context
from completion.paths import state_dir
from completion.progress import Progress
from completion.remote.address import is_loopback
from lsp_server.cli.engine_arguments import add_engine_arguments, options_of, report_ignored_settings
from lsp_server.engine.launcher import STOP_S, HostLauncher, end
from lsp_server.settings.table import SETTINGS

_DEFAULT_PORT = 8012
_SESSION_SHARE = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    parser.add_argument(
        "--tcp",
        nargs="?",
        const=f"127.0.0.1:{_DEFAULT_PORT}",
        metavar="HOST:PORT",
        help=f"also listen on TCP, with a bearer token (default address: 127.0.0.1:{_DEFAULT_PORT})",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the bearer token, or with a line NAME TOKEN for each user; required beyond loopback",
    )
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="certificate (PEM) for TLS on --tcp")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, if that is in another file")
    parser.add_argument(
        "--allow-local",
        action="store_true",
        help="let every program of this computer complete over TCP without a token; web pages are refused",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="number of CPU threads for the model (default: that of your settings)"
    )
    parser.add_argument(
        "--gpu-memory-share",
        type=float,
        metavar="SHARE",
        help="share of a GPU's memory that the model may take; 0 for no GPU (default: that of your settings)",
    )
    parser.add_argument(
        "--session-memory",
        type=float,
        default=_SESSION_SHARE,
        metavar="SHARE",
        help="share of the free memory for cached documents, and as much for workspaces (default: %(default)s)",
    )
    parser.add_argument(
        "--idle-minutes", type=float, default=0, metavar="N", help="exit after N minutes without clients; 0: never"
    )
    parser.add_argument("--stop", action="store_true", help="end the running engine of this model")
    add_engine_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the command. It returns when the host ends."""
    for name in ("token_file", "allow_local", "tls_certificate"):
        if getattr(options, name) and not options.tcp:
            option = f"--{name.replace('_', '-')}"
            raise ConfigurationError(f"{option} has no effect without --tcp HOST:PORT. Give both or neither.")
    _check_numbers(options)
    if options.tls_key and not options.tls_certificate:
        raise ConfigurationError("--tls-key has no effect without --tls-certificate FILE. Give both or neither.")
    report_ignored_settings()
    return _stop(options) if options.stop else _serve(options)


def _check_numbers(options: argparse.Namespace) -> None:
    """Check the numbers of options that are no settings, or have other bounds than the setting of their name."""
    for name, low, high in (("session_memory", 0, 1), ("idle_minutes", 0, SETTINGS["idle_minutes"].high)):
        value = getattr(options, name)
        if not low <= value <= high:
            option = f"--{name.replace('_', '-')}"
            raise ConfigurationError(f"{option} is {value:g}. Give a number from {low:g} to {high:g}.")


def _serve(options: argparse.Namespace) -> int:
    from completion.host.engine_loader import engine_loader
    from completion.host.engine_protocol import LoadedEngine
    from completion.host.process.lifetime import serve
    from completion.host.server import HostSettings

    own_token = state_dir() / "engine-token"
    tcp = None
    if options.tcp:
        tls = tls_context(options.tls_certificate, options.tls_key) if options.tls_certificate else None
        tcp = tcp_address(options.tcp, options.token_file, own_token, allow_local=options.allow_local, tls=tls)
    engine = options_of(options)
    settings = HostSettings(
        model=engine.model,
        backend=engine.backend,
        threads=engine.threads,
        gpu_memory_share=engine.gpu_memory_share,
        session_share=options.session_memory,
        idle_s=60 * options.idle_minutes,
        tcp=tcp,
        remote=engine.remote,
    )

    def load(progress: Progress) -> LoadedEngine:
        try:
            engine = engine_loader(settings)(_printed(progress))
        except DraftlineError as error:
            print(f"draftline: {error}", file=sys.stderr, flush=True)
            raise
        _say("The model is ready.")
        return engine

    status = serve(settings, load, partial(_print_addresses, tcp, options.token_file or own_token))
    if status == ALREADY_RUNNING:
        raise EngineUnavailableError("An engine already serves this model. To end it, run: draftline serve --stop")
    if status == LOADING_FAILED:
        print("draftline: The model could not be loaded. The log says why.", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(1 if status else 0)  # a thread that still loads the model would delay the exit


def _printed(progress: Progress) -> Progress:
    """Return a callback that also prints each new sentence of the progress."""
    said: list[str] = []

    def report(sentence: str, fraction: float) -> None:
        if sentence not in said:
            said.append(sentence)
            _say(f"{sentence.removesuffix('.')}.")
        progress(sentence, fraction)

    return report


def _say(sentence: str) -> None:
    with suppress(OSError):  # who read the addresses from a pipe may have closed it
        print(sentence, flush=True)


def _print_addresses(tcp: TcpAddress | None, token_file: Path, address: HostAddress) -> None:
    print(f"Listening on {address.endpoint_path}; log: {address.log_path}", flush=True)
    if tcp is not None:
        url_host = f"[{tcp.host}]" if ":" in tcp.host else tcp.host
        scheme = "http" if tcp.tls is None else "https"
        print(f"Listening on {scheme}://{url_host}:{tcp.port}; bearer token in {token_file}", flush=True)
        if tcp.tls is None and not is_loopback(tcp.host):
            print(
                "Warning: other machines reach it unencrypted, so a network in between can read text and tokens. Give "
                "--tls-certificate FILE, or let a proxy encrypt.",
                flush=True,
            )
        if tcp.allow_local:
            print(
                "--allow-local: every program and user of this computer can complete there without the token. "
                "Requests of web pages are refused.",
                flush=True,
            )


def _stop(options: argparse.Namespace) -> int:
    processes = HostLauncher(options_of(options)).processes()
    if not processes:
        print("No engine is running for this model.")
        return 1
    end(processes, STOP_S)
    print(f"Ended the engine (process {', '.join(str(process.pid) for process in processes)}).")
    return 0
