"""draftline's own LSP messages: their method names, and functions that read those of a client."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lsprotocol import types

from completion.edits import MAX_DIAGNOSTICS, MAX_MESSAGE_CHARACTERS, Diagnostic
from completion.errors import DraftlineError
from completion.request import MAX_NAME_CHARACTERS, MAX_NAMES
from lsp_server.wire.document_uri import identity_of_uri

PARTIAL_COMPLETION = "draftline/partialCompletion"
STATUS = "draftline/status"
EDIT = "draftline/edit"
PARTIAL_EDIT = "draftline/partialEdit"
NEXT_EDIT = "draftline/nextEdit"
COPILOT_NEXT_EDIT = "textDocument/copilotInlineEdit"
DIAGNOSTICS = "draftline/diagnostics"
NAMES = "draftline/names"
DID_SHOW_NEXT_EDIT = "textDocument/didShowInlineEdit"
DID_SHOW = "textDocument/didShowCompletion"
DID_ACCEPT_PARTLY = "textDocument/didPartiallyAcceptCompletion"
DID_MOVE_CURSOR = "draftline/didMoveCursor"
DID_REJECT = "draftline/didRejectCompletion"
ACCEPTED_COMMAND = "draftline.accepted"
SNOOZE_COMMAND = "draftline.snooze"
RESUME_COMMAND = "draftline.resume"
GET_MODEL_COMMAND = "draftline.getModel"
SWITCH_COMMAND = "draftline.switch"
ACCEPTED_NEXT_EDIT_COMMAND = "draftline.nextEditAccepted"
REFUSED_NEXT_EDIT_COMMAND = "draftline.nextEditRefused"
_MAX_SNOOZE_MINUTES = 60 * 24 * 365
_SEVERE = (None, types.DiagnosticSeverity.Error.value, types.DiagnosticSeverity.Warning.value)
_MAX_UINTEGER = 2**31 - 1  # LSP 3.17, uinteger


class InvalidMessageError(DraftlineError):
    """A client sent one of draftline's own messages with missing or invalid fields."""

    code = "invalid_message"


class Rejection(StrEnum):
    """How a suggestion was rejected."""

    DISMISSED = "dismissed"
    TYPED_OVER = "typedOver"
    CURSOR_MOVED = "cursorMoved"


class OffScope(StrEnum):
    """What a command switches off."""

    FILE = "file"
    LANGUAGE = "language"
    WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class ItemName:
    """The suggestion that a client's message refers to: the completion's id and the suggestion's index in it."""

    id: str
    index: int


@dataclass(frozen=True, slots=True)
class NextEditQuery:
    """A client wants the next edits of a document: of its `version`, None for the one that the server has."""

    uri: str
    version: int | None
    invoked: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """The file, language or workspace of the document `uri` is switched off, or on; None: the other one than now."""

    scope: OffScope
    uri: str
    is_off: bool | None


@dataclass(frozen=True, slots=True)
class EditMessage:
    """The text from `start` to `end` in version `version` of the document `uri` is to be edited by an instruction.

    The client chooses the `id`, which the partial texts have.
    """

    id: str
    uri: str
    version: int
    start: types.Position
    end: types.Position
    instruction: str


def read_item_name(arguments: object) -> ItemName:
    """Read the arguments of `draftline.accepted`. A missing index means the first suggestion.

    Raises:
        InvalidMessageError: The arguments are not a completion id and an item index.
    """
    if isinstance(arguments, list | tuple) and arguments:
        id_, index = arguments[0], arguments[1] if len(arguments) > 1 else 0
        if isinstance(id_, str) and isinstance(index, int):
            return ItemName(id_, index)
    raise InvalidMessageError(f"{ACCEPTED_COMMAND} takes a completion id and an item index.")


def read_shown(params: object) -> ItemName:
    """Read the params of `textDocument/didShowCompletion`.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    command = _member(_member(params, "item", DID_SHOW), "command", DID_SHOW)
    return read_item_name(_member(command, "arguments", DID_SHOW))


def read_part_accepted(params: object) -> tuple[ItemName, int]:
    """Read the params of `textDocument/didPartiallyAcceptCompletion`; return the item, and its inserted UTF-16 units.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    length = _member(params, "acceptedLength", DID_ACCEPT_PARTLY)
    if not isinstance(length, int) or length < 0:
        raise InvalidMessageError(f"{DID_ACCEPT_PARTLY}: acceptedLength must be a number of UTF-16 units, 0 or more.")
    return read_shown(params), length


def read_rejected(params: object) -> tuple[str, Rejection]:
    """Read the params of `draftline/didRejectCompletion`; return the completion's id, and how it was rejected.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    id_, reason = _member(params, "id", DID_REJECT), _member(params, "reason", DID_REJECT)
    try:
        return str(id_), Rejection(reason)
    except ValueError as error:
        known = ", ".join(Rejection)
        raise InvalidMessageError(f"{DID_REJECT}: reason is {reason!r}; it must be one of {known}.") from error


def read_cursor(params: object) -> tuple[str, types.Position]:
    """Read the params of `draftline/didMoveCursor`; return the document's URI and the position.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    uri = _member(params, "uri", DID_MOVE_CURSOR)
    return str(uri), _position(_member(params, "position", DID_MOVE_CURSOR), DID_MOVE_CURSOR)


def read_edit(params: object) -> EditMessage:
    """Read the params of `draftline/edit`.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    id_, uri, version, range_, instruction = (
        _member(params, name, EDIT) for name in ("id", "uri", "version", "range", "instruction")
    )
    if not isinstance(version, int) or not isinstance(instruction, str) or not instruction.strip():
        raise InvalidMessageError(f"{EDIT}: version must be an integer, and instruction a text that is not empty.")
    start, end = (_position(_member(range_, name, EDIT), EDIT) for name in ("start", "end"))
    if (start.line, start.character) > (end.line, end.character):
        raise InvalidMessageError(f"{EDIT}: the range ends before it starts.")
    return EditMessage(str(id_), str(uri), version, start, end, instruction)


def read_next_edit_query(params: object) -> NextEditQuery:
    """Read the params of `draftline/nextEdit` and `textDocument/copilotInlineEdit`.

    Raises:
        InvalidMessageError: The document is missing, or a field is invalid.
    """
    document = _member(params, "textDocument", NEXT_EDIT)
    uri, version = _member(document, "uri", NEXT_EDIT), document.get("version")
    if not isinstance(uri, str) or not isinstance(version, int | None):
        raise InvalidMessageError(f"{NEXT_EDIT}: textDocument must have a uri, and a version that is an integer.")
    context = params.get("context") if isinstance(params, Mapping) else None
    kind = context.get("triggerKind") if isinstance(context, Mapping) else None
    return NextEditQuery(uri, version, kind == types.InlineCompletionTriggerKind.Invoked.value)


def read_diagnostics(params: object) -> tuple[str, int, tuple[Diagnostic, ...]]:
    """Read the params of `draftline/diagnostics`; return the document's URI and version, and the first severe ones.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    uri, version, found = (_member(params, name, DIAGNOSTICS) for name in ("uri", "version", "diagnostics"))
    if not isinstance(uri, str) or not isinstance(version, int) or not isinstance(found, list):
        raise InvalidMessageError(f"{DIAGNOSTICS}: uri must be a text, version an integer, and diagnostics a list.")
    severe = [each for each in found if isinstance(each, Mapping) and each.get("severity") in _SEVERE]
    return uri, version, tuple(map(_diagnostic, severe[:MAX_DIAGNOSTICS]))


def _diagnostic(found: Mapping[str, object]) -> Diagnostic:
    start = _position(_member(_member(found, "range", DIAGNOSTICS), "start", DIAGNOSTICS), DIAGNOSTICS)
    message = _member(found, "message", DIAGNOSTICS)
    if not isinstance(message, str):
        raise InvalidMessageError(f"{DIAGNOSTICS}: a message must be a text.")
    text = message[:MAX_MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()  # no half of a surrogate pair
    return Diagnostic(start.line, text)


def read_names(params: object) -> tuple[str, int, types.Position, tuple[str, ...]]:
    """Read the params of `draftline/names`: a document's URI and version, a position, and names; none if too many.

    Raises:
        InvalidMessageError: A field is missing or invalid.
    """
    uri, version, position, names = (_member(params, name, NAMES) for name in ("uri", "version", "position", "names"))
    if not isinstance(uri, str) or not isinstance(version, int) or not isinstance(names, list):
        raise InvalidMessageError(f"{NAMES}: uri must be a text, version an integer, and names a list.")
    whole = names if len(names) <= MAX_NAMES else ()  # a part of the names would make the others unlikely
    kept = tuple(name for name in whole if isinstance(name, str) and len(name) <= MAX_NAME_CHARACTERS)
    return uri, version, _position(position, NAMES), kept


def read_next_edit_id(arguments: Sequence[object]) -> str:
    """Read the arguments of the commands of a next edit.

    Raises:
        InvalidMessageError: The argument is not the edit's id.
    """
    if not arguments or not isinstance(arguments[0], str):
        raise InvalidMessageError(
            f"{ACCEPTED_NEXT_EDIT_COMMAND} and {REFUSED_NEXT_EDIT_COMMAND} take the id of a next edit."
        )
    return arguments[0]


def read_minutes(arguments: Sequence[object]) -> float:
    """Read the arguments of `draftline.snooze`: minutes, or nothing for an infinity.

    Raises:
        InvalidMessageError: The argument is not a number of minutes.
    """
    minutes = arguments[0] if arguments else math.inf
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0:
        raise InvalidMessageError(f"{SNOOZE_COMMAND} takes a number of minutes above 0, or nothing.")
    return minutes if minutes <= _MAX_SNOOZE_MINUTES else math.inf


def read_switch(arguments: Sequence[object]) -> Switch:
    """Read the arguments of `draftline.switch`: a scope, a document's URI, and "on" or "off" or nothing.

    Raises:
        InvalidMessageError: An argument is missing or invalid.
    """
    scope, uri, state = (*arguments, None, None, None)[:3]
    if scope not in tuple(OffScope) or not isinstance(uri, str) or state not in ("on", "off", None):
        known = ", ".join(f'"{one}"' for one in OffScope)
        raise InvalidMessageError(
            f'{SWITCH_COMMAND} takes one of {known}, a document\'s URI, and "on", "off" or nothing.'
        )
    return Switch(OffScope(str(scope)), identity_of_uri(uri), None if state is None else state == "off")


def _position(value: object, method: str) -> types.Position:
    line, character = (_member(value, name, method) for name in ("line", "character"))
    if not all(isinstance(number, int) and 0 <= number <= _MAX_UINTEGER for number in (line, character)):
        raise InvalidMessageError(
            f"{method}: line and character of a position must be integers from 0 to {_MAX_UINTEGER}."
        )
    return types.Position(line, character)


def _member(value: object, name: str, method: str) -> Any:  # noqa: ANN401 - untyped JSON
    if not isinstance(value, Mapping) or name not in value:
        raise InvalidMessageError(f'{method}: "{name}" is missing.')
    return value[name]
