"""How long work tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Gets a plain sentence and how much of the whole is done, 0 to 1. It may raise, which stops the work cleanly."""


def silent(_sentence: str, _fraction: float) -> None:
    """Progress for callers that show none."""
