"""`draftline COMMAND`: imports the module of the subcommand, runs it, and prints errors as messages."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from completion.errors import ConfigurationError, DraftlineError
from completion.version import version

# Each module has a function `add_parser(subparsers)`. Its parser sets `execute`, which maps options to an exit status.
_COMMANDS = {
    "complete": "lsp_server.cli.complete",
    "demo": "lsp_server.cli.demo",
    "doctor": "lsp_server.cli.doctor",
    "experiment": "lsp_server.cli.experiment",
    "forget": "lsp_server.cli.forget",
    "models": "lsp_server.cli.models",
    "report": "lsp_server.cli.report.command",
    "serve": "lsp_server.cli.serve",
    "telemetry": "lsp_server.cli.telemetry",
}
_INTERRUPTED = 130  # 128 + SIGINT, as in shells


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - it has no other name
    """Shows what a command does in its own help as well as in the list of commands."""

    def add_parser(self, name: str, **options: Any) -> Any:  # noqa: ANN401 - those of the overridden method
        """Return the parser of a command."""
        sentence = options["help"]
        return super().add_parser(name, description=f"{sentence[0].upper()}{sentence[1:]}.", **options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit status: 2 for wrong arguments or settings, 1 for any other failure."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe or file may have an encoding that lacks characters
        sys.stdout.reconfigure(errors="backslashreplace")
    options = _parser(arguments).parse_args(arguments)
    try:
        status: int = options.execute(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except ConfigurationError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 2
    except DraftlineError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe, as in `draftline complete ... | head`
        sys.stdout = None
        return 1
    except OSError as error:  # standard output is a file on a full disk
        sys.stdout = None
        print(f"draftline: {error}", file=sys.stderr)
        return 1
    return status


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="draftline",
        description="Code completion from a model on your own machine. Editors use the language server "
        "(python -m lsp_server --stdio); these commands are for the terminal.",
    )
    shown = f"draftline {version()}" if "--version" in arguments else ""  # its import would delay every command
    parser.add_argument("--version", action="version", version=shown, help="show the installed version and exit")
    subparsers = parser.add_subparsers(action=_Commands, dest="command", metavar="COMMAND", required=True)
    command = arguments[0] if arguments else ""
    for name in [command] if command in _COMMANDS else _COMMANDS:
        import_module(_COMMANDS[name]).add_parser(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
