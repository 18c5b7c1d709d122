"""FILE:LINE:COL of the command line, and the request that asks for what belongs there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from completion.errors import ConfigurationError
from completion.request import CompletionRequest
from completion.syntax.file_endings import language_of
from lsp_server.documents.file_policy import repository_top
from lsp_server.documents.text_lines import split_lines
from lsp_server.workspace_reader import read_named

_MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A cursor in a file.

    Attributes:
        line: From 1.
        column: From 1, in characters.
    """

    path: Path
    text: str
    line: int
    column: int

    @property
    def before(self) -> str:
        """The text up to the cursor."""
        lines = split_lines(self.text)
        return "".join(lines[: self.line - 1]) + lines[self.line - 1][: self.column - 1]

    @property
    def after(self) -> str:
        """The text from the cursor on."""
        return self.text[len(self.before) :]


def read_position(argument: str) -> SourcePosition:
    """Read FILE:LINE:COL and the file.

    Raises:
        ConfigurationError: No such form, no such file, no text, or no such place in it.
    """
    path, line, column = _split(argument)
    text = _read(path)
    lines = split_lines(text)
    if not 1 <= line <= len(lines):
        raise ConfigurationError(f"{path} has {len(lines)} lines; line {line} is out of range.")
    length = len(lines[line - 1].rstrip("\r\n"))
    if not 1 <= column <= length + 1:
        raise ConfigurationError(f"Line {line} of {path} has {length} characters; column {column} is out of range.")
    return SourcePosition(path, text, line, column)


def request_at(position: SourcePosition, **fields: object) -> CompletionRequest:
    """The request for a position; `fields` are further fields of the request."""
    root = _workspace_root(position.path)
    return CompletionRequest(
        prefix=position.before,
        suffix=position.after,
        language=language_of(position.path),
        path=position.path.resolve().relative_to(root).as_posix(),
        repository=root.name,
        document=str(position.path.resolve()),
        workspace=str(root),
        invoked=True,
        **fields,  # type: ignore[arg-type]
    )


def _split(argument: str) -> tuple[Path, int, int]:
    path, line, column = (["", "", *argument.rsplit(":", 2)])[-3:]
    if not (path and line.isdecimal() and column.isdecimal()):
        raise ConfigurationError(f"{argument} is no FILE:LINE:COL. Give, for example, src/main.py:12:5.")
    return Path(path), int(line), int(column)


def _read(path: Path) -> str:
    try:
        data = read_named(path, _MOST_BYTES)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    if b"\0" in data:
        raise ConfigurationError(f"{path} is a binary file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 (byte {error.start}). Convert it first.") from error


def _workspace_root(path: Path) -> Path:
    """The repository that holds the file, else its folder."""
    folder = path.resolve().parent
    return repository_top(folder) or folder
