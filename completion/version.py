"""The installed version of draftline."""

from __future__ import annotations


def version() -> str:
    """Return the installed version, "source" when draftline runs from a checkout that is not installed."""
    from importlib import metadata  # noqa: PLC0415 - slow to import, and `initialize` would wait for it

    try:
        return metadata.version("draftline")
    except metadata.PackageNotFoundError:
        return "source"
