"""Times of next edits in the real language server: from the last key to the edit, and what they cost completions.

Files are edited from one release to the next, as a person does whose editor requests a next edit in each pause.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from lsprotocol import types

from benchmarks.engine_processes import private_folders
from benchmarks.figures import percentile, rounded
from benchmarks.language_client import ServerProcess
from benchmarks.next_edit.replay import Change, session
from lsp_server.messages import NEXT_EDIT

PAUSE_S = 0.1
"""Pause after a change after which Neovim's plugin requests the next edit, in seconds."""
WARM_UP_FILES = 2
"""Number of first files whose times do not count."""
_AFTER_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)  # time from a request for an edit to the next key
_URI = "file:///next_edit/{}"


class Window:
    """One window with a language server that types the changes of files."""

    def __init__(self, server: ServerProcess) -> None:
        self._client = server.client
        self._uri = ""
        self._version = 0

    def open(self, number: int, language: str, text: str) -> None:
        """Open a file."""
        self._uri, self._version = _URI.format(number), 1
        item = types.TextDocumentItem(self._uri, language, 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self) -> None:
        """Close the file."""
        document = types.TextDocumentIdentifier(self._uri)
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a range by a text."""
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(self._version, self._uri)
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def next_edit(self) -> asyncio.Future[Any]:
        """Request the next edit."""
        document = {"uri": self._uri, "version": self._version}
        context = {"triggerKind": types.InlineCompletionTriggerKind.Automatic.value}
        params = {"textDocument": document, "context": context}
        reply: asyncio.Future[Any] = asyncio.ensure_future(self._client.protocol.send_request_async(NEXT_EDIT, params))
        return reply

    async def completion_ms(self, line: int, column: int) -> float:
        """Request a completion and return the time until it is there, in milliseconds."""
        started = time.perf_counter()
        await self._client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
                types.TextDocumentIdentifier(self._uri),
                types.Position(line, column),
            )
        )
        return 1e3 * (time.perf_counter() - started)


async def times(records: Sequence[Mapping[str, Any]], model: str, threads: int) -> dict[str, float | None]:
    """Return the median times by name, None where there are too few.

    `p50_ms` is the time from the last key of a change to an edit, the plugin's pause included. `key_overhead_ms`
    is the median difference between completions one key later, with a next edit being found and without;
    `key_overhead_p95_ms` is its 95th percentile.
    """
    shown_ms: list[float] = []
    added_ms: list[float] = []
    async with AsyncExitStack() as stack:
        environment = stack.enter_context(private_folders())
        server = ServerProcess({"model": model, "threads": threads, "debounceMs": 0, "prepareMs": 0})
        await server.start(environment)
        stack.push_async_callback(server.stop)
        await server.wait_for_engine()
        window = Window(server)
        keys = itertools.count()
        for number, record in enumerate(records):
            edited = session(record)
            window.open(number, record["language"], edited.text)
            for change in edited.changes:
                found_ms = await _edit_ms(window, change)
                difference_ms = await _overhead_ms(window, change.start, next(keys))
                if number >= WARM_UP_FILES:
                    shown_ms += [] if found_ms is None else [found_ms]
                    added_ms.append(difference_ms)
            window.close()
            server.check()
    return {
        "p50_ms": rounded(percentile(shown_ms, 0.5), 1),
        "requests_shown": len(shown_ms),
        "key_overhead_ms": rounded(percentile(added_ms, 0.5), 2),
        "key_overhead_p95_ms": rounded(percentile(added_ms, 0.95), 2),
        "keys": len(added_ms),
    }


async def _edit_ms(window: Window, change: Change) -> float | None:
    """Make a change and return the time until a next edit is there, in milliseconds; None if there is none."""
    started = time.perf_counter()
    window.change((change.start, 0), (change.end, 0), "".join(f"{line}\n" for line in change.new))
    await asyncio.sleep(PAUSE_S)
    answer = await window.next_edit()
    return 1e3 * (time.perf_counter() - started) if answer.edits else None


async def _overhead_ms(window: Window, line: int, number: int) -> float:
    """Return by how much a next edit that is being found delays the completion of the next key, in milliseconds.

    The key comes up to 100 ms after the request for the edit. `number` varies this, and what is measured first: the
    order is one, other, other, one. The first completion of all is not measured: it computes what the others reuse.
    """
    found: dict[bool, list[float]] = {False: [], True: []}
    one, other = number % 2 == 0, number % 2 == 1
    after_s = _AFTER_S[number // 2 % len(_AFTER_S)]
    window.change((line, 0), (line, 0), "\n")
    for turn, is_finding in enumerate((False, one, other, other, one)):
        window.change((line, 0), (line, 0), "f")  # the key before
        await window.completion_ms(line, 1)
        running = window.next_edit() if is_finding else None
        await asyncio.sleep(after_s)
        window.change((line, 1), (line, 1), "o")
        took_ms = await window.completion_ms(line, 2)
        if turn:
            found[is_finding].append(took_ms)
        if running is not None:
            await running
        window.change((line, 0), (line, 2), "")
    window.change((line, 0), (line + 1, 0), "")
    return statistics.mean(found[True]) - statistics.mean(found[False])
