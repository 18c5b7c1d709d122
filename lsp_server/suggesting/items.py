"""Converts answers to LSP: inline completion items, completion list items and partial completions."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from typing import Any

from lsprotocol import types

from lsp_server.documents.position_encoding import units_from_column
from lsp_server.documents.text_lines import split_lines
from lsp_server.gate.features import is_word_character
from lsp_server.messages import ACCEPTED_COMMAND
from lsp_server.settings.client_profile import ItemRange
from lsp_server.suggesting.closers import closers_while_typing
from lsp_server.suggesting.narrowing import Remainder, inserted
from lsp_server.suggesting.query import Answer, Query

_LINE_END = re.compile(r"\r\n?")


def inline_items(query: Query, answer: Answer) -> list[dict[str, Any]]:
    """Return the items of `textDocument/inlineCompletion`. Their command reports an acceptance to the server.

    With their `closers` a client can narrow them while the user types, without a rule of its own.
    """
    fits_line = query.item_range is ItemRange.LINE
    fitted = (_with_line(query, left) if fits_line else left for left in answer.remainders)
    return [_inline_item(query, answer, left) for left in fitted]


def list_items(query: Query, answer: Answer) -> list[types.CompletionItem]:
    """Return the item of `textDocument/completion`, for clients without inline completion. Its label is one line."""
    if not answer.remainders:
        return []
    left = _well_indented(query, answer.remainders[0])
    if not (left.text or query.profile.list_lines):
        return []  # its first line ends at the cursor
    word = _word_before(query)
    text = word + left.text
    if query.profile.list_mode is types.InsertTextMode.AdjustIndentation:
        text = _relative_to_line(query, text)
    start = types.Position(query.position.line, query.position.character - _units(query, word))
    return [
        types.CompletionItem(
            label=split_lines((word + left.text).strip())[0].rstrip("\r\n"),
            label_details=types.CompletionItemLabelDetails(description="draftline"),
            kind=types.CompletionItemKind.Text,
            documentation=word + left.text,
            sort_text=" ",  # before every name; Emacs refuses a NUL
            filter_text=word or None,
            text_edit=types.TextEdit(types.Range(start, _replaced_range(query, left).end), text),
            insert_text_mode=query.profile.list_mode,
            command=_command(answer, left),
        )
    ]


def partial_params(query: Query, answer: Answer, *, done: bool) -> dict[str, Any]:
    """Return the params of `draftline/partialCompletion`."""
    return {
        "id": answer.id,
        "uri": query.document.uri,
        "version": query.version,
        "position": query.position,
        "items": inline_items(query, answer),
        "done": done,
    }


def _inline_item(query: Query, answer: Answer, left: Remainder) -> dict[str, Any]:
    return {
        "insertText": left.text,
        "range": _replaced_range(query, left),
        "closers": _closers(query, left),
        "command": _command(answer, left),
    }


def _closers(query: Query, left: Remainder) -> list[dict[str, Any]]:
    """Return the closers of an item. Their offsets count a line end as one unit."""
    text = _LINE_END.sub("\n", left.text)
    closers = closers_while_typing(text, query.situation.suffix[: left.replace_after])
    return [
        {"character": character, "from": _units(query, text[:start])}
        | ({} if end is None else {"to": _units(query, text[:end])})
        for character, start, end in closers
    ]


def _with_line(query: Query, left: Remainder) -> Remainder:
    """Return a remainder that replaces the rest of the cursor's line, and ends with what it would have left of it.

    Its lines end in a bare newline: a client that draws over a line breaks the text there, and nowhere else.
    """
    line = split_lines(query.situation.suffix)[0].rstrip("\r\n")
    text = left.text.replace("\r\n", "\n") + line[left.replace_after :]
    return replace(left, text=text, replace_after=len(line))


def _well_indented(query: Query, left: Remainder) -> Remainder:
    """Return the start of a remainder that the client indents right. A shorter one replaces nothing.

    That is one line if the client's indentation is unknown, and those before an empty or dedented one if it indents.
    """
    first, *others = split_lines(left.text)
    if not query.profile.list_lines:
        right = []
    elif query.profile.list_mode is types.InsertTextMode.AdjustIndentation and (blanks := _indentation(query)):
        right = list(takewhile(lambda line: line.strip() and line.startswith(blanks), others))
    else:
        return left
    if len(right) == len(others):
        return left
    left = inserted(left, query.situation)
    return replace(left, text=left.text[: len(first + "".join(right))].rstrip("\r\n"))


def _relative_to_line(query: Query, text: str) -> str:
    """Return a text whose further lines have no indentation of the cursor's line: the client adds it to each."""
    first, *others = split_lines(text)
    return first + "".join(other.removeprefix(_indentation(query)) for other in others)


def _indentation(query: Query) -> str:
    """Return the blanks that the cursor's line starts with."""
    line = split_lines(query.situation.prefix)[-1]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _command(answer: Answer, left: Remainder) -> types.Command:
    return types.Command(title="", command=ACCEPTED_COMMAND, arguments=[answer.id, left.index])


def _replaced_range(query: Query, left: Remainder) -> types.Range:
    """Return the range that a remainder replaces, from the cursor on, in the text as it was when the query arrived."""
    line, character = query.position.line, query.position.character
    replaced = query.situation.suffix[: left.replace_after]  # never more than the cursor's line has
    return types.Range(query.position, types.Position(line, character + _units(query, replaced)))


def _word_before(query: Query) -> str:
    """Return the part of a word before the cursor. Clients filter a list by it, and the item replaces it."""
    before = query.situation.prefix
    characters = sum(1 for _ in takewhile(is_word_character, reversed(before)))
    return before[len(before) - characters :]


def _units(query: Query, text: str) -> int:
    return units_from_column(text, len(text), query.document.encoding)
