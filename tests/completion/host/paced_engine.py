"""A tiny deterministic engine that counts instead of running a model; tests control the pace of its steps."""

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Mapping

from completion.cancellation import CancelToken
from completion.edits import NextEdit, NextEditRequest, NextEdits
from completion.errors import PromptTooLongError
from completion.host.engine_protocol import LoadedEngine
from completion.memory import Held, MemoryPart
from completion.next_edit.finder import without_overlaps
from completion.next_edit.gate import Gate
from completion.next_edit.proposals import proposals
from completion.progress import Progress
from completion.request import (
    Closing,
    CompletionEvent,
    CompletionRequest,
    Statistics,
    StopReason,
    Suggestion,
    WorkspaceUpdate,
)
from completion.syntax.parsing import IN_PROCESS

LIKELY_FROM = 0.2
"""Probability by the rules alone from which it shows an edit; a model would tell more."""


def likely_by_rules(request: NextEditRequest) -> NextEdits:
    """Return the next edits that are likely without a model."""
    gate = Gate.shipped().rules
    found = [
        NextEdit(each.candidate.line, each.candidate.old, each.candidate.new, chance)
        for each in proposals(request, IN_PROCESS)
        if (chance := gate.probability(each.rule_features())) >= LIKELY_FROM
    ]
    return NextEdits(tuple(sorted(without_overlaps(found), key=lambda edit: edit.line)))


class PacedEngine:
    """An engine that generates " 0 1 2 ...", one number per step, then alternatives, one per step.

    Loading waits for `may_load`. With `gated`, every step waits until the test releases a permit; with `gated_files` as
    well, every file does.
    A semaphore counts each kind of event for a test to wait for. `paused` counts the steps that found no permit: from
    then until the next permit the model's thread does nothing, so its queue stays as it is.
    """

    def __init__(self, *, gated: bool = False, step_s: float = 0.0) -> None:
        self.gated = gated
        self.gated_files = False
        self.step_s = step_s
        self.permits = threading.Semaphore(0)
        self.started: list[str] = []
        self.histories: list[str] = []
        self.prefixes: list[str] = []
        self.names: list[tuple[str, ...]] = []
        self.prepared: list[str] = []
        self.updates: list[WorkspaceUpdate] = []
        self.files: list[str] = []
        self.forgotten: list[Closing] = []
        self.forgot = threading.Semaphore(0)
        self.steps = 0
        self.began = threading.Semaphore(0)
        self.paused = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.readying = threading.Semaphore(0)
        self.readied = threading.Semaphore(0)
        self.stepped = threading.Semaphore(0)
        self.closed = threading.Event()
        self.may_load = threading.Event()
        self.may_load.set()

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        self.started.append(request.document)
        self.histories.append(request.history)
        self.prefixes.append(request.prefix)
        self.names.append(request.names)
        self.began.release()
        started = time.perf_counter()
        try:
            yield from self._numbers(request, cancel, started)
        finally:
            self.ended.release()

    def _numbers(self, request: CompletionRequest, cancel: CancelToken, started: float) -> Iterator[CompletionEvent]:
        if request.prefix == "too long":
            raise PromptTooLongError("The prompt is too long. Send less text.")
        _end_on(request.prefix)
        if request.prefix == "crash":
            raise ValueError(request.suffix)
        text = ""
        for number in range(request.max_tokens):
            self._step(cancel)
            text += f" {number}"
            yield CompletionEvent((Suggestion(text),))
        others: list[Suggestion] = []
        while len(others) < request.suggestions - 1 and not cancel.hurried:
            yield CompletionEvent((Suggestion(text), *others), statistics=Statistics(), whole=1 + len(others))
            self._step(cancel)
            others.append(Suggestion(f" or {len(others)}"))
        statistics = Statistics(
            prompt_tokens=len(request.prefix.split()),
            computed_tokens=len(request.prefix.split()),
            generated_tokens=request.max_tokens,
            steps=request.max_tokens,
            drafted_tokens=3,
            accepted_tokens=2,
            accepted_by_drafter={"prompt_lookup": 2},
            first_text_ms=1.0,
            total_ms=1e3 * (time.perf_counter() - started),
        )
        pieces = (("model", text),)
        yield CompletionEvent(
            (Suggestion(text, pieces=pieces), *others),
            done=True,
            stop_reason=StopReason.MAX_TOKENS,
            statistics=statistics,
            whole=1 + len(others),
        )

    def _step(self, cancel: CancelToken) -> None:
        cancel.raise_if_cancelled()
        if self.gated and not self.permits.acquire(blocking=False):
            self.paused.release()
            self.permits.acquire()
        end = time.perf_counter() + self.step_s
        while time.perf_counter() < end:
            pass  # computes, as a real step does, instead of sleeping
        self.steps += 1
        self.stepped.release()

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        _end_on(request.prefix)
        self.readying.release()
        self._step(cancel)
        cancel.raise_if_cancelled()
        self.prepared.append(request.document)
        self.readied.release()
        self.ended.release()

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        self.began.release()
        self._step(cancel)
        cancel.raise_if_cancelled()
        return likely_by_rules(request)

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        self.updates.append(update)
        for file in update.changed:
            _end_on(file.text)
            if self.gated_files:
                self.began.release()
                self._step(cancel)
            self.files.append(file.path)
            yield
        self.ended.release()

    def forget(self, closing: Closing) -> None:
        self.forgotten.append(closing)
        self.forgot.release()

    def held(self) -> Mapping[MemoryPart, Held]:
        return {}

    def close(self) -> None:
        self.closed.set()

    def load(self, progress: Progress) -> LoadedEngine:
        progress("Counting to three.", 0.5)
        self.may_load.wait(60)
        return LoadedEngine(self, "paced", "test", context_tokens=1000)


def _end_on(text: str) -> None:
    """End the host's process, as a text does that the engine's native code cannot take."""
    if text.startswith("fatal"):
        os.kill(os.getpid(), signal.SIGKILL)
