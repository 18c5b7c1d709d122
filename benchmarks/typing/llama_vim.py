"""Their side of benchmarks.typing: an editor with llama.vim, which asks a real llama-server.

Source: autoload/llama.vim of ggml-org/llama.vim, January 2026: what is sent on CursorMovedI, what is cached, the
speculative request behind a shown answer. In two things it is served better than by the plugin: requests start no curl,
and answers are streamed, so that text counts and shows when it is there, not when it is complete.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random

import httpx
import httpx_sse
import psutil

from benchmarks.typing.assistant import Buffer, Offer, now_s
from benchmarks.typing.llama_context import (
    N_PREFIX,
    N_SUFFIX,
    RING_CHUNK_LINES,
    RING_SCOPE,
    AnswerCache,
    ChunkRing,
    LocalContext,
    local_context,
)
from benchmarks.typing.llama_hint import presentable, without_blank_end
from benchmarks.typing.llama_server import LlamaServer
from benchmarks.typing.scripts import Script
from benchmarks.typing.tally import RequestRecord

N_PREDICT = 128
FIRST_PREDICT_MS = 250
"""The plugin's own bound of a request that is made for a key; a speculative one has the configured bound."""
T_MAX_PREDICT_MS = 500
T_MAX_PROMPT_MS = 500
MAX_LINE_SUFFIX = 8
_AGAIN_S = 0.1  # a request is tried again so long after another one is under way
_RING_UPDATE_S = 1.0
_RESTING_S = 3.0
_CHUNK_MOVES = 32
_TIMEOUT_S = 120.0


@dataclass(slots=True)
class _Asked:
    """A request that is under way.

    Attributes:
        lines: The document when it was made.
        record: Where it is logged; None for a speculative one, which nobody waits for.
        content: What came so far.
    """

    id: str
    context: LocalContext
    lines: Sequence[str]
    row: int
    record: RequestRecord | None
    content: str = ""

    def rest_at(self, context: LocalContext) -> str | None:
        """What of the content is left at another cursor."""
        (start, suffix), (now, suffix_now) = self.context.key, context.key
        typed = now.removeprefix(start)
        if suffix != suffix_now or len(typed) != len(now) - len(start) or not self.content.startswith(typed):
            return None
        return self.content[len(typed) :]


class LlamaVimEditor(Buffer):
    """One editor with llama.vim and a server of its own.

    Args:
        name: The row's name.
        options: Arguments of the server beside the preset's.
        threads: Of the server.
        seed: Of the plugin's random choices, and of the server's sampling.
    """

    def __init__(self, name: str, options: Sequence[str], threads: int, seed: int) -> None:
        super().__init__()
        self.name = name
        self._server = LlamaServer(options, threads)
        self._seed = seed
        # A connection of its own for each request, as the plugin's curl has.
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S, limits=httpx.Limits(max_keepalive_connections=0))
        self._ids = itertools.count(1)
        self._name = ""
        self._cache = AnswerCache()
        self._ring = ChunkRing(Random(seed))
        self._job: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._updates: asyncio.Task[None] | None = None
        self._growing: _Asked | None = None
        self._shown: Offer | None = None
        self._moved_s = 0.0
        self._is_normal_mode = True
        self._picked_row = -9999
        self._last_indent = -1
        self._expected: str | None = None

    async def start(self) -> None:
        """Start the server, and wait until its model is loaded."""
        await self._server.start()

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """The server; the plugin's own work is not counted."""
        return self._server.processes

    async def open(self, script: Script) -> None:
        """See `Assistant`; another file's answers and chunks stay, as they do in an editor."""
        self.load(script)
        self._name, self._picked_row, self._is_normal_mode = script.path, -9999, True
        self._updates = asyncio.create_task(self._update_ring())
        self._pick_around(0)

    async def close(self) -> None:
        """See `Assistant`."""
        if self._updates is not None:
            self._updates.cancel()
        self._pick_around(self._row_column()[0])
        self._shown = None

    def move(self, offset: int) -> None:
        """See `Assistant`: in normal mode nothing is asked, and the ring takes chunks in."""
        self.cursor, self._is_normal_mode, self._shown = offset, True, None
        self._moved_s = now_s()

    def edit(self, start: int, deleted: int, inserted: str) -> None:
        """See `Assistant`."""
        self._is_normal_mode = False
        self.apply(start, deleted, inserted)

    def ask(self, expected: str | None) -> None:
        """See `Assistant`: CursorMovedI hides, looks into the cache, then asks the server."""
        self._expected, self._moved_s = expected, now_s()
        shown, self._shown = self._shown, None
        self._try_hint(shown)
        self._fim(None, ())

    def offer(self) -> Offer | None:
        """See `Assistant`."""
        return self._shown

    def accept(self, offer: Offer, length: int) -> None:
        """See `Assistant`."""
        self.edit(self.cursor, 0, offer.text[:length])

    async def settle(self) -> None:
        """Wait until the server is idle: nothing of this session may cost the next one time."""
        self._is_normal_mode = True
        while self._job is not None or self._timer is not None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._job is not None:
                await self._job
        for request in self.requests:
            request.end(now_s())

    async def stop(self) -> None:
        """See `Assistant`."""
        await self._http.aclose()
        await self._server.stop()

    def _row_column(self) -> tuple[int, int]:
        before = self.text[: self.cursor]
        return before.count("\n"), len(before) - before.rfind("\n") - 1

    def _fim(self, place: tuple[int, int] | None, answer: Sequence[str]) -> None:
        """`llama#fim`: ask for the cursor (place None), or for what follows an answer that is shown."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._job is not None:
            self._timer = asyncio.get_running_loop().call_later(_AGAIN_S, self._again, place, answer)
            return
        lines = self.text.split("\n")
        row, column = place or self._row_column()
        if row >= len(lines):
            return
        context = local_context(lines, row, column, answer, self._last_indent)
        if len(context.line_suffix) > MAX_LINE_SUFFIX or self._cache.has(context.keys):
            return
        self._last_indent = context.indent
        here = self._row_column()[0]
        self._ring.evict_near(lines[max(0, here - RING_CHUNK_LINES // 2) : here + RING_CHUNK_LINES // 2 + 1])
        record = None
        if not answer:
            record = RequestRecord(now_s(), self._expected)
            self.requests.append(record)
        asked = _Asked(str(next(self._ids)), context, lines, row, record)
        self._job = asyncio.create_task(self._ask_server(asked))
        self._pick_far(lines, row)

    def _again(self, place: tuple[int, int] | None, answer: Sequence[str]) -> None:
        self._timer = None
        self._fim(place, answer)

    async def _ask_server(self, asked: _Asked) -> None:
        """Send a request; its text shows as it grows where nothing else does, and goes into the cache when complete."""
        body = self._body(asked.context, T_MAX_PREDICT_MS if asked.record is None else FIRST_PREDICT_MS)
        async with httpx_sse.aconnect_sse(self._http, "POST", f"{self._server.url}/infill", json=body) as source:
            source.response.raise_for_status()
            async with aclosing(source.aiter_sse()) as events:
                async for event in events:
                    message = json.loads(event.data)
                    asked.content += message["content"]
                    self._take(asked, done=message["stop"])
        self.received_characters += len(asked.content)
        self._job = self._growing = None
        if self._shown is None or self._shown.id == asked.id:
            self._try_hint(self._shown)

    def _take(self, asked: _Asked, *, done: bool) -> None:
        if done:
            asked.content = without_blank_end(asked.content)
            self._cache.insert(asked.context.keys, asked.content)
        if asked.record is not None:
            text = presentable(asked.content, asked.context, asked.lines, asked.row)
            asked.record.came(now_s(), text if text.strip() else "", "", done=done)
            if done:
                asked.record.refuse(now_s())
                asked.record.end(now_s())
        if not done and (self._shown is None or self._shown.id == asked.id):
            self._growing = asked
            self._try_hint(self._shown)

    def _try_hint(self, before: Offer | None) -> None:
        """`s:fim_try_hint`: show what the cache holds for the cursor, and ask for what follows it.

        Args:
            before: What was shown so far: text that is the rest of it has stood there since.
        """
        self._shown = None
        if self._is_normal_mode:
            return
        lines = self.text.split("\n")
        row, column = self._row_column()
        context = local_context(lines, row, column, (), -1)
        known, growing = self._cache.find(context), self._growing
        found = known if known is not None else growing.rest_at(context) if growing is not None else None
        text = presentable(found or "", context, lines, row)
        if not text.strip():
            return
        stays = before is not None and (before.text.endswith(text) or text.startswith(before.text))
        id_ = growing.id if known is None and growing is not None else str(next(self._ids))
        self._shown = Offer(id_, text, "", before.since_s if before is not None and stays else now_s())
        if known is not None:
            self._fim((row, column), text.split("\n"))

    def _body(self, context: LocalContext, predict_ms: int) -> dict[str, object]:
        return {
            "id_slot": 0,
            "input_prefix": context.prefix,
            "input_suffix": context.suffix,
            "input_extra": self._ring.extra(),
            "prompt": context.middle,
            "n_predict": N_PREDICT,
            "stop": [],
            "n_indent": context.indent,
            "top_k": 40,
            "top_p": 0.90,
            "samplers": ["top_k", "top_p", "infill"],
            "seed": self._seed,
            "stream": True,
            "cache_prompt": True,
            "t_max_prompt_ms": T_MAX_PROMPT_MS,
            "t_max_predict_ms": predict_ms,
        }

    async def _update_ring(self) -> None:
        """`s:ring_update`: in normal mode or at rest a waiting chunk joins the ring, and the server reads it."""
        while True:
            await asyncio.sleep(_RING_UPDATE_S)
            if (self._is_normal_mode or now_s() - self._moved_s >= _RESTING_S) and self._ring.take_in():
                body = {"id_slot": 0, "input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0}
                body |= {"input_extra": self._ring.extra(), "samplers": [], "cache_prompt": True}
                (await self._http.post(f"{self._server.url}/infill", json=body)).raise_for_status()

    def _pick_around(self, row: int) -> None:
        half = RING_CHUNK_LINES // 2
        self._ring.pick(self._name, self.text.split("\n")[max(0, row - half) : row + half + 1], evict=True)

    def _pick_far(self, lines: Sequence[str], row: int) -> None:
        """Chunks above and below the window, where the cursor has moved far."""
        if abs(row - self._picked_row) <= _CHUNK_MOVES:
            return
        self._ring.pick(self._name, lines[max(0, row - RING_SCOPE) : max(1, row - N_PREFIX + 1)], evict=False)
        self._ring.pick(self._name, lines[row + N_SUFFIX : row + N_SUFFIX + RING_CHUNK_LINES + 1], evict=False)
        self._picked_row = row
