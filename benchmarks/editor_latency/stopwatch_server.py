"""The real language server with a log of times: `python -m benchmarks.editor_latency.stopwatch_server LOG --stdio`.

Each line of the log is a JSON object with `at`, the monotonic clock of the machine in seconds, and `what`:

- "in" and "out": a message, with its size in bytes
- "asked": a request of the editor
- "wait": the chosen debounce
- "engine": a request to the engine
- "first": the first text from the engine
- "done": the last text, with the time to the first text that the engine measured
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
    """Writer of the log. It flushes each line, so that another process can follow."""

    def __init__(self, path: Path) -> None:
        self._log = path.open("a", buffering=1, encoding="utf-8")

    def note(self, what: str, **values: float) -> None:
        """Write one event."""
        self._log.write(json.dumps({"at": time.monotonic(), "what": what, **values}) + "\n")


def install(stopwatch: Stopwatch) -> None:
    """Replace parts of the server by subclasses that only add the log."""

    class TimedReader(transport.MessageReader):
        async def next_body(self, limit_bytes: int) -> bytes:
            body = await super().next_body(limit_bytes)
            stopwatch.note("in", size=len(body))
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
