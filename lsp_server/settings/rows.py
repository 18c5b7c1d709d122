"""A row of the table of settings: what a setting is besides its value."""

from __future__ import annotations

import dataclasses
import math
import types as python_types
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_Value = TypeVar("_Value")


class Scope(StrEnum):
    """Who may change a setting. All values except the last are scopes of VS Code."""

    PROJECT = "window"  # the user, a project's file, and the editor settings of a workspace
    MACHINE = "machine"  # the user, for one machine: settings that choose programs, models or resources
    USER = "application"  # the user, for all machines
    CLIENT = "client"  # the editor's plugin, which knows what it can display


def setting(
    description: str,
    *,
    default: _Value,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    scope: Scope = Scope.PROJECT,
    folders: bool = False,
) -> _Value:
    """Return a dataclass field with a row of the table. `bounds` are inclusive, the description is Markdown."""
    row = {"description": description, "low": bounds[0], "high": bounds[1], "scope": scope, "folders": folders}
    return field(default=default, metadata=row)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table.

    Attributes:
        kind: Type annotation of its field.
        folders: Whether each of its strings names a folder, by its whole path, or is `*`, perhaps after `!`.
    """

    name: str
    kind: Any
    default: Any
    description: str
    low: float
    high: float
    scope: Scope
    folders: bool


def choices(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type, a Literal or a union of both
    """Return the values of an enumeration by their spelling; empty for any other type."""
    if isinstance(kind, python_types.UnionType) or get_origin(kind) is Union:
        return {text: value for part in get_args(kind) for text, value in choices(part).items()}
    if get_origin(kind) is Literal:
        return {text: text for text in get_args(kind)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {member.value: member for member in kind}
    return {}


def rows_of(settings: type) -> Mapping[str, Setting]:
    """Return the rows of a dataclass whose fields are made by `setting`, by name."""
    kinds = get_type_hints(settings)
    return {
        row.name: Setting(name=row.name, kind=kinds[row.name], default=row.default, **row.metadata)
        for row in dataclasses.fields(settings)
    }
