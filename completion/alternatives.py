"""Other suggestions beside the first: exact texts that branch off where the model was least certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from completion.attempt import Attempt
from completion.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.request import Suggestion
from completion.task import Task


def alternatives(task: Task, first: Attempt, known: Sequence[Suggestion], cancel: CancelToken) -> Iterator[Suggestion]:
    """Texts that differ from the known ones in more than blanks, each when it is done.

    Each branch takes another token than the first text did and goes on from there as the model would alone; all are
    decoded together. Every text is what decoding it by itself gives.

    Raises:
        CancelledError: Between two steps.
    """
    branches = first.branches(task.asked.suggestions - 1)
    if not branches:
        return
    shared = min(branch.start for branch in branches)
    tree = BranchTree(task.model, task.session, len(task.prompt.tokens) + shared)
    for branch in branches:
        tree.add(task.other(first, branch), branch.start - shared, branch.token)
    texts = [suggestion.text for suggestion in known]
    try:
        for other in tree.grow(cancel):
            left = task.finish(other)
            if isinstance(left, Suggestion) and is_new(left.text, texts):
                texts.append(left.text)
                yield left
    finally:
        tree.close()


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
