"""The table that says where an engine's memory is, for `draftline doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_MB = 1e6
_NAMES = {
    "weights": "weights of the model",
    "kv_sessions": "KV sessions: keys and values of open documents",
    "workspaces": "workspaces: indexes, context, what the drafters learned",
    "grammars": "grammars",
    "code": "compiled code",
    "other": "other: Python, its libraries, buffers",
}


def memory_table(memory: Mapping[str, Any]) -> Table:
    """Return a row for each part of an engine's memory, in MB.

    Args:
        memory: The engine's account; see `MemoryAccount.to_json`.
    """
    table = Table(title="memory of the engine", title_justify="left", show_footer=True)
    table.add_column("part", "resident size")
    table.add_column("MB", f"{memory['resident'] / _MB:,.1f}", justify="right")
    for part, size in memory["parts"].items():
        table.add_row(_NAMES.get(part, part), f"{size / _MB:,.1f}")
    apart = {f"on the GPU: {_NAMES.get(part, part)}": size for part, size in memory["gpu"].items()}
    apart |= {"its parser process": memory["children"]} if memory["children"] else {}
    if apart:
        table.caption = "Not in this process: " + ", ".join(
            f"{name} {size / _MB:,.1f} MB" for name, size in apart.items()
        )
        table.caption_justify = "left"
    return table
