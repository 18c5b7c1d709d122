"""Finds a likelier line than the one of greedy decoding, by following the branches that may still become likelier.

The probability of a text falls with each token. So a branch that is less likely than the best complete line cannot
become the likeliest, and a line of which the model is sure costs nothing. Source of this bound: "Best-First Beam
Search", section 3. Only branches of the greedy line are followed, so the result is not always the likeliest of all.

What the user has just deleted is hardly typed again, but the model sees it in the edit history and likes to repeat it.
So a line that brings it back must be `REPEATED` times as likely as any other.
"""

from __future__ import annotations

import math
from contextlib import closing
from itertools import accumulate, islice, takewhile

from completion.alternatives.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.decoding.attempt import OWN_ENDS, Attempt, log_difference
from completion.decoding.local_task import LocalTask
from completion.decoding.task import SHOWN_FROM, Task
from completion.request import Suggestion

MAX_BRANCHES = 6
"""Maximum number of branches that are followed, the likeliest first."""
REPEATED = 50
"""How many times as likely a line must be that brings back what was deleted; branches have the same bound a token."""


def likeliest_line(task: Task, first: Attempt, cancel: CancelToken) -> Attempt:
    """Return the likeliest of the first attempt and its branches after the tokens that may have been shown.

    Drafts change how many tokens a step adds, and so what is shown before the end, but not which tokens may be.

    Raises:
        CancelledError: Within one layer of a step; the cache is as it was.
    """
    if not isinstance(task, LocalTask) or not task.searches or first.stop is None or first.stop.reason not in OWN_ENDS:
        return first
    best, kept = _Best(task, first), tokens_that_may_be_shown(task, first)
    trunk = first.unless_it_is_this() if repeats_deleted(task, first) else first
    likelier = takewhile(lambda branch: branch.total > best.total, trunk.branches())
    candidates = ((branch, task.branch_attempt(trunk, branch, task.request.max_tokens)) for branch in likelier)
    followed = (each for each in candidates if each[0].start >= kept and not repeats_deleted(task, each[1]))
    begun = list(islice(followed, MAX_BRANCHES))
    for _, attempt in begun:
        attempt.shown = first.shown
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


def repeats_deleted(task: Task, attempt: Attempt) -> bool:
    """Return whether an attempt that has ended brings back what the user has just deleted."""
    return attempt.stop is not None and task.deleted.are(attempt.output.whole()[: attempt.stop.length])


def tokens_that_may_be_shown(task: Task, first: Attempt) -> int:
    """Return how many of an attempt's tokens may be shown before the search; see `Task.stream`."""
    if repeats_deleted(task, first):
        return 0
    return sum(total >= SHOWN_FROM for total in accumulate(first.log_probabilities))


class _Best:
    """The likeliest attempt so far that has ended.

    Attributes:
        attempt: The attempt.
        total: Log-probability that another one must exceed: that of its text. If it brings back what was deleted,
            both are under the condition that the text does not, and the other one may be `REPEATED` times less likely.
    """

    def __init__(self, task: Task, first: Attempt) -> None:
        self._task = task
        self.attempt = first
        self.total = first.total()
        if repeats_deleted(task, first):
            self.total -= log_difference(0.0, self.total) + math.log(REPEATED)

    def may_become(self, attempt: Attempt) -> bool:
        """Return whether an attempt that grows may still become the likeliest."""
        return attempt.stop is None and sum(attempt.log_probabilities) > self.total

    def offer(self, attempt: Attempt) -> None:
        """Take an attempt that has ended, if it is likelier and its suggestion starts with what was shown."""
        if attempt.stop is None or attempt.stop.reason not in OWN_ENDS or repeats_deleted(self._task, attempt):
            return
        total = attempt.total()
        found = self._task.finish(attempt) if total > self.total else None
        if isinstance(found, Suggestion) and found.text.startswith(attempt.shown):
            self.attempt, self.total = attempt, total
