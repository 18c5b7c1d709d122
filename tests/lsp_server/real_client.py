"""A pytest-lsp client that speaks to a real server process, and remembers what the server says."""

import asyncio
import os
import sys
from pathlib import Path

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-P", "-m", "lsp_server")


def environment(**extra):
    return {**os.environ, "PYTHONPATH": str(ROOT), **extra}


class RealClient:
    """One editor with one server."""

    def __init__(self):
        self.lsp: LanguageClient = make_test_lsp_client()
        self.partials = []
        self.statuses = []
        self.heard = asyncio.Condition()
        self.result = None
        self.stopped = False
        for method, place in (("draftline/partialCompletion", self.partials), ("draftline/status", self.statuses)):
            self._remember(method, place)

    def _remember(self, method, place):
        @self.lsp.feature(method)
        async def remember(params):
            place.append(params)
            async with self.heard:
                self.heard.notify_all()

    async def until(self, condition, timeout_s=30):
        """Wait until something that the server said makes a condition true."""
        async with self.heard:
            await asyncio.wait_for(self.heard.wait_for(condition), timeout_s)

    async def start(self, *, folders=(), inline=True, encodings=("utf-16",), progress=False, **options):
        await self.lsp.start_io(*COMMAND, "--stdio", env=environment())
        text_document = types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities() if inline else None
        )
        self.result = await self.lsp.initialize_session(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    text_document=text_document,
                    general=types.GeneralClientCapabilities(position_encodings=list(encodings)),
                    window=types.WindowClientCapabilities(work_done_progress=progress),
                    notebook_document=types.NotebookDocumentClientCapabilities(
                        types.NotebookDocumentSyncClientCapabilities()
                    ),
                    workspace=types.WorkspaceClientCapabilities(configuration=True),
                ),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders],
                initialization_options={"debounceMs": 0, **options},
            )
        )
        return self

    async def ready(self, timeout_s=30):
        await self.until(lambda: any(status.kind in ("ready", "error") for status in self.statuses), timeout_s)
        return next(status for status in reversed(self.statuses) if status.kind in ("ready", "error"))

    def open(self, uri, text, language="python"):
        self.lsp.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 1, text)))

    def change(self, uri, version, start, end, text):
        range_ = types.Range(types.Position(*start), types.Position(*end))
        self.lsp.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangePartial(range_, text)],
            )
        )

    async def complete(self, uri, line, character, *, invoked=False):
        kind = types.InlineCompletionTriggerKind
        result = await self.lsp.text_document_inline_completion_async(
            types.InlineCompletionParams(
                types.InlineCompletionContext(kind.Invoked if invoked else kind.Automatic),
                types.TextDocumentIdentifier(uri),
                types.Position(line, character),
            )
        )
        return list(result.items)

    async def stop(self):
        if self.stopped:
            return
        self.stopped = True
        await self.lsp.shutdown_session()
        await self.lsp.stop()


def steps(engine, count):
    """Let the paced engine take steps, each when it waits for one."""
    engine.permits.release(count)
