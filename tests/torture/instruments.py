"""What a process of an attack carries: a signal at a named point, a clock of deafness, limits, an echo engine.

The product's own command lines start the processes; `site/sitecustomize.py` installs the instruments that the
environment names. Every wrapped function still does its work.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.machinery
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

FOLDER = "TORTURE_FOLDER"  # where processes report: leaks, deafness, strikes
STRIKE = "TORTURE_STRIKE"  # POINT|SIGNAL|NTH
ENGINE = "TORTURE_ENGINE"  # a number: the host serves the echo engine with this pace, in seconds
FILE_BYTES = "TORTURE_FILE_BYTES"  # the longest file that may be written
CLOCK = "TORTURE_CLOCK"  # a seed: the wall clock jumps, backwards too

BEAT_S = 0.02
_WORTH_A_LINE_MS = 30.0

Patch = Callable[[object], None]


def install() -> None:
    """Put in what the environment names; nothing outside an attack."""
    if FOLDER not in os.environ:
        return
    if FILE_BYTES in os.environ:
        limit = int(os.environ[FILE_BYTES])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if CLOCK in os.environ:
        _jump(random.Random(os.environ[CLOCK]))
    patches: dict[str, list[tuple[str, Callable[[Callable], Callable]]]] = {}
    for point, wrap in _wrappers():
        module, _, name = point.partition(":")
        patches.setdefault(module, []).append((name, wrap))
    _when_imported(patches)


def report(name: str, **fields: object) -> None:
    """Append a line to one of the attack's reports; safe from several processes."""
    line = json.dumps({"pid": os.getpid(), **fields}) + "\n"
    try:
        descriptor = os.open(Path(os.environ[FOLDER]) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)
    except OSError:  # the attack may have taken the disk away
        return


def _wrappers():
    yield "lsp_server.session:Session.start", _with_beat
    yield "completion.host.server:HostServer._note_loaded", _with_beat
    yield "completion.host.worker:EngineWorker._serve", _job
    yield "completion.cancellation:CancelToken.raise_if_cancelled", _check
    yield "completion.decoding.joint_passes:_Request.wait", _wait
    yield "completion.decoding.joint_passes:JointPasses._score", _shared_pass
    yield "completion.engine:Engine._plan", _planned
    if ENGINE in os.environ:
        yield "completion.host.process.lifetime:serve", _with_echo
    if strike := os.environ.get(STRIKE):
        point, name, nth = strike.split("|")
        yield point, functools.partial(_struck, point, signal.Signals[name], int(nth))


def _when_imported(patches) -> None:
    loader = importlib.machinery.SourceFileLoader
    execute = loader.exec_module

    def exec_module(self, module):
        execute(self, module)
        for name, wrap in patches.get(module.__name__, ()):
            *path, last = name.split(".")
            owner = functools.reduce(getattr, path, module)
            setattr(owner, last, wrap(getattr(owner, last)))

    loader.exec_module = exec_module


def _struck(point: str, number: signal.Signals, nth: int, function: Callable) -> Callable:
    """Send this process a signal when the point is passed for the nth time; once in all processes of the attack."""
    passed = 0

    @functools.wraps(function)
    def wrapper(*arguments, **options):
        nonlocal passed
        passed += 1
        if passed == nth:
            try:
                (Path(os.environ[FOLDER]) / "struck").touch(exist_ok=False)
            except FileExistsError:
                return function(*arguments, **options)
            report("strikes", point=point, signal=number.name)
            if number is signal.SIGSTOP and point.startswith(
                "lsp_server."
            ):  # as when a laptop sleeps; a host is replaced
                subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"], start_new_session=True)
            os.kill(os.getpid(), number)
        return function(*arguments, **options)

    return wrapper


def _with_echo(serve: Callable) -> Callable:
    from tests.torture.echo_engine import EchoEngine  # imports the product: only once it is being imported anyway

    engine = EchoEngine(float(os.environ[ENGINE]))
    return lambda settings, _load, on_listening: serve(settings, engine.load, on_listening)


def _jump(chance: random.Random) -> None:
    """Make the wall clock jump by days at every look, backwards as often as forwards."""
    true_time = time.time
    time.time = lambda: true_time() + chance.choice((0.0, -1e5, 1e5, -1e7))


# --- deafness -------------------------------------------------------------------------------------------------------


class _Deafness:
    """Time that this thread did not listen, without the time that the system gave the processors to other programs.

    The thread may wait for the interpreter's lock, or for a helper thread of a kernel, whose holder waits for a
    processor. `run_delay`, second field of /proc/self/task/*/schedstat (Linux, sched-stats.rst), says how long each
    thread waited for one. Three kinds are reported:

    deaf: Without the longest wait of a thread. Exact if at most a few other programs compute.
    computed: Processor time of this thread. Other programs do not make it longer.
    blocked: Without the waits of all threads, which may have waited one after the other. It still has the waits of
        threads that ended and of child processes: 408 ms at a load of 7 on two cores.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._longest_ms: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        self._since, self._computed_s, self._waited_ns = time.perf_counter(), time.thread_time(), _run_delays_ns()

    def note(self, expected_s: float = 0.0) -> None:
        """The thread listens now: report if it was deaf for longer than ever."""
        elapsed_s = time.perf_counter() - self._since - expected_s
        computed_s = time.thread_time() - self._computed_s
        waits_s = [(delay - self._waited_ns.get(thread, 0)) / 1e9 for thread, delay in _run_delays_ns().items()]
        kinds = {"deaf": elapsed_s - max(waits_s), "computed": computed_s, "blocked": elapsed_s - sum(waits_s)}
        for kind, seconds in kinds.items():
            if 1000 * seconds > self._longest_ms.get(kind, _WORTH_A_LINE_MS):
                self._longest_ms[kind] = 1000 * seconds
                report("deaf", where=self._where, kind=kind, ms=round(1000 * seconds, 1))
        self.restart()


def _run_delays_ns() -> dict[str, int]:
    """How long each thread of this process has waited for a processor since it started."""
    delays, threads = {}, {task.name for task in Path("/proc/self/task").iterdir()}
    with _schedules_lock:
        for ended in _schedules.keys() - threads:
            os.close(_schedules.pop(ended))
        for thread in threads:
            with contextlib.suppress(OSError, IndexError):  # the thread ends just now
                if thread not in _schedules:
                    _schedules[thread] = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
                delays[thread] = int(os.pread(_schedules[thread], 64, 0).split()[1])
    return delays


_schedules: dict[str, int] = {}
"""The open file of each thread: reading it is quick, opening it is not."""
_schedules_lock = threading.Lock()

_of_job: ContextVar[_Deafness | None] = ContextVar("deafness", default=None)
"""The clock of the job that runs; jobs that share passes have a context each."""


def _with_beat(ready: Callable) -> Callable:
    """Start the event loop's clock when the process is ready: before, it imports, and there is nothing to cancel."""

    @functools.wraps(ready)
    def wrapper(*arguments, **options):
        _beats.append(asyncio.create_task(beat(f"event loop of {Path(sys.argv[0]).parent.name or sys.argv[0]}")))
        return ready(*arguments, **options)

    return wrapper


_beats: list[asyncio.Task[None]] = []
"""The clocks: a task that nobody refers to may be collected."""


async def beat(where: str) -> None:
    """Report for how long the event loop is deaf."""
    deafness = _Deafness(where)
    while True:
        deafness.restart()
        await asyncio.sleep(BEAT_S)
        deafness.note(BEAT_S)


def _job(serve: Callable) -> Callable:
    @functools.wraps(serve)
    def wrapper(worker, engine, job):
        deafness = _Deafness(f"engine's thread: {job.urgency.name.lower()}")
        _of_job.set(deafness)
        try:
            return serve(worker, engine, job)
        finally:
            deafness.note()
            _of_job.set(None)

    return wrapper


def _wait(wait: Callable) -> Callable:
    """While a job waits for others, their clocks run."""

    @functools.wraps(wait)
    def wrapper(request, cancel):
        deafness = _of_job.get()
        if deafness is not None:
            deafness.note()
        wait(request, cancel)
        if deafness is not None:
            deafness.restart()

    return wrapper


def _shared_pass(score: Callable) -> Callable:
    @functools.wraps(score)
    def wrapper(passes, requests):
        deafness = _Deafness("engine's thread: shared pass")
        score(passes, requests)
        deafness.note()

    return wrapper


def _check(check: Callable) -> Callable:
    @functools.wraps(check)
    def wrapper(token):
        if (deafness := _of_job.get()) is not None:
            deafness.note()
        return check(token)

    return wrapper


def _planned(plan: Callable) -> Callable:
    """Report when a prompt holds another workspace's canary."""

    @functools.wraps(plan)
    def wrapper(engine, request):
        from tests.torture.canaries import strangers

        asked, prompt, session = plan(engine, request)
        seen = " ".join(piece.text for piece in asked.context)
        for name in strangers(seen, request.workspace):
            report("leaks", what=f"canary {name} of another workspace in a prompt of {request.workspace}")
        return asked, prompt, session

    return wrapper
