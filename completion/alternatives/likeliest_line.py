"""Finds a likelier line than the one of greedy decoding, by following the branches that may still become likelier.

The probability of a text falls with each token. So a branch that is less likely than the best complete line cannot
become the likeliest, and a line of which the model is sure costs nothing. Source of this bound: "Best-First Beam
Search", section 3. Only branches of the greedy line are followed, so the result is not always the likeliest of all.

The user's edits tell more than the model knows. A line that was just deleted at the cursor is hardly typed again, but
the model sees it in the edit history and likes to repeat it. What the last edits would make of that line is likely to
be typed. So the first counts as `WEIGHT` times less likely than the model says, the second as `WEIGHT` times likelier.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace

from completion.alternatives.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.decoding.attempt import OWN_ENDS, Attempt, Branch, with_weight
from completion.decoding.local_task import LocalTask
from completion.decoding.task import Task
from completion.ending.word_end import whole_words
from completion.request import Suggestion

MAX_BRANCHES = 6
"""Maximum number of branches that are followed, the likeliest first."""
WEIGHT = 50
"""Weight of what the last edits tell; a branch's token may be as many times less likely than the one that was taken."""


def likeliest_line(task: Task, first: Attempt, cancel: CancelToken) -> Attempt:
    """Return the likeliest of the first attempt and its branches after the tokens that may have been shown.

    Drafts change how many tokens a step adds, and so what is shown before the end, but not which tokens may be.

    Raises:
        CancelledError: Within one layer of a step; the cache is as it was.
    """
    if not isinstance(task, LocalTask) or not task.searches or first.stop is None or first.stop.reason not in OWN_ENDS:
        return first
    best, trunk = _Best(task, first), first.reweighted(1 / WEIGHT) if are_back(task, first) else first
    followed = _followed(task, trunk, best)
    for _, attempt in followed:
        attempt.shown = first.shown
        best.offer(attempt)
    growing = [(branch, attempt) for branch, attempt in followed if best.may_become(attempt)]
    if growing:
        with closing(BranchTree.of(task, first, growing, cancel)) as tree:
            while tree.growing:
                cancel.raise_if_cancelled()
                known = tree.growing
                tree.step(best.may_become)
                for attempt in known:
                    best.offer(attempt)
    return best.attempt.reweighted(WEIGHT) if are_followed(task, best.attempt) else best.attempt


def _followed(task: LocalTask, trunk: Attempt, best: _Best) -> list[tuple[Branch, Attempt]]:
    """Return the branches that may become the likeliest and do not bring back what was deleted, with their attempts."""
    kept, found = task.tokens_that_stay(trunk), list[tuple[float, Branch, Attempt]]()
    for branch in trunk.branches():
        if branch.total + best.most_gain <= best.total or (len(found) == MAX_BRANCHES and not best.most_gain):
            break
        if branch.start < kept:
            continue
        attempt = task.branch_attempt(trunk, branch, task.request.max_tokens)
        if (most := best.most(attempt)) > best.total and not are_back(task, attempt):
            found.append((most, branch, attempt))
    found.sort(key=lambda each: -each[0])
    return [(branch, attempt) for _, branch, attempt in found[:MAX_BRANCHES]]


def _keeps_shown(text: str, shown: str) -> bool:
    """Return whether a text begins with the words that were shown; one that goes on with the last of them does not."""
    return text.startswith(shown) and whole_words(text, len(shown)) == len(shown)


def are_back(task: LocalTask, attempt: Attempt) -> bool:
    """Return whether an attempt that has ended brings back what was deleted at the cursor."""
    return attempt.stop is not None and task.replaced.are_back(attempt.output.whole()[: attempt.stop.length])


def are_followed(task: LocalTask, attempt: Attempt) -> bool:
    """Return whether an attempt that has ended is what the last edits imply."""
    return attempt.stop is not None and task.replaced.are_followed(attempt.output.whole()[: attempt.stop.length])


class _Best:
    """The likeliest attempt so far that has ended.

    Attributes:
        total: Log-probability of its text, with the weight of what the last edits tell.
        most_gain: Maximum that such a weight adds to a log-probability.
    """

    def __init__(self, task: LocalTask, first: Attempt) -> None:
        self._task = task
        self.attempt = first
        self.most_gain = math.log(WEIGHT) if task.replaced.expected else 0.0
        self.total = self._total(first)
        if are_back(task, first):
            self.total -= math.log(WEIGHT) + with_weight(0.0, first.total(), 1 / WEIGHT)

    def most(self, attempt: Attempt) -> float:
        """Return the highest total that an attempt may still have."""
        if attempt.stop is not None:
            return self._total(attempt)
        gain = self.most_gain if self._task.replaced.may_be_followed(attempt.output.whole()) else 0.0
        return attempt.most_total() + gain

    def may_become(self, attempt: Attempt) -> bool:
        """Return whether an attempt that grows may still become the likeliest."""
        return attempt.stop is None and self.most(attempt) > self.total

    def offer(self, attempt: Attempt) -> None:
        """Take an attempt that has ended, if it is likelier and its suggestion keeps what was shown."""
        if attempt.stop is None or attempt.stop.reason not in OWN_ENDS or are_back(self._task, attempt):
            return
        total = self._total(attempt)
        found = self._task.finish(replace(attempt, shown="")) if total > self.total else None  # without what binds it
        if isinstance(found, Suggestion) and _keeps_shown(found.text, attempt.shown):
            self.attempt, self.total = attempt, total

    def _total(self, attempt: Attempt) -> float:
        return attempt.total() + (self.most_gain if are_followed(self._task, attempt) else 0.0)
