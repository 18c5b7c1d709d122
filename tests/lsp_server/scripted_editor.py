"""An editor with one document and an engine whose output the test scripts. All other parts are the real ones."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from lsprotocol import types

from completion.request import CompletionEvent, CompletionRequest, Statistics, Suggestion
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.text_lines import Place
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.settings.client_profile import ClientProfile, ItemRange
from lsp_server.settings.experiment import NO_ARM
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.settings.table import Settings
from lsp_server.status import StatusReporter
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.query import Query, selected_text, situation_at
from lsp_server.suggesting.quiet_controls import QuietControls
from lsp_server.suggesting.request_policy import RequestPolicy
from tests.event_loop import settle

URI = "file:///project/a.py"


class ScriptedEngine:
    """Streams the events that a test gives it. Each request has its own queue."""

    def __init__(self):
        self.requests: list[CompletionRequest] = []
        self.queues: list[asyncio.Queue] = []
        self.closed: list[int] = []
        self.requested = asyncio.Event()
        self.released = asyncio.Event()

    async def complete(self, request):
        number = len(self.requests)
        self.requests.append(request)
        self.queues.append(asyncio.Queue())
        self.requested.set()
        try:
            while True:
                event = await self.queues[number].get()
                if isinstance(event, Exception):
                    raise event
                if event is None:
                    return
                yield event
        finally:
            self.closed.append(number)
            self.released.set()

    async def wait_for_request(self, count):
        while len(self.requests) < count:
            self.requested.clear()
            await self.requested.wait()

    async def say(self, text, *, done=False, number=-1, replace_after=0, dropped="", each_token=(), ends=(), line=0):
        suggestion = Suggestion(text or "", replace_after, sum(each_token), tuple(each_token), tuple(ends), line=line)
        suggestions = () if text is None else (suggestion,)
        statistics = Statistics() if done else None
        self.queues[number].put_nowait(CompletionEvent(suggestions, done, None, dropped, statistics))
        await settle()

    async def offer(self, *texts, done=False, number=-1):
        """Stream an event with several complete suggestions."""
        suggestions = tuple(Suggestion(text) for text in texts)
        statistics = Statistics() if done else None
        event = CompletionEvent(suggestions, done, statistics=statistics, whole=len(suggestions))
        self.queues[number].put_nowait(event)
        await settle()

    async def fail(self, error, number=-1):
        self.queues[number].put_nowait(error)
        await settle()


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class ScriptedEditor:
    """Types into one document and requests completions as an editor does."""

    def __init__(self, text="", cursor=None, language="python", folder=None, off_path=None, **settings):
        self.settings = replace(Settings(debounce_ms=0, gate=Strictness.OFF, streaming=True, ahead=False), **settings)
        self.engine = ScriptedEngine()
        self.source = self.engine
        self.refusal = None
        self.consulted = asyncio.Event()
        self.consulted.set()
        self.clock = Clock()
        self.documents = DocumentStore()
        self.document = self.documents.open(types.TextDocumentItem(URI, language, 1, text))
        self.cursor = cursor if cursor is not None else len(text)
        self.profile = ClientProfile(item_range=ItemRange.REPLACED)
        self.partials = []
        self.answers = []
        self.statuses = []
        status = StatusReporter(lambda _method, params: self.statuses.append(params))
        folders = WorkspaceFolders()
        folders.add([types.WorkspaceFolder(folder, "")] if folder else [])
        self.quiet = QuietControls(status, lambda _uri: self.settings, folders, HashedAnswers(off_path), self.clock)
        self.policy = RequestPolicy(
            lambda _uri: self.settings, self.quiet, lambda _uri: self.refusal, self._consult, self.clock
        )
        self.completer = InlineCompleter(
            source=lambda: self.source,
            policy=self.policy,
            build_request=self._request,
            on_partial=self.note_partial,
            on_answer=self.note,
        )

    def settings_of(self, uri):
        """Return the settings for a document's request, and the arm of the experiment that they belong to."""
        return self.settings, NO_ARM

    async def _consult(self, uri):
        """Wait for what says why the file is refused."""
        await self.consulted.wait()

    def _request(self, query):
        text = query.situation
        lines = 0 if query.invoked else query.settings.automatic_lines
        return CompletionRequest(
            text.prefix, text.suffix, suggestions=query.wanted, invoked=query.invoked, max_lines=lines
        )

    def note_partial(self, query, answer, done):
        """Record a part of an answer that is streamed."""
        self.partials.append((query, answer, done))

    def note(self, query, answer):
        """Record an answer."""
        self.answers.append(answer)

    def place(self):
        return self.document.lines.advance(Place(0, 0), self.cursor)

    def edit(self, start, end, text):
        """Replace a range of offsets, as `didChange` does, without moving the cursor."""
        self.edit_together((start, end, text))

    def edit_together(self, *replacements):
        """Replace ranges of offsets in one event, as `didChange` does: the last range of the text first."""
        changes = []
        for start, end, text in replacements:
            places = [self.document.lines.advance(Place(0, 0), at) for at in (start, end)]
            span = types.Range(*(self.document.position(place) for place in places))
            changes.append(types.TextDocumentContentChangePartial(span, text))
        self.edited(self.document.apply(changes, self.document.version + 1))

    def break_line(self, indentation):
        """Break the line at the cursor as VS Code does: what the line has of the same indentation alone is removed."""
        at = self.cursor
        self.edit_together((at, at, "\n" + indentation), (at - len(indentation), at, ""))
        self.cursor += 1

    def edited(self, edits):
        """Pass edits on to the policy and the completer, as the session does."""
        self.policy.note_edits(self.document, edits)
        self.completer.document_changed(self.document, edits)

    def type(self, text, closed_by=""):
        """Type at the cursor. `closed_by` is a closer that the editor adds after it."""
        at = self.cursor
        self.cursor += len(text)
        self.edit(at, at, text + closed_by)

    def delete(self, count):
        self.cursor -= count
        self.edit(self.cursor, self.cursor + count, "")

    def ask(self, *, invoked=False, selected=None):
        """Request a completion at the cursor, and return the task that waits for the answer."""
        place = self.place()
        settings, arm = self.settings_of(URI)
        query = Query(
            document=self.document,
            version=self.document.version,
            place=place,
            position=self.document.position(place),
            situation=situation_at(self.document, place),
            invoked=invoked,
            received=self.clock(),
            settings=settings,
            arm=arm,
            profile=self.profile,
        )
        return asyncio.ensure_future(self.completer.answer(replace(query, selected=selected_text(query, selected))))

    async def ask_and_hear(self, *said, invoked=False, **options):
        """Request a completion, let the engine stream these texts, the last as final, and return the answer."""
        count = len(self.engine.requests)
        task = self.ask(invoked=invoked)
        await self.engine.wait_for_request(count + 1)
        await settle()
        for text in said[:-1]:
            await self.engine.say(text, **options)
        await self.engine.say(said[-1], done=True, **options)
        return await task

    async def ask_and_be_offered(self, *whole, invoked=False):
        """Request a completion, let the engine stream these complete suggestions, and return the answer.

        For an automatic request, alternatives may follow the answer.
        """
        count = len(self.engine.requests)
        task = self.ask(invoked=invoked)
        await self.engine.wait_for_request(count + 1)
        await self.engine.offer(*whole, done=True)
        return await task

    async def close(self):
        self.completer.clear(URI)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def texts(answer):
    return [remainder.text for remainder in answer.remainders]
