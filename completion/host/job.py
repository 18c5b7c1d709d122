"""Jobs of the model's thread: what runs first, and which job makes which other one needless."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, NextEdits
from completion.request import SUPERSEDED, Closing, CompletionEvent, CompletionRequest, WorkspaceUpdate

_COMPARED_CHARACTERS = 200
"""Number of characters on each side of a cursor that are compared."""
Deliver = Callable[[Any], None]
"""Gets a `CompletionEvent`, `NextEdits` or a `DraftlineError`, by the kind of the job."""


class Urgency(IntEnum):
    """Urgency of a job; the lowest number runs first. Users wait only for completions."""

    COMPLETE = 0
    PREPARE = 1
    AHEAD = 2
    NEXT_EDIT = 3
    WORKSPACE = 4


@dataclass(slots=True)
class Job:
    """A unit of work for the model's thread.

    Attributes:
        deliver: Called on the model's thread with each event, or with the error that ended the job.
        superseded: Whether a newer job has cancelled this one.
        interrupted: Whether a completion has stopped this request for next edits, which starts again after it.
        received: Time of its receipt by `time.perf_counter`, in seconds.
        number: Number of its receipt, which orders jobs of the same urgency.
        remaining: Pieces of a workspace update that are not applied yet; None before its start.
    """

    urgency: Urgency
    payload: CompletionRequest | NextEditRequest | WorkspaceUpdate | Closing
    deliver: Deliver
    cancel: CancelToken = field(default_factory=CancelToken)
    superseded: bool = False
    interrupted: bool = False
    received: float = field(default_factory=time.perf_counter)
    number: int = 0
    remaining: Iterator[None] | None = None

    @property
    def document(self) -> str:
        """Key of the job's document, "" if it has none."""
        return self.payload.document if isinstance(self.payload, CompletionRequest | NextEditRequest) else ""


def superseded_answer(job: Job) -> CompletionEvent | NextEdits:
    """Return the answer to a job that a newer one has cancelled."""
    is_completion = isinstance(job.payload, CompletionRequest)
    return CompletionEvent((), done=True, dropped=SUPERSEDED) if is_completion else NextEdits()


def supersedes(newer: Job, older: Job) -> bool:
    """Return whether a job makes an older one needless, which is cancelled then."""
    if newer.urgency is Urgency.WORKSPACE or older.urgency is Urgency.WORKSPACE:
        return False
    if newer.urgency is Urgency.COMPLETE and older.urgency in {Urgency.PREPARE, Urgency.AHEAD}:
        return True
    if newer.document == "" or newer.document != older.document:
        return False
    if isinstance(newer.payload, CompletionRequest) and isinstance(older.payload, NextEditRequest):
        return newer.urgency is Urgency.COMPLETE and _has_changed(older.payload, newer.payload)
    return older.urgency is newer.urgency


def _has_changed(before: NextEditRequest, now: CompletionRequest) -> bool:
    """Return whether the text around the cursor of a request is another one than before, because a key was typed."""
    around = now.prefix[-_COMPARED_CHARACTERS:] + now.suffix[:_COMPARED_CHARACTERS]
    return around not in "\n".join(before.lines)
