"""The state of an engine host, as its client knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The state of a host at one moment.

    Attributes:
        state: "starting", "loading", "ready", "error", or "gone" if no host is connected.
        percent: Loading progress, 0 to 100.
        sentence: Message for the user: what the host is doing, or what went wrong and what to do.
        code: Stable name of the error in state "error", else "".
        pid: Process number of the host, 0 if unknown.
    """

    state: str = "gone"
    percent: float = 0.0
    sentence: str = ""
    model: str = ""
    device: str = ""
    code: str = ""
    pid: int = 0


def status_of(health: Mapping[str, Any]) -> EngineStatus:
    """Return the status that a host's health reports; raise KeyError where a field is missing."""
    return EngineStatus(**{field.name: health[field.name] for field in fields(EngineStatus)})
