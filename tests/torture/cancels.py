"""Requests that are withdrawn at every moment of their stream: each is answered, and no connection is left behind."""

from __future__ import annotations

import random
import time
from collections import deque

import psutil

from tests.torture import instruments
from tests.torture.echo_engine import echo
from tests.torture.raw_client import LanguageClient
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, World

SECONDS = 20.0
PACE_S = 0.001
IN_FLIGHT = 12
LONGEST_WAIT_S = 0.03
"""Longer than a whole stream of the paced engine takes."""
_URI = "file:///nowhere/typed.py"
_CANCELLED = -32800


class Withdrawer:
    """An editor that withdraws nearly every request: by a cancel, by the next key, or never."""

    def __init__(self, client: LanguageClient, tally: Round, chance: random.Random) -> None:
        self.client = client
        self.tally = tally
        self.chance = chance
        self._number = 0
        self._asked: deque[int] = deque()
        client.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": _URI, "languageId": "python", "version": 0, "text": ""}},
        )

    def withdraw(self) -> None:
        """Type, ask, and withdraw what was asked at some moment before or after its end."""
        self._asked.append(self._ask()[0])
        time.sleep(self.chance.choice((0.0, 0.0, self.chance.uniform(0.0, LONGEST_WAIT_S))))
        if self.chance.random() < 0.7:
            self.client.notify("$/cancelRequest", {"id": self.chance.choice(self._asked)})
        while len(self._asked) > IN_FLIGHT:
            self._hear(self._asked.popleft())
        self.client.notifications.clear()

    def settle(self) -> None:
        """Hear the answer to each request that was sent; then one more is answered rightly."""
        while self._asked:
            self._hear(self._asked.popleft())
        id_, text = self._ask()
        items = self._hear(id_)["result"]["items"]
        if [item["insertText"] for item in items] != [echo(text, "\n")]:
            self.tally.found("after withdrawn requests a good one gets another answer")

    def _ask(self) -> tuple[int, str]:
        """Send a text that nobody has asked about, and a request at its end."""
        self._number += 1
        text = f"value_{self._number} = "
        self.client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": _URI, "version": self._number}, "contentChanges": [{"text": f"{text}\n"}]},
        )
        place = {"textDocument": {"uri": _URI}, "position": {"line": 0, "character": len(text)}}
        self.tally.counts["requests"] += 1
        return self.client.ask("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}}), text

    def _hear(self, id_: int) -> dict[str, object]:
        try:
            reply = self.client.reply(id_, ANSWER_S)
        except TimeoutError:
            self.tally.counts["unanswered"] += 1
            self.tally.found("a request that was withdrawn was not answered")
            return {"result": {"items": []}}
        if "error" in reply and reply["error"]["code"] != _CANCELLED:
            self.tally.found(f"a request was refused: {reply['error']['message'][:100]}")
        return reply


def run(tally: Round, seconds: float = SECONDS) -> None:
    """One round: one server and a host that sends an event each millisecond."""
    chance = random.Random(tally.seed)
    with World(tally, **{instruments.ENGINE: str(PACE_S)}) as world:
        client = world.ready(streaming=chance.random() < 0.5)
        editor = Withdrawer(client, tally, chance)
        editor.settle()
        usual = _sockets(client)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            editor.withdraw()
        editor.settle()
        _check_connections(editor, usual)
        world.leave(client)


def _check_connections(editor: Withdrawer, usual: int) -> None:
    """The server's connections go back to their usual number: those without a request are closed after some seconds."""
    deadline = time.monotonic() + ANSWER_S
    while (left := _sockets(editor.client) - usual) > 0:
        if time.monotonic() > deadline:
            editor.tally.found(f"left behind: {left} connections to the host")
            return
        time.sleep(1)
        editor.settle()  # a request makes the server look at its connections


def _sockets(client: LanguageClient) -> int:
    return len(psutil.Process(client.process.pid).net_connections("all"))
