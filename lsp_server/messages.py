"""draftline's own LSP messages: their method names, and functions that read those of a client.

Each of these raises `InvalidMessageError` if a field is missing or invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
_KINDS = {str: "a text", int: "an integer", list: "a list"}
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
    """Read the arguments of `draftline.accepted`. A missing index means the first suggestion."""
    if isinstance(arguments, list | tuple) and arguments:
        id_, index = arguments[0], arguments[1] if len(arguments) > 1 else 0
        if isinstance(id_, str) and isinstance(index, int):
            return ItemName(id_, index)
    raise InvalidMessageError(f"{ACCEPTED_COMMAND} takes a completion id and an item index.")


def read_shown(params: object) -> ItemName:
    """Read the params of `textDocument/didShowCompletion`."""
    command = _member(_member(params, "item", DID_SHOW), "command", DID_SHOW)
    return read_item_name(_member(command, "arguments", DID_SHOW))


def read_part_accepted(params: object) -> tuple[ItemName, int]:
    """Read the params of `textDocument/didPartiallyAcceptCompletion`; return the item and its inserted UTF-16 units."""
    length = _member(params, "acceptedLength", DID_ACCEPT_PARTLY)
    if not isinstance(length, int) or length < 0:
        raise InvalidMessageError(f"{DID_ACCEPT_PARTLY}: acceptedLength must be a number of UTF-16 units, 0 or more.")
    return read_shown(params), length


def read_rejected(params: object) -> tuple[str, Rejection]:
    """Read the params of `draftline/didRejectCompletion`; return the completion's id, and how it was rejected."""
    id_, reason = _fields(params, DID_REJECT, id=object, reason=object)
    try:
        return str(id_), Rejection(reason)
    except ValueError as error:
        known = ", ".join(Rejection)
        raise InvalidMessageError(f"{DID_REJECT}: reason is {reason!r}; it must be one of {known}.") from error


def read_cursor(params: object) -> tuple[str, types.Position]:
    """Read the params of `draftline/didMoveCursor`; return the document's URI and the position."""
    uri, position = _fields(params, DID_MOVE_CURSOR, uri=object, position=object)
    return str(uri), _position(position, DID_MOVE_CURSOR)


def read_edit(params: object) -> EditMessage:
    """Read the params of `draftline/edit`."""
    id_, uri, version, range_, instruction = _fields(
        params, EDIT, id=object, uri=object, version=int, range=object, instruction=str
    )
    if not instruction.strip():
        raise InvalidMessageError(f"{EDIT}: the instruction is empty.")
    start, end = (_position(edge, EDIT) for edge in _fields(range_, EDIT, start=object, end=object))
    if (start.line, start.character) > (end.line, end.character):
        raise InvalidMessageError(f"{EDIT}: the range ends before it starts.")
    return EditMessage(str(id_), str(uri), version, start, end, instruction)


def read_next_edit_query(params: object) -> NextEditQuery:
    """Read the params of `draftline/nextEdit` and `textDocument/copilotInlineEdit`."""
    document = _member(params, "textDocument", NEXT_EDIT)
    (uri,) = _fields(document, NEXT_EDIT, uri=str)
    version = document.get("version")
    if not isinstance(version, int | None):
        raise InvalidMessageError(f"{NEXT_EDIT}: version must be an integer, or be missing.")
    context = params.get("context") if isinstance(params, Mapping) else None
    kind = context.get("triggerKind") if isinstance(context, Mapping) else None
    return NextEditQuery(uri, version, kind == types.InlineCompletionTriggerKind.Invoked.value)


def read_diagnostics(params: object) -> tuple[str, int, tuple[Diagnostic, ...]]:
    """Read the params of `draftline/diagnostics`; return the document's URI and version, and the first severe ones."""
    uri, version, found = _fields(params, DIAGNOSTICS, uri=str, version=int, diagnostics=list)
    severe = [each for each in found if isinstance(each, Mapping) and each.get("severity") in _SEVERE]
    return uri, version, tuple(map(_diagnostic, severe[:MAX_DIAGNOSTICS]))


def _diagnostic(found: Mapping[str, object]) -> Diagnostic:
    range_, message = _fields(found, DIAGNOSTICS, range=object, message=str)
    start = _position(_member(range_, "start", DIAGNOSTICS), DIAGNOSTICS)
    text = message[:MAX_MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()  # no half of a surrogate pair
    return Diagnostic(start.line, text)


def read_names(params: object) -> tuple[str, int, types.Position, tuple[str, ...]]:
    """Read the params of `draftline/names`: a document's URI and version, a position, and names; none if too many."""
    uri, version, position, names = _fields(params, NAMES, uri=str, version=int, position=object, names=list)
    whole = names if len(names) <= MAX_NAMES else ()  # a part of the names would make the others unlikely
    kept = tuple(name for name in whole if isinstance(name, str) and len(name) <= MAX_NAME_CHARACTERS)
    return uri, version, _position(position, NAMES), kept


def read_next_edit_id(arguments: Sequence[object]) -> str:
    """Read the arguments of the commands of a next edit."""
    if not arguments or not isinstance(arguments[0], str):
        raise InvalidMessageError(
            f"{ACCEPTED_NEXT_EDIT_COMMAND} and {REFUSED_NEXT_EDIT_COMMAND} take the id of a next edit."
        )
    return arguments[0]


def read_minutes(arguments: Sequence[object]) -> float:
    """Read the arguments of `draftline.snooze`: minutes, or nothing for an infinity."""
    minutes = arguments[0] if arguments else math.inf
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0:
        raise InvalidMessageError(f"{SNOOZE_COMMAND} takes a number of minutes above 0, or nothing.")
    return minutes if minutes <= _MAX_SNOOZE_MINUTES else math.inf


def read_switch(arguments: Sequence[object]) -> Switch:
    """Read the arguments of `draftline.switch`: a scope, a document's URI, and "on" or "off" or nothing."""
    scope, uri, state = (*arguments, None, None, None)[:3]
    if scope not in tuple(OffScope) or not isinstance(uri, str) or state not in ("on", "off", None):
        known = ", ".join(f'"{one}"' for one in OffScope)
        raise InvalidMessageError(
            f'{SWITCH_COMMAND} takes one of {known}, a document\'s URI, and "on", "off" or nothing.'
        )
    return Switch(OffScope(str(scope)), identity_of_uri(uri), None if state is None else state == "off")


def _position(value: object, method: str) -> types.Position:
    line, character = _fields(value, method, line=object, character=object)
    if not all(isinstance(number, int) and 0 <= number <= _MAX_UINTEGER for number in (line, character)):
        raise InvalidMessageError(
            f"{method}: line and character of a position must be integers from 0 to {_MAX_UINTEGER}."
        )
    return types.Position(line, character)


def _fields(value: object, method: str, **kinds: type) -> Iterator[Any]:
    """Yield the members of an object of untyped JSON by their names, each of its type."""
    for name, kind in kinds.items():
        found = _member(value, name, method)
        if not isinstance(found, kind):
            raise InvalidMessageError(f"{method}: {name} must be {_KINDS[kind]}.")
        yield found


def _member(value: object, name: str, method: str) -> Any:  # noqa: ANN401 - untyped JSON
    if not isinstance(value, Mapping) or name not in value:
        raise InvalidMessageError(f'{method}: "{name}" is missing.')
    return value[name]
