"""The real language server with a stopwatch: `python -m benchmarks.editor_latency.stopwatch_server LOG --stdio`.

Every line of the log is a JSON object with `at`, the machine's monotonic clock in seconds, and `what`: "in" and "out"
for a message and its size in bytes, "asked" for an editor's request, "wait" for the chosen debounce, "engine" for a
request to the engine, "first" for its first text, "done" with the engine's own time to it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from pygls.io_ import StdoutWriter

from completion.request import CompletionEvent, CompletionRequest
from lsp_server import __main__ as entry
from lsp_server import transport
from lsp_server.engine import link as engine_link
from lsp_server.engine.client import EngineClient
from lsp_server.suggesting import inline_completion
from lsp_server.suggesting.typing_rhythm import TypingRhythm

_REQUEST = b'"textDocument/inlineCompletion"'


class Stopwatch:
    """Writes what happens and when; a line at a time, so that another process can follow."""

    def __init__(self, path: Path) -> None:
        self._log = path.open("a", buffering=1, encoding="utf-8")

    def note(self, what: str, **values: float) -> None:
        """Write one event."""
        self._log.write(json.dumps({"at": time.monotonic(), "what": what, **values}) + "\n")


def install(stopwatch: Stopwatch) -> None:
    """Put the timed parts in place of the server's own; they do the same."""

    class TimedReader(transport.MessageReader):
        async def readexactly(self, size: int) -> bytes:
            body = await super().readexactly(size)
            stopwatch.note("in", size=size)
            if _REQUEST in body:
                stopwatch.note("asked")
            return body

    class TimedWriter(StdoutWriter):
        def write(self, data: bytes) -> None:
            super().write(data)
            stopwatch.note("out", size=len(data))

    class TimedRhythm(TypingRhythm):
        def wait_s(self, configured_s: float) -> float:
            wait_s = super().wait_s(configured_s)
            stopwatch.note("wait", ms=1000 * wait_s)
            return wait_s

    class TimedClient(EngineClient):
        async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionEvent]:
            stopwatch.note("engine")
            has_text = False
            async with aclosing(super().complete(request)) as events:
                async for event in events:
                    if not has_text and any(one.text for one in event.suggestions):
                        has_text = True
                        stopwatch.note("first")
                    if event.done:
                        stopwatch.note("done", ms=event.statistics.first_text_ms if event.statistics else 0.0)
                    yield event

    parts: list[tuple[object, type]] = [(transport, TimedReader), (transport, TimedWriter)]
    for module, part in [*parts, (engine_link, TimedClient), (inline_completion, TimedRhythm)]:
        setattr(module, part.__bases__[0].__name__, part)


if __name__ == "__main__":
    install(Stopwatch(Path(sys.argv[1])))
    sys.exit(entry.main(sys.argv[2:]))
