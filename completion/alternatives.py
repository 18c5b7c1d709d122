"""Other suggestions beside the first: exact branches where the model was least certain, or superposed drafts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from completion.attempt import Attempt
from completion.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.request import Alternatives, Suggestion
from completion.superposed import superposed_drafts
from completion.task import Task

SLACK_TOKENS = 8
"""So much longer than the first text any other may be."""


def alternatives(task: Task, first: Attempt, known: Sequence[Suggestion], cancel: CancelToken) -> Iterator[Suggestion]:
    """Texts that differ from the known ones in more than blanks, the likeliest first.

    Raises:
        CancelledError: Between two steps.
    """
    texts = [suggestion.text for suggestion in known]
    most_tokens = min(longest(first.output.tokens), task.asked.max_tokens)
    if task.asked.alternatives is Alternatives.SUPERPOSED:
        others = _superposed(task, most_tokens, cancel)
    else:
        others = _branches(task, first, most_tokens, cancel)
    for other in sorted(others, key=lambda other: -sum(other.log_probabilities)):
        if other.output.tokens == most_tokens < task.asked.max_tokens:
            continue  # given up: its end is not where the first one's length suggests
        left = task.finish(other)
        if isinstance(left, Suggestion) and is_new(left.text, texts):
            texts.append(left.text)
            yield left
            if len(texts) == task.asked.suggestions:
                return


def _branches(task: Task, first: Attempt, most_tokens: int, cancel: CancelToken) -> list[Attempt]:
    """Texts that take another token than the first text did and go on from there, each as it would alone."""
    wanted = task.asked.suggestions - 1
    branches = first.branches(wanted + (wanted + 1) // 2)  # some will say what others say, or nothing
    if not branches:
        return []
    shared = min(branch.start for branch in branches)
    tree = BranchTree(task.model, task.session, len(task.prompt.tokens) + shared)
    try:
        for branch in branches:
            tree.add(task.other(first, branch, most_tokens), branch.start - shared, branch.token)
        return list(tree.grow(cancel))  # which are offered must not depend on which came first
    finally:
        tree.close()


def _superposed(task: Task, most_tokens: int, cancel: CancelToken) -> list[Attempt]:
    """Drafts that one pass a step wrote together."""
    drafts = superposed_drafts(task, task.asked.suggestions, most_tokens, cancel)
    return [task.written(draft.tokens, draft.log_probabilities) for draft in drafts]


def longest(first_tokens: int) -> int:
    """Tokens of a text beside a first one of so many: what runs on much longer is no alternative to it."""
    return first_tokens + max(first_tokens // 2, SLACK_TOKENS)


def in_order(suggestions: Sequence[Suggestion], new: Suggestion) -> list[Suggestion]:
    """The suggestions with a new one: the first stays the first, the others come by falling probability."""
    others = sorted((*suggestions[1:], new), key=lambda suggestion: -suggestion.log_probability)
    return [*suggestions[:1], *others] if suggestions else others


def is_new(text: str, others: Sequence[str]) -> bool:
    """Whether a text says something that none of the others does, blanks aside; a beginning of another does not."""
    folded = "".join(text.split())
    return bool(folded) and not any(
        other.startswith(folded) or folded.startswith(other) for other in ("".join(text.split()) for text in others)
    )
