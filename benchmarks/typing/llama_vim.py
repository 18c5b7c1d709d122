"""llama.vim in benchmarks.typing: an editor with the logic of the plugin and a real llama-server.

Source: autoload/llama.vim of ggml-org/llama.vim, January 2026: the request on CursorMovedI, the cache, the speculative
request after a shown answer. Two things are faster here than in the plugin: requests start no curl process, and answers
are streamed, so that text is shown when its first tokens are there and not when the answer is complete.
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
"""Time limit that the plugin sets for a request after a key. A speculative request has the configured limit."""
T_MAX_PREDICT_MS = 500
T_MAX_PROMPT_MS = 500
MAX_LINE_SUFFIX = 8
_RETRY_S = 0.1  # time until a request is tried again while another one runs
_RING_UPDATE_S, _PAUSE_S = 1.0, 3.0
_CHUNK_MOVES = 32
_TIMEOUT_S = 120.0


@dataclass(slots=True)
class _Asked:
    """A running request.

    Attributes:
        lines: Lines of the document when the request was sent.
        record: Record of the request; None for a speculative one, and if a suggestion was on the screen already.
        predict_ms: Time limit of the answer.
        content: Text that has come so far.
    """

    id: str
    context: LocalContext
    lines: Sequence[str]
    row: int
    record: RequestRecord | None
    predict_ms: int
    content: str = ""

    def rest_at(self, context: LocalContext) -> str | None:
        """Return the part of the content after another cursor, None if it does not fit there."""
        (start, suffix), (now, suffix_now) = self.context.key, context.key
        typed = now.removeprefix(start)
        if suffix != suffix_now or len(typed) != len(now) - len(start) or not self.content.startswith(typed):
            return None
        return self.content[len(typed) :]


class LlamaVimEditor(Buffer):
    """One editor with llama.vim and a server of its own.

    Args:
        name: Name of the row.
        options: Arguments of the server in addition to the preset.
        threads: Number of threads of the server.
        seed: Seed of the random choices of the plugin and of the sampling of the server.
    """

    def __init__(self, name: str, options: Sequence[str], threads: int, seed: int) -> None:
        super().__init__()
        self.name = name
        self._server = LlamaServer(options, threads)
        self._seed = seed
        # Each request has its own connection, like the curl process of the plugin.
        self._http = httpx.AsyncClient(timeout=_TIMEOUT_S, limits=httpx.Limits(max_keepalive_connections=0))
        self._ids = itertools.count(1)
        self._name, self._cache = "", AnswerCache()
        self._ring = ChunkRing(Random(seed))
        self._job: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._updates: asyncio.Task[None] | None = None
        self._growing: _Asked | None = None
        self._shown: Offer | None = None
        self._moved_s, self._is_normal_mode = 0.0, True
        self._picked_row = -9999
        self._last_indent = -1
        self._expected: str | None = None

    async def start(self) -> None:
        """Start the server and wait until its model is loaded."""
        await self._server.start()

    @property
    def processes(self) -> Sequence[psutil.Process]:
        """Return the server. The work of the plugin is not counted."""
        return self._server.processes

    async def open(self, script: Script) -> None:
        """See `Assistant`. Answers and chunks of other files stay, as they do in an editor."""
        self.load(script)
        self._name, self._picked_row, self._is_normal_mode = script.path, -9999, True
        self._updates = asyncio.create_task(self._update_ring())
        self._pick_around(0)

    async def close(self) -> None:
        """See `Assistant`."""
        if self._updates is not None and not self._updates.cancel():
            await self._updates  # it has failed, and the ring got no chunks since
        self._pick_around(self._row_column()[0])
        self._shown = None

    def move(self, offset: int) -> None:
        """See `Assistant`. In normal mode the plugin sends no request, and queued chunks join the ring."""
        self.cursor, self._is_normal_mode, self._shown = offset, True, None
        self._moved_s = now_s()

    def edit(self, start: int, deleted: int, inserted: str, behind: str = "") -> None:
        """See `Assistant`."""
        self._is_normal_mode = False
        self.apply(start, deleted, inserted, behind)

    def ask(self, expected: str | None) -> None:
        """See `Assistant`. CursorMovedI hides the text, reads the cache, then sends a request."""
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
        """Wait until the server is idle, so that this session does not delay the next one."""
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

    def _fim(self, cursor: tuple[int, int] | None, answer: Sequence[str]) -> None:
        """Send a request for the cursor (None), or for the text after a shown answer; `llama#fim` of the plugin."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._job is not None:
            self._timer = asyncio.get_running_loop().call_later(_RETRY_S, self._retry, cursor, answer)
            return
        lines = self.text.split("\n")
        row, column = cursor or self._row_column()
        if row >= len(lines):
            return
        context = local_context(lines, row, column, answer, self._last_indent)
        if len(context.line_suffix) > MAX_LINE_SUFFIX or self._cache.has(context.keys):
            return
        self._last_indent = context.indent
        here = self._row_column()[0]
        self._ring.evict_near(lines[max(0, here - RING_CHUNK_LINES // 2) : here + RING_CHUNK_LINES // 2 + 1])
        record = None
        if not answer and self._shown is None:
            record = RequestRecord(now_s(), self._expected)
            self.requests.append(record)
        limit_ms = T_MAX_PREDICT_MS if answer else FIRST_PREDICT_MS
        asked = _Asked(str(next(self._ids)), context, lines, row, record, limit_ms)
        self._job = asyncio.create_task(self._ask_server(asked))
        self._pick_far(lines, row)

    def _retry(self, cursor: tuple[int, int] | None, answer: Sequence[str]) -> None:
        self._timer = None
        self._fim(cursor, answer)

    async def _ask_server(self, asked: _Asked) -> None:
        """Send a request. Its growing text is shown if no other text is. Its complete text goes into the cache."""
        url, body = f"{self._server.url}/infill", self._body(asked)
        async with httpx_sse.aconnect_sse(self._http, "POST", url, json=body) as source:
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
        """Show the cached answer for the cursor and request the text after it; `s:fim_try_hint` of the plugin.

        Args:
            before: The text shown so far. A text that is its end or its extension keeps the time of its appearance.
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

    def _body(self, asked: _Asked) -> dict[str, object]:
        return {
            "id_slot": 0,
            "input_prefix": asked.context.prefix,
            "input_suffix": asked.context.suffix,
            "input_extra": self._ring.extra(),
            "prompt": asked.context.middle,
            "n_predict": N_PREDICT,
            "stop": [],
            "n_indent": asked.context.indent,
            "top_k": 40,
            "top_p": 0.90,
            "samplers": ["top_k", "top_p", "infill"],
            "seed": self._seed,
            "stream": True,
            "cache_prompt": True,
            "t_max_prompt_ms": T_MAX_PROMPT_MS,
            "t_max_predict_ms": asked.predict_ms,
        }

    async def _update_ring(self) -> None:
        """Move queued chunks into the ring in normal mode or in a pause, and send them; `s:ring_update`."""
        while True:
            await asyncio.sleep(_RING_UPDATE_S)
            if (self._is_normal_mode or now_s() - self._moved_s >= _PAUSE_S) and self._ring.take_in():
                body = {"id_slot": 0, "input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0}
                body |= {"input_extra": self._ring.extra(), "samplers": [], "cache_prompt": True}
                (await self._http.post(f"{self._server.url}/infill", json=body)).raise_for_status()

    def _pick_around(self, row: int) -> None:
        half = RING_CHUNK_LINES // 2
        self._ring.pick(self._name, self.text.split("\n")[max(0, row - half) : row + half + 1], evict=True)

    def _pick_far(self, lines: Sequence[str], row: int) -> None:
        """Queue chunks above and below the window after the cursor has moved far."""
        if abs(row - self._picked_row) <= _CHUNK_MOVES:
            return
        self._ring.pick(self._name, lines[max(0, row - RING_SCOPE) : max(1, row - N_PREFIX + 1)], evict=False)
        self._ring.pick(self._name, lines[row + N_SUFFIX : row + N_SUFFIX + RING_CHUNK_LINES + 1], evict=False)
        self._picked_row = row
