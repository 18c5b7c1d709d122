"""What an item of the editor replaces after the cursor. Apart from the table, which `initialize` need not load."""

from __future__ import annotations

from enum import StrEnum


class ItemRange(StrEnum):
    """What an item of the editor replaces after the cursor; `auto` is what the editor is known to handle."""

    AUTO = "auto"
    CURSOR = "cursor"
    REPLACED = "replaced"
    LINE = "line"
