"""Parses FILE:LINE:COL of the command line and builds the completion request for that position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from completion.errors import ConfigurationError
from completion.host.process.clients import command_key
from completion.language_ids import language_of
from completion.request import CompletionRequest
from lsp_server.documents.file_policy import FilePolicy
from lsp_server.documents.rules.repository import repository_top
from lsp_server.documents.text_lines import split_lines
from lsp_server.engine.consent import by_rules
from lsp_server.settings.config import remote_address, user_file, users_settings
from lsp_server.workspace_reader import read_named, real_path

_MAX_BYTES = 8 << 20
"""Maximum size of a file that is read."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A cursor in a file, with the text before and after it."""

    path: Path
    before: str
    after: str


def read_position(argument: str) -> SourcePosition:
    """Parse FILE:LINE:COL and read the file.

    Raises:
        ConfigurationError: The argument is malformed, the file may hold secrets, is ignored or is not a readable text,
            or the position is out of range.
    """
    path, line, column = _split(argument)
    _check_policy(path)
    text = _read(path)
    lines = split_lines(text)
    if not 1 <= line <= len(lines):
        raise ConfigurationError(f"{path} has {len(lines)} lines; line {line} is out of range. Lines count from 1.")
    length = len(lines[line - 1].rstrip("\r\n"))
    if not 1 <= column <= length + 1:
        raise ConfigurationError(
            f"Line {line} of {path} has {length} characters; column {column} is out of range. Columns count from 1."
        )
    before = "".join(lines[: line - 1]) + lines[line - 1][: column - 1]
    return SourcePosition(path, before, text[len(before) :])


def request_at(position: SourcePosition, **fields: object) -> CompletionRequest:
    """Return the request for a position, with further fields. The errors are those of `_goes_to_second`."""
    root = _workspace_root(position.path)
    return CompletionRequest(
        prefix=position.before,
        suffix=position.after,
        language=language_of(position.path),
        path=real_path(position.path).relative_to(root).as_posix(),
        repository=root.name,
        document=command_key(str(real_path(position.path))),
        workspace=str(root),
        invoked=True,
        remote=_goes_to_second(position.path),
        **fields,  # type: ignore[arg-type]
    )


def _goes_to_second(path: Path) -> bool:
    """Return whether the text also goes to a server beside the local model; the command says so, and asks nothing.

    Raises:
        ConfigurationError: The server stands alone, and the user's own settings forbid to send it the text.
    """
    settings = users_settings()
    address, allowed = remote_address(settings), by_rules(settings.engine_send, path.absolute()) is not False
    if address.url and not address.is_second and not allowed:
        raise ConfigurationError(
            f"`engine_send` in {user_file()} forbids to send the text of {path} to {address.shown()}. "
            "Change it there, or complete another file."
        )
    return address.is_second and allowed


def _split(argument: str) -> tuple[Path, int, int]:
    path, line, column = (["", "", *argument.rsplit(":", 2)])[-3:]
    if not (path and line.isdecimal() and column.isdecimal()):
        raise ConfigurationError(f"{argument} is not of the form FILE:LINE:COL. Example: src/main.py:12:5")
    return Path(path), int(line), int(column)


def _check_policy(path: Path) -> None:
    """Check that the file is none of those that no editor's file may be, either: secret or ignored."""
    refusal = FilePolicy(_workspace_root(path)).refusal(path.absolute())
    if refusal is not None:
        raise ConfigurationError(f"{path} gets no completion. {refusal.sentence}")


def _read(path: Path) -> str:
    try:
        data = read_named(path, _MAX_BYTES)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    if b"\0" in data:
        raise ConfigurationError(f"{path} is a binary file. Give a text file in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 (byte {error.start}). Convert it to UTF-8 first.") from error


def _workspace_root(path: Path) -> Path:
    """Return the top folder of the file's repository, or the file's folder if it is in none."""
    folder = real_path(path).parent
    return repository_top(folder) or folder
