"""A pytest-lsp client of a real server process, which records the server's notifications."""

import asyncio
import os
import sys
from pathlib import Path

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

ROOT = Path(__file__).parents[2]
NOTEBOOK = "file:///n.ipynb"
COMMAND = (sys.executable, "-P", "-m", "lsp_server")


def environment(**extra):
    return {**os.environ, "PYTHONPATH": str(ROOT), **extra}


class RealClient:
    """One client with its own server process."""

    def __init__(self):
        self.lsp: LanguageClient = make_test_lsp_client()
        self.partials = []
        self.statuses = []
        self.partial_edits = []
        self.received = asyncio.Condition()
        self.result = None
        self.stopped = False
        self.watched = []
        self.questions = []
        self._record("draftline/partialCompletion", self.partials)
        self._record("draftline/partialEdit", self.partial_edits)
        self._record("draftline/status", self.statuses)

        @self.lsp.feature(types.CLIENT_REGISTER_CAPABILITY)
        async def register(params):
            options = [one.register_options for one in params.registrations]
            self.watched += [one["globPattern"] for some in options for one in some.get("watchers", ())]
            async with self.received:
                self.received.notify_all()

    def _record(self, method, record):
        @self.lsp.feature(method)
        async def receive(params):
            record.append(params)
            async with self.received:
                self.received.notify_all()

    def answer_questions(self, title, left_open=None):
        """Answer every question with the action of a title, or none; a title "" waits for `left_open`."""

        @self.lsp.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        async def choose(params):
            self.questions.append(params)
            async with self.received:
                self.received.notify_all()
            if title == "":
                await left_open.wait()
            return next((action for action in params.actions if action.title == title), None)

    async def until(self, condition, timeout_s=60):
        """Wait until notifications of the server make a condition true."""
        async with self.received:
            await asyncio.wait_for(self.received.wait_for(condition), timeout_s)

    async def start(
        self,
        *,
        folders=(),
        inline=True,
        encodings=("utf-16",),
        progress=False,
        watches=False,
        process_id=None,
        name="",
        command=COMMAND,
        **options,
    ):
        await self.lsp.start_io(*command, "--stdio", env=environment())
        text_document = types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities() if inline else None
        )
        self.result = await self.lsp.initialize_session(
            types.InitializeParams(
                process_id=process_id,
                client_info=types.ClientInfo(name),
                capabilities=types.ClientCapabilities(
                    text_document=text_document,
                    general=types.GeneralClientCapabilities(position_encodings=list(encodings)),
                    window=types.WindowClientCapabilities(work_done_progress=progress),
                    notebook_document=types.NotebookDocumentClientCapabilities(
                        types.NotebookDocumentSyncClientCapabilities()
                    ),
                    workspace=types.WorkspaceClientCapabilities(
                        configuration=True,
                        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(watches),
                    ),
                ),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders],
                initialization_options={"debounceMs": 0, **options},
            )
        )
        return self

    async def ready(self, timeout_s=60):
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

    def open_notebook(self, texts):
        """Open a notebook of Python cells, by their URIs."""
        kind = types.NotebookCellKind.Code
        notebook = types.NotebookDocument(NOTEBOOK, "jupyter", 1, [types.NotebookCell(kind, uri) for uri in texts])
        cells = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in texts.items()]
        self.lsp.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, cells))

    def change_cell(self, uri, version, start, end, text):
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(version, uri), [change]
        )
        self.change_notebook(version, types.NotebookDocumentCellChanges(text_content=[content]))

    def change_notebook(self, version, cells):
        named = types.VersionedNotebookDocumentIdentifier(version, NOTEBOOK)
        change = types.NotebookDocumentChangeEvent(cells=cells)
        self.lsp.notebook_document_did_change(types.DidChangeNotebookDocumentParams(named, change))

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
    """Permit the paced engine to take more steps."""
    engine.permits.release(count)
