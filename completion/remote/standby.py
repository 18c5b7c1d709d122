"""A model server beside a local model, on a thread of its own: how long it is waited for, when it is tried again."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue

from completion.cancellation import CancelToken
from completion.errors import CancelledError, DraftlineError, RemoteServerError
from completion.memory import Held, MemoryPart
from completion.remote.engine import RemoteEngine
from completion.request import Closing, CompletionEvent, CompletionRequest, Suggestion

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
"""Time from a failure until the server may be tried again, in seconds; each failure without an answer doubles it."""
MAX_RETRY_S = 60.0
MAX_MISSES = 8
"""Number of answers in a row that came too late, after which the server counts as failed."""

_SHARE = 0.95
"""Share of the remembered first texts that took no longer than the deadline."""
_REMEMBERED, _LEAST_REMEMBERED = 64, 8
"""Number of the last first texts that are remembered, and how many must be known for a deadline by them."""
_SHORTEST_S, _LONGEST_S = 0.05, 2.0
"""Bounds of the deadline, in seconds."""
_CLOSE_S = 1.0
"""Maximum time for the thread to end, in seconds: a hung server must not keep the host from stopping."""


class Deadline:
    """How long a server may be silent: as long as it took for 95 % of its last first texts.

    A wait in vain counts as twice its time, as RFC 6298 (5.5) backs off a timer: otherwise a server that became slower
    would never be waited for again.
    """

    def __init__(self) -> None:
        self._waits: tuple[float, ...] = ()

    def note(self, wait_s: float) -> None:
        """Note the time that a first text took, in seconds."""
        self._waits = (*self._waits, wait_s)[-_REMEMBERED:]

    @property
    def seconds(self) -> float:
        """The time, in seconds; between 0.05 and 2, and 2 before eight first texts are known."""
        waits = sorted(self._waits)
        if len(waits) < _LEAST_REMEMBERED:
            return _LONGEST_S
        return min(max(waits[math.ceil(_SHARE * len(waits)) - 1], _SHORTEST_S), _LONGEST_S)


class Answer:
    """What a server has said to one request so far. Its thread writes it, the engine's thread reads it.

    Args:
        on_text: Called with this answer on the server's thread when it has more text.

    Attributes:
        cancel: Ends the request.
        last: Its newest event; None before the first.
        is_over: Whether nothing follows: it is complete, or it was ended, or the server failed.
    """

    def __init__(self, on_text: Callable[[Answer], None], clock: Callable[[], float]) -> None:
        self.cancel = CancelToken()
        self.last: CompletionEvent | None = None
        self.is_over = False
        self._on_text = on_text
        self._clock = clock
        self._heard = clock()
        self._changed = threading.Condition()

    @property
    def suggestion(self) -> Suggestion | None:
        """The suggestion so far; None without text."""
        found = self.last.suggestions[0] if self.last is not None and self.last.suggestions else None
        return found if found is not None and found.text else None

    @property
    def is_complete(self) -> bool:
        """Whether the server has said all that it had to say."""
        return self.last is not None and self.last.done

    @property
    def silent_s(self) -> float:
        """Time since its last event or since the request, in seconds."""
        return self._clock() - self._heard

    def note(self, event: CompletionEvent) -> None:
        """Store an event."""
        with self._changed:
            self.last, self._heard = event, self._clock()
            self._changed.notify_all()
        if self.suggestion is not None:
            self._on_text(self)

    def end(self) -> None:
        """Note that nothing follows."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def wake(self) -> None:
        """Let a wait look at its `stops`."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, known: CompletionEvent | None, silence_s: float, stops: Callable[[], bool]) -> bool:
        """Wait until there is another event than the known one; return False if none comes in time.

        That is `silence_s` seconds from the last event, unless `stops` ends the wait before.
        """
        with self._changed:
            while self.last is known and not self.is_over and not stops():
                if (left_s := silence_s - self.silent_s) <= 0:
                    break
                self._changed.wait(left_s)
            return self.last is not known


class Standby:
    """The server's thread, which connects to it, sends requests, and connects again after a failure.

    It serves one request at a time: a newer one ends the older one, because its user types in one place. There is no
    timer: requests look at the clock.

    Args:
        connect: Connects to the server; called on the thread.
        release: Releases what `connect` has used; called at the end.

    Attributes:
        trouble: Sentence about why the server does not answer; "" if it does.
        deadline: How long it is waited for.
    """

    def __init__(
        self,
        connect: Callable[[CancelToken], RemoteEngine],
        release: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.trouble = ""
        self.deadline = Deadline()
        self._connect = connect
        self._release = release
        self._clock = clock
        self._engine: RemoteEngine | None = None
        self._current, self._preparing, self._ending = CancelToken(), CancelToken(), CancelToken()
        self._retry_s = FIRST_RETRY_S
        self._retry_at = clock()
        self._misses = 0
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="model server", daemon=True)
        self._thread.start()
        self._is_there()

    def ask(self, request: CompletionRequest, on_text: Callable[[Answer], None]) -> Answer | None:
        """Send a request; return its answer, None if the server is not connected. `Answer` says what `on_text` is."""
        self._preparing.cancel()
        self._current.cancel()
        if not self._is_there():
            return None
        answer = Answer(on_text, self._clock)
        self._current = answer.cancel
        self._work.put(partial(self._complete, answer, request))
        return answer

    def prepare(self, request: CompletionRequest) -> None:
        """Let the server compute the prompt of a request that may follow, unless one comes before."""
        self._preparing.cancel()
        if self._is_there():
            self._preparing = CancelToken()
            self._work.put(partial(self._prepare, request, self._preparing))

    def forget(self, closing: Closing) -> None:
        """Let the thread free what it keeps of documents that no client uses any more."""
        self._work.put(partial(self._forget, closing))

    def held(self) -> Mapping[MemoryPart, Held]:
        """Return what the server's engine holds in memory, by part. May be called on any thread."""
        engine = self._engine
        return {} if engine is None else engine.held()

    def missed(self, answer: Answer) -> None:
        """Note that an answer was waited for in vain."""
        if answer.last is not None:
            return
        self.deadline.note(2 * answer.silent_s)
        self._misses += 1
        if self._misses >= MAX_MISSES:
            self._fall(f"The model server answered {self._misses} requests too late.")

    def close(self) -> None:
        """End all requests and the thread."""
        self._ending.cancel()
        self._preparing.cancel()
        self._current.cancel()
        self._work.put(None)
        self._thread.join(_CLOSE_S)
        self._release()

    def _is_there(self) -> bool:
        """Return whether the server is connected. Connect to it in the background if it is time for that."""
        if self._engine is None and self._clock() >= self._retry_at:
            self._retry_at = math.inf
            self._work.put(self._join)
        return self._engine is not None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except CancelledError:
                pass
            except RemoteServerError as error:
                self._fall(str(error))
            except DraftlineError as error:
                if self._engine is None:  # it cannot connect; else it is about one request
                    self._fall(str(error))
            # The thread's outermost handler: the local model must go on whatever fails here.
            except Exception as error:
                logger.exception("The model server's thread failed")
                self._fall(f"The model server cannot be used ({type(error).__name__}); the engine's log says more.")

    def _join(self) -> None:
        self._engine = self._connect(self._ending)

    def _complete(self, answer: Answer, request: CompletionRequest) -> None:
        try:
            if self._engine is not None:
                for event in self._engine.complete(request, answer.cancel):
                    if answer.last is None and (event.done or any(each.text for each in event.suggestions)):
                        self.deadline.note(answer.silent_s)
                        self._retry_s, self._misses, self.trouble = FIRST_RETRY_S, 0, ""
                    answer.note(event)
        finally:
            answer.end()

    def _prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        if self._engine is not None:
            self._engine.prepare(request, cancel)

    def _forget(self, closing: Closing) -> None:
        if self._engine is not None:
            self._engine.forget(closing)

    def _fall(self, sentence: str) -> None:
        self.trouble = f"{sentence} The local model goes on alone."
        self._engine = None
        self._retry_at = self._clock() + self._retry_s
        self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)
