"""KILL, TERM and STOP at named points of the server's and the host's life, in the midst of an editor's session."""

from __future__ import annotations

import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.tiny_models import write_tiny_model
from tests.torture import instruments
from tests.torture.echo_engine import echo
from tests.torture.points import ENGINE_POINTS, HOST_POINTS, SERVER_POINTS
from tests.torture.raw_client import LanguageClient
from tests.torture.tally import Round
from tests.torture.world import ANSWER_S, READY_S, World, introduce, kill

STRIKES = 4
SETTLING_S = 2 * READY_S  # a host that is killed while it loads is loaded twice
_TINY_SHARE = 0.1
_STOPPED_S = 1.0
_SIGNALS = ("KILL", "KILL", "KILL", "TERM", "STOP")
_LOST = (EOFError, BrokenPipeError, TimeoutError)


class Session:
    """An editor's short session; whatever is killed in it, the next request must be answered rightly in the end."""

    def __init__(self, world: World, chance: random.Random, settings: dict[str, object]) -> None:
        self.world = world
        self.chance = chance
        self.settings = settings
        self.is_echo = settings["model"] == "echo"
        self.client: LanguageClient | None = None
        self.uri = "file:///nowhere/a.py"
        self._version = 1

    def start(self, strike: str = "") -> LanguageClient:
        """Start a server that carries a strike, or whose host does."""
        (self.world.folder / "struck").unlink(missing_ok=True)
        self.client = self.world.server({instruments.STRIKE: strike} if strike else None)
        introduce(self.client, folders=(self._project(),), **self.settings)
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": "x = 1\n"}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        return self.client

    def work(self) -> None:
        """Edit, ask, accept, move about; nothing is checked, since anything may be dead by now."""
        client = self.client
        for number in range(4):
            id_, _ = self._ask(f"value_{number} = ")
            items = client.reply(id_, ANSWER_S).get("result", {}).get("items", [])
            if items:
                client.ask(
                    "workspace/executeCommand", {name: items[0]["command"][name] for name in ("command", "arguments")}
                )
            client.notify("textDocument/didSave", {"textDocument": {"uri": self.uri}})
            if self._is_struck():
                return
        client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        client.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": self.uri, "languageId": "python", "version": 1, "text": ""}},
        )

    def recovers(self) -> str:
        """Ask until the answer is right; what is wrong if it never is."""
        started = time.monotonic()
        while time.monotonic() < started + SETTLING_S:
            id_, expected = self._ask("again = ")
            items = self.client.reply(id_, ANSWER_S)["result"]["items"]
            if not items:
                with suppress(TimeoutError):  # the engine comes back: its status tells
                    self.client.read(0.2)
                continue
            self.world.tally.counts["requests"] += 1
            self.world.tally.recovered(started)
            return "" if not self.is_echo or items[0]["insertText"] == expected else "a stale item after a kill"
        return f"no suggestion within {SETTLING_S:.0f} s after"

    def _ask(self, text: str) -> tuple[int, str]:
        self._version += 1
        text += str(self._version)
        change = {"textDocument": {"uri": self.uri, "version": self._version}, "contentChanges": [{"text": text}]}
        self.client.notify("textDocument/didChange", change)
        self.world.tally.counts["edits"] += 1
        place = {"textDocument": {"uri": self.uri}, "position": {"line": 0, "character": len(text)}}
        return self.client.ask("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 1}}), echo(
            text, ""
        )

    def _project(self) -> Path:
        folder = self.world.folder / "project"
        folder.mkdir(exist_ok=True)
        (folder / "a.py").write_text("def first():\n    return 1\n")
        return folder

    def _is_struck(self) -> bool:
        return (self.world.folder / "struck").exists()


def run(tally: Round, strikes: int = STRIKES) -> None:
    """One round: some strikes in one pair of folders, so that what one leaves behind meets the next."""
    chance = random.Random(tally.seed)
    is_echo = chance.random() > _TINY_SHARE
    with World(tally, echo=is_echo, watched=False, nonsense=True) as world:
        model = "echo" if is_echo else str(write_tiny_model(world.folder / "tiny"))
        settings = {"model": model, "maxTokens": 8, "telemetry": True}
        points = [*SERVER_POINTS, *HOST_POINTS, *(() if is_echo else ENGINE_POINTS)]
        for _ in range(strikes):
            point, name = chance.choice(points), chance.choice(_SIGNALS)
            _strike(world, Session(world, chance, settings), f"{point}|SIG{name}|{chance.choice((1, 1, 2, 3))}")


def _strike(world: World, session: Session, strike: str) -> None:
    try:
        session.start(strike)
        session.work()
    except _LOST:
        pass
    _strike_by_hand(world, session, strike)
    world.tally.counts["kills"] += 1
    _wake(world, strike)
    client = session.client
    try:
        trouble = session.recovers()
    except _LOST:  # it was the server: another takes its place
        client.close(0.5)
        try:
            client = session.start()
            trouble = session.recovers()
        except (*_LOST, KeyError) as error:
            trouble = f"a new server does not work ({type(error).__name__}) after"
    if trouble:
        world.tally.found(f"{trouble} {strike}")
    _release(world)
    waker = threading.Timer(_STOPPED_S, _release, (world,))  # the point may lie in the farewell
    waker.start()
    if client.process.poll() is None:
        world.leave(client)
    waker.join()


def _strike_by_hand(world: World, session: Session, strike: str) -> None:
    """Where the point was not passed, or lies at the end: end the session, then kill the host as it stands."""
    if (world.folder / "struck").exists():
        return
    point, name, _ = strike.split("|")
    pids = [session.client.process.pid] if point in SERVER_POINTS else [host.pid for host in world.hosts()]
    for pid in pids:
        kill(pid, signal.Signals[name])


def _wake(world: World, strike: str) -> None:
    """A stopped server goes on after a moment, as when a laptop wakes; a stopped host must be replaced."""
    if "SIGSTOP" not in strike or strike.split("|", maxsplit=1)[0] not in SERVER_POINTS:
        return
    time.sleep(_STOPPED_S)
    _release(world)


def _release(world: World) -> None:
    for process in world.processes():
        with suppress(psutil.Error):
            if process.status() == psutil.STATUS_STOPPED:
                process.send_signal(signal.SIGCONT)
