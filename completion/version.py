"""The installed version of draftline."""

from __future__ import annotations


def version() -> str:
    """Return the installed version, or "source" if draftline runs from a checkout that is not installed."""
    from importlib import metadata  # noqa: PLC0415 - its import would delay the answer to `initialize`

    try:
        return metadata.version("draftline")
    except metadata.PackageNotFoundError:
        return "source"
