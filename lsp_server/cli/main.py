"""`draftline COMMAND`: imports the module of the subcommand, runs it, and prints errors as messages."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from completion.errors import ConfigurationError, DraftlineError
from completion.paths import version

_COMMANDS = {
    "complete": "complete code at a position in a file",
    "demo": "complete sample code in several languages, with timings",
    "doctor": "check everything a completion needs and say how to fix it",
    "experiment": "compare two values of a setting in your own work",
    "forget": "end the engines and delete all that was recorded, learned and made: telemetry, logs, answers, tokens",
    "models": "list, get, verify, free and remove models",
    "report": "show what was suggested, accepted and kept, and how fast",
    "serve": "run the engine in the foreground, for other HTTP clients",
    "telemetry": "export, delete or locate the local telemetry",
}
"""What each command does. Its module is imported only to run it, and has `add_arguments(parser)`, and
`execute(options)`, which returns the exit status."""
_INTERRUPTED = 130  # 128 + SIGINT, as in shells


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - it has no other name
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
    except DraftlineError as error:
        print(f"draftline: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigurationError) else 1
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
    subparsers = parser.add_subparsers(action=Commands, dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    for name, sentence in _COMMANDS.items():
        command = subparsers.add_parser(name, help=sentence)
        if name == chosen:
            module = import_module(f"lsp_server.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(execute=module.execute)
    return parser


if __name__ == "__main__":
    sys.exit(main())
