"""Grows several branches at once, each from a source of tokens of its own, such as a request to a server."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.decoder import Step


class SeparateBranches:
    """Branches that are generated side by side. Their sources run from the first step on.

    Args:
        attempts: The branches.
        cancel: Ends their sources.
    """

    def __init__(self, attempts: Sequence[Attempt], cancel: CancelToken) -> None:
        self._steps: dict[Attempt, Generator[Step]] = {each: each.source.steps(cancel) for each in attempts}

    @property
    def growing(self) -> list[Attempt]:
        """The branches that have not ended."""
        return list(self._steps)

    def step(self, goes_on: Callable[[Attempt], bool]) -> None:
        """Add the next token of each branch, and remove the branches that ended or are no longer wanted.

        Raises:
            CancelledError: Between two steps.
        """
        for attempt, steps in list(self._steps.items()):
            step = next(steps, None)
            attempt.end() if step is None else attempt.add(step)
            if attempt.stop is not None or not goes_on(attempt):
                self._drop(attempt)

    def close(self) -> None:
        """End the sources of all branches."""
        for attempt in self.growing:
            self._drop(attempt)

    def _drop(self, attempt: Attempt) -> None:
        self._steps.pop(attempt).close()
