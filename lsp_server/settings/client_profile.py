"""What an editor does with suggestions, known once from its `initialize`; items are made for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types


class ItemRange(StrEnum):
    """What an item of the editor replaces after the cursor; `auto` is what the editor is known to handle."""

    AUTO = "auto"
    CURSOR = "cursor"
    REPLACED = "replaced"
    LINE = "line"


_LSP_MODE = "emacs"
_ITEM_RANGES = {
    "Visual Studio Code": ItemRange.REPLACED,
    _LSP_MODE: ItemRange.REPLACED,
    "Neovim": ItemRange.LINE,  # its own inline completion draws an item over the rest of the line
}
"""Item ranges that editors are known to handle. Others only insert: LSP4IJ 0.20 keeps replaced text before new text."""

_UNANNOUNCED = frozenset({_LSP_MODE})
"""Editors with inline completion that do not announce it: lsp-mode 9 sends `inlineCompletion: null`."""

_AS_IS = frozenset({"Eglot", "helix", "@codemirror/lsp-client"})
"""Editors that announce no mode of insertion and insert lines as they are. ALE and Monaco have no name, and indent."""


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """What one client does with suggestions.

    Attributes:
        has_inline: Whether it shows inline completion. If not, suggestions are items of the completion list.
        item_range: What an item may replace after the cursor.
        list_mode: How the text of list items is inserted, None if the client knows no modes.
        list_lines: Whether it is known how the client indents further lines. If not, list items have one line.
    """

    has_inline: bool = True
    item_range: ItemRange = ItemRange.CURSOR
    list_mode: types.InsertTextMode | None = None
    list_lines: bool = True


def profile_of(params: types.InitializeParams) -> ClientProfile:
    """Return the profile of a client that sent `params`."""
    from lsprotocol import types  # noqa: PLC0415 - the table of settings, and so the command line, needs none of it

    name = params.client_info.name if params.client_info else ""
    text_document = params.capabilities.text_document or types.TextDocumentClientCapabilities()
    list_mode = _list_mode(text_document.completion)
    return ClientProfile(
        has_inline=text_document.inline_completion is not None or name in _UNANNOUNCED,
        item_range=_ITEM_RANGES.get(name, ItemRange.CURSOR),
        list_mode=list_mode,
        list_lines=list_mode is not None or name in _AS_IS,
    )


def _list_mode(completion: types.CompletionClientCapabilities | None) -> types.InsertTextMode | None:
    """Return the insertion of a list item's text as it is, if the client can do that, else the one that it does."""
    from lsprotocol import types  # noqa: PLC0415 - see above

    if completion is None:
        return None
    item = completion.completion_item
    modes = tuple(item.insert_text_mode_support.value_set) if item and item.insert_text_mode_support else ()
    return (
        types.InsertTextMode.AsIs
        if types.InsertTextMode.AsIs in modes
        else next(iter(modes), completion.insert_text_mode)
    )
