"""The same keys in two clients without a window, one that is sent growing text and one that is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lsprotocol import types

from benchmarks.language_client import ServerProcess
from lsp_server.messages import DID_MOVE_CURSOR

LONGEST_S = 60.0
PAUSE_S = 0.6  # the server prepares the engine for a cursor that rests for 0.15 s
SETTINGS = {"quiet_ms": 0, "gate": "off", "ahead": False, "suggestions": 1}  # every key has an answer of its own

ENUM = """from enum import Enum


class Colour(Enum):
    RED = 1
    GREEN = 2
"""
STACK = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
"""
LINE = (f"{ENUM}    ", "B")
BLOCKS = ((ENUM, "    "), (STACK, "        "), ("def mean(values):\n", "    "))
"""Ends of texts, each with the indentation that is typed there: the model writes a block."""


class Keys:
    """One client and its server; each key is typed at the end of a new document.

    Args:
        streaming: Whether the server sends growing text.
    """

    def __init__(self, *, streaming: bool) -> None:
        self._first = asyncio.Event()
        self._server = ServerProcess({**SETTINGS, "streaming": streaming}, self._on_partial)
        self._documents = 0

    def _on_partial(self, params: Any) -> None:  # noqa: ANN401 - the project's own message has no type
        if params.items:
            self._first.set()

    async def start(self, environment: Mapping[str, str]) -> None:
        """Start the server and wait until its engine is ready."""
        await self._server.start(environment)
        await self._server.wait_for_engine()

    async def press(self, text: str, key: str) -> float:
        """Return the milliseconds from a key to the first text that the client has.

        Raises:
            SystemExit: There was no text within `LONGEST_S`.
        """
        client, self._documents = self._server.client, self._documents + 1
        uri = f"file:///first_answer/{self._documents}.py"
        lines = text.split("\n")
        end = types.Position(len(lines) - 1, len(lines[-1]))
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))
        client.protocol.notify(DID_MOVE_CURSOR, {"uri": uri, "position": end})
        await asyncio.sleep(PAUSE_S)
        self._first.clear()
        change = types.TextDocumentContentChangePartial(types.Range(end, end), key)
        named = types.VersionedTextDocumentIdentifier(2, uri)
        started = time.monotonic()
        client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))
        asked = asyncio.ensure_future(client.text_document_inline_completion_async(_asked(uri, end, key)))
        first = asyncio.ensure_future(self._first.wait())
        done, _ = await asyncio.wait({asked, first}, timeout=LONGEST_S, return_when=asyncio.FIRST_COMPLETED)
        took_ms = 1000 * (time.monotonic() - started)
        first.cancel()
        if not done or (first not in done and not getattr(asked.result(), "items", ())):
            raise SystemExit(f"There was no text after {key!r} at the end of {lines[-1]!r}.")
        await asked
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        return took_ms

    async def stop(self) -> None:
        """End the server."""
        await self._server.stop()


def _asked(uri: str, end: types.Position, key: str) -> types.InlineCompletionParams:
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    position = types.Position(end.line, end.character + len(key))
    return types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), position)


async def first_answers(
    environment: Mapping[str, str], places: Sequence[tuple[str, str]], rounds: int, *, streaming: bool
) -> list[float]:
    """Press each key `rounds` times after one warm-up; return the milliseconds to the first text."""
    keys = Keys(streaming=streaming)
    await keys.start(environment)
    try:
        samples = [await keys.press(text, key) for _ in range(rounds + 1) for text, key in places]
    finally:
        await keys.stop()
    return samples[len(places) :]
