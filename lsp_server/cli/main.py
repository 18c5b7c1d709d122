"""`draftline COMMAND`: finds the subcommand's module, imports only that one, and turns errors into sentences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from completion.errors import ConfigurationError, DraftlineError

# Each module has `add_parser(subparsers)`, which sets `execute`: a function from the parsed options to an exit status.
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
_INTERRUPTED = 130  # 128 + SIGINT, as shells do it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit status: 2 where the question was wrong, 1 where we failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    try:
        status: int = options.execute(options)
    except ConfigurationError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 2
    except DraftlineError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough: `draftline complete ... | head`
        sys.stdout = None
        return 1
    return status


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="draftline",
        description="Code completion from a model on your own machine. Editors talk to it through its language "
        "server (python -m lsp_server --stdio); these commands are for the terminal.",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = arguments[0] if arguments else ""
    for name in [asked] if asked in _COMMANDS else _COMMANDS:
        import_module(_COMMANDS[name]).add_parser(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
