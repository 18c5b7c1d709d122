"""An editor with one document and an engine that says what the test tells it to; all other parts are the real ones."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from lsprotocol import types

from completion.request import CompletionEvent, CompletionRequest, Statistics, Suggestion
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.documents.text_lines import Place
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.settings.experiment import NO_ARM
from lsp_server.settings.table import Settings
from lsp_server.suggesting.inline_completion import InlineCompleter
from lsp_server.suggesting.query import Query, situation_at
from lsp_server.suggesting.request_policy import RequestPolicy

URI = "file:///project/a.py"


class ScriptedEngine:
    """Streams the events that a test puts into it; one queue for each request."""

    def __init__(self):
        self.requests: list[CompletionRequest] = []
        self.queues: list[asyncio.Queue] = []
        self.closed: list[int] = []
        self.asked = asyncio.Event()
        self.released = asyncio.Event()

    async def complete(self, request):
        number = len(self.requests)
        self.requests.append(request)
        self.queues.append(asyncio.Queue())
        self.asked.set()
        try:
            while True:
                said = await self.queues[number].get()
                if isinstance(said, Exception):
                    raise said
                if said is None:
                    return
                yield said
        finally:
            self.closed.append(number)
            self.released.set()

    async def wait_for_request(self, count):
        while len(self.requests) < count:
            self.asked.clear()
            await self.asked.wait()

    async def say(self, text, *, done=False, number=-1, replace_after=0, dropped="", each_token=()):
        told = Suggestion(text or "", replace_after, sum(each_token), tuple(each_token))
        suggestions = () if text is None else (told,)
        statistics = Statistics() if done else None
        self.queues[number].put_nowait(CompletionEvent(suggestions, done, None, dropped, statistics))
        await settle()

    async def offer(self, *texts, done=False, number=-1):
        """Say several texts, all of them complete."""
        suggestions = tuple(Suggestion(text) for text in texts)
        statistics = Statistics() if done else None
        event = CompletionEvent(suggestions, done, statistics=statistics, whole=len(suggestions))
        self.queues[number].put_nowait(event)
        await settle()

    async def fail(self, error, number=-1):
        self.queues[number].put_nowait(error)
        await settle()


async def settle():
    """Let every task that can go on do so, until the loop has nothing left to call."""
    loop = asyncio.get_running_loop()
    while loop._ready:
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class ScriptedEditor:
    """Types into one document and asks for completions as an editor does."""

    def __init__(self, text="", cursor=None, language="python", **settings):
        self.settings = replace(Settings(debounce_ms=0, gate=Strictness.OFF, streaming=True), **settings)
        self.engine = ScriptedEngine()
        self.source = self.engine
        self.refusal = None
        self.clock = Clock()
        self.documents = DocumentStore()
        self.document = self.documents.open(types.TextDocumentItem(URI, language, 1, text))
        self.cursor = cursor if cursor is not None else len(text)
        self.partials = []
        self.answers = []
        self.gate = RequestPolicy(lambda: self.settings, lambda _uri: self.refusal, self.clock)
        self.completer = InlineCompleter(
            source=lambda: self.source,
            gate=self.gate,
            build_request=self._request,
            on_partial=lambda query, answer, done: self.partials.append((query, answer, done)),
            on_answer=self.note,
            clock=self.clock,
        )

    def settings_of(self, uri):
        """The settings that a document's request is answered by, and the side of an experiment that they are on."""
        return self.settings, NO_ARM

    def _request(self, query):
        text = query.situation
        return CompletionRequest(text.prefix, text.suffix, suggestions=query.wanted, invoked=query.invoked)

    def note(self, query, answer):
        """A query was answered."""
        self.answers.append(answer)

    def place(self):
        return self.document.lines.advance(Place(0, 0), self.cursor)

    def edit(self, start, end, text):
        """Replace a range of offsets, as `didChange` does; the cursor is left alone."""
        lines = self.document.lines
        positions = [
            self.document.position(lines.advance(Place(0, 0), at), PositionEncoding.UTF32) for at in (start, end)
        ]
        change = types.TextDocumentContentChangePartial(types.Range(*positions), text)
        edits = self.document.apply([change], self.document.version + 1, PositionEncoding.UTF32)
        self.edited(edits)

    def edited(self, edits):
        """The document changed: tell those who need to know, as the session does."""
        self.gate.note_edits(URI, edits)
        self.completer.document_changed(self.document, edits)

    def type(self, text, closed_by=""):
        """Type at the cursor; an editor may close a bracket by itself."""
        at = self.cursor
        self.cursor += len(text)
        self.edit(at, at, text + closed_by)

    def delete(self, count):
        self.cursor -= count
        self.edit(self.cursor, self.cursor + count, "")

    def ask(self, *, invoked=False):
        """Ask at the cursor; gives the task, which has had its first step."""
        place = self.place()
        settings, arm = self.settings_of(URI)
        query = Query(
            document=self.document,
            version=self.document.version,
            place=place,
            position=self.document.position(place, PositionEncoding.UTF16),
            situation=situation_at(self.document, place),
            invoked=invoked,
            received=self.clock(),
            settings=settings,
            arm=arm,
        )
        return asyncio.ensure_future(self.completer.answer(query))

    async def ask_and_hear(self, *said, invoked=False, **options):
        """Ask, and let the engine say texts, the last of them as its last."""
        count = len(self.engine.requests)
        task = self.ask(invoked=invoked)
        await self.engine.wait_for_request(count + 1)
        await settle()
        for text in said[:-1]:
            await self.engine.say(text, **options)
        await self.engine.say(said[-1], done=True, **options)
        return await task

    async def ask_and_be_offered(self, *whole, invoked=False):
        """Ask; the engine is asked, too, and writes these texts. Asked by no key, others may still come."""
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
    return [left.text for left in answer.remainders]
