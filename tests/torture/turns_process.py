"""A process whose engine thread runs two jobs: one waits for its turn while the other `listens`, or only `computes`."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace

from completion.cancellation import CancelToken
from completion.decoding.joint_passes import JointPasses
from completion.host.job import Job, Urgency
from completion.host.worker import EngineWorker
from completion.request import Closing
from tests.torture.deaf_process import compute

COMPUTING_S = 0.5
PIECES = 10


def main(how: str) -> None:
    """Run both jobs to their ends."""
    uncalled = dict.fromkeys(("shape", "held_weights", "new_cache", "prefill", "score_together", "superpose"))
    passes, cancel = JointPasses(SimpleNamespace(joint_requests=2, **uncalled)), CancelToken()

    def works(_closing: Closing) -> None:
        for _ in range(PIECES):
            compute(COMPUTING_S / PIECES)
            if how == "listens":
                cancel.raise_if_cancelled()

    def waits(_closing: Closing) -> None:
        cancel.raise_if_cancelled()
        passes.take_turn(cancel)
        cancel.raise_if_cancelled()

    for forget in (waits, works):
        job = Job(Urgency.WORKSPACE, Closing(), lambda _: None)
        passes.start(partial(EngineWorker._serve, None, SimpleNamespace(forget=forget), job))
    while len(passes):
        passes.run()


if __name__ == "__main__":
    main(sys.argv[1])
