"""Finds a likelier line than the one of greedy decoding, by following the branches that may still become likelier.

The probability of a text falls with each token. So a branch that is less likely than the best complete line cannot
become the likeliest, and a line of which the model is sure costs nothing. Source of this bound: "Best-First Beam
Search", section 3. Only branches of the greedy line are followed, so the result is not always the likeliest of all.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice, takewhile

from completion.alternatives.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.local_task import LocalTask
from completion.decoding.task import Task
from completion.request import StopReason, Suggestion

MAX_BRANCHES = 6
"""Maximum number of branches that are followed, the likeliest first."""

_SEARCHED = frozenset({StopReason.LINE_END, StopReason.STOP_TOKEN})


def likeliest_line(task: Task, first: Attempt, cancel: CancelToken) -> Attempt:
    """Return the likeliest of the first attempt and its branches that start with what was shown of it.

    Raises:
        CancelledError: Within one layer of a step; the cache is as it was.
    """
    if not isinstance(task, LocalTask) or not task.searches or first.stop is None or first.stop.reason not in _SEARCHED:
        return first
    best = _Best(task, first)
    candidates = islice(takewhile(lambda branch: branch.total > best.total, first.branches()), MAX_BRANCHES)
    begun = [(branch, task.branch_attempt(first, branch, task.request.max_tokens)) for branch in candidates]
    for _, attempt in begun:
        best.offer(attempt)
    growing = [(branch, attempt) for branch, attempt in begun if best.may_become(attempt)]
    if growing:
        with closing(BranchTree.of(task, first, growing, cancel)) as tree:
            while tree.growing:
                cancel.raise_if_cancelled()
                known = tree.growing
                tree.step(best.may_become)
                for attempt in known:
                    best.offer(attempt)
    return best.attempt


class _Best:
    """The likeliest attempt so far that has ended.

    Attributes:
        attempt: The attempt.
        total: Log-probability of its text.
    """

    def __init__(self, task: Task, first: Attempt) -> None:
        self._task = task
        self._shown = first.shown
        self.attempt = first
        self.total = first.total()

    def may_become(self, attempt: Attempt) -> bool:
        """Return whether an attempt that grows may become the likeliest that starts with what was shown."""
        if attempt.stop is not None or sum(attempt.log_probabilities) <= self.total:
            return False
        text = attempt.output.growing()
        return text.startswith(self._shown) or self._shown.startswith(text)

    def offer(self, attempt: Attempt) -> None:
        """Take an attempt that has ended, if it is likelier and its suggestion starts with what was shown."""
        if attempt.stop is None or attempt.stop.reason not in _SEARCHED or (total := attempt.total()) <= self.total:
            return
        found = self._task.finish(attempt)
        if isinstance(found, Suggestion) and found.text.startswith(self._shown):
            self.attempt, self.total = attempt, total
