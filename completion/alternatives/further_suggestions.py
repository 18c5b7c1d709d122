"""Other suggestions beside the first: exact branches where the model was least certain, or superposed drafts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

from completion.alternatives.branch_tree import BranchTree
from completion.alternatives.superposed import superposed_drafts
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt, Branch
from completion.decoding.task import Task
from completion.request import Alternatives, Mode, StopReason, Suggestion

SLACK_TOKENS = 8
"""So much longer than the first text any other may be."""

BRANCH_TOKENS = 24
"""So many tokens a text may always write behind its branching token; behind a long first text …"""
BRANCH_SHARE = 4
"""… this part of it: somebody who looks for another text decides by its first lines."""

SECOND_CHOICES = 2
"""So many texts are begun where the first one came to nothing: one of them is to take its place."""


def alternatives(task: Task, first: Attempt, known: Sequence[Suggestion], cancel: CancelToken) -> Generator[Suggestion]:
    """Texts that differ from the known ones in more than blanks, the likeliest first.

    Raises:
        CancelledError: Between two steps.
    """
    texts = [suggestion.text for suggestion in known]
    wanted = task.request.suggestions - 1 if texts else max(task.request.suggestions - 1, SECOND_CHOICES)
    if task.request.alternatives is Alternatives.SUPERPOSED:
        most_tokens = min(longest(first.output.tokens), task.request.max_tokens)
        others = _superposed(task, wanted + 1, most_tokens, cancel)
    else:
        others = _branches(task, first, texts, wanted, cancel)
    with closing(others):
        for other in others:
            left = None if given_up(task, other) else task.finish(other)
            if isinstance(left, Suggestion) and is_new(left.text, texts):
                texts.append(left.text)
                yield left
                if len(texts) == task.request.suggestions:
                    return


def _branches(task: Task, first: Attempt, known: Sequence[str], wanted: int, cancel: CancelToken) -> Generator[Attempt]:
    """Texts that take another token than the first text did and go on from there, each as it would alone.

    A text only becomes less likely, so the likeliest one is next as soon as it has ended: which are offered, and in
    which order, does not depend on which was ready first.
    """
    others = begun(task, first, known, wanted)
    growing = [(branch, other) for branch, other in others if other.stop is None]
    tree = _tree(task, first, growing) if growing else None
    waiting = [other for _, other in others]
    try:
        while waiting and not cancel.hurried:
            likeliest = max(waiting, key=lambda other: sum(other.log_probabilities))
            if likeliest.stop is not None:
                waiting.remove(likeliest)
                yield likeliest
            elif tree is not None:
                cancel.raise_if_cancelled()
                tree.step(lambda other: may_be_new(other.output.whole(), known))
                waiting = [other for other in waiting if other.stop is not None or other in tree.growing]
    finally:
        if tree is not None:
            tree.close()


def begun(task: Task, first: Attempt, known: Sequence[str], wanted: int) -> list[tuple[Branch, Attempt]]:
    """The likeliest texts that may still become suggestions, some more than are wanted: a few come to nothing."""
    tokens, most, others = first.output.tokens, task.request.max_tokens, list[tuple[Branch, Attempt]]()
    for branch in first.branches():
        other = task.other(first, branch, min(most, longest(tokens), branch.start + 1 + behind_branch(tokens)))
        if may_be_new(other.output.whole(), known) and not given_up(task, other):
            others.append((branch, other))
        if len(others) == wanted + (wanted + 1) // 2:
            break
    return others


def _tree(task: Task, first: Attempt, others: Sequence[tuple[Branch, Attempt]]) -> BranchTree:
    """The tree of these texts, which lets go of what they share."""
    shared = min(branch.start for branch, _ in others)
    guesses = task.guesses_beside(first)
    tree = BranchTree(task.model, task.session, len(task.prompt.tokens) + shared)
    for branch, other in others:
        written = (*first.decoder.tokens[: branch.start], branch.token)
        other.decoder.drafter = None if guesses is None else guesses.branch(written)
        tree.add(other, branch.start - shared, branch.token)
    return tree


def _superposed(task: Task, count: int, most_tokens: int, cancel: CancelToken) -> Generator[Attempt]:
    """Drafts that one pass a step wrote together, the likeliest first."""
    drafts = superposed_drafts(task, count, most_tokens, cancel)
    others = [task.written(draft.tokens, draft.log_probabilities) for draft in drafts]
    yield from sorted(others, key=lambda other: -sum(other.log_probabilities))


def given_up(task: Task, other: Attempt) -> bool:
    """Whether a text comes to no end of its own, nor to that of a line in a block: a part of a line is no suggestion.

    It has become hopeless, soon will, or is longer than the first one's length suggests.
    """
    if other.stop is None:
        return other.rules.soon_unlikely(other.output.tokens, sum(other.log_probabilities))
    at_bound = other.stop.reason is StopReason.MAX_TOKENS and other.output.tokens < task.request.max_tokens
    if not at_bound and other.stop.reason is not StopReason.UNLIKELY:
        return False
    whole_lines = other.output.whole().rpartition("\n")[0]
    return not (task.request.filters and task.context.mode is Mode.BLOCK and whole_lines.strip())


def may_be_new(growing: str, known: Sequence[str]) -> bool:
    """Whether a text that may still grow does not begin with a known one: it could only be cut back to it."""
    folded = _folded(growing)
    return not any(folded.startswith(_folded(text)) for text in known)


def longest(first_tokens: int) -> int:
    """Tokens of a text beside a first one of so many: what runs on much longer is no alternative to it."""
    return first_tokens + max(first_tokens // 2, SLACK_TOKENS)


def behind_branch(first_tokens: int) -> int:
    """Tokens that a text may write behind its branching token, beside a first one of so many."""
    return max(first_tokens // BRANCH_SHARE, BRANCH_TOKENS)


def in_order(suggestions: Sequence[Suggestion], new: Suggestion) -> list[Suggestion]:
    """The suggestions with a new one: the first stays the first, the others come by falling probability."""
    others = sorted((*suggestions[1:], new), key=lambda suggestion: -suggestion.log_probability)
    return [*suggestions[:1], *others] if suggestions else others


def is_new(text: str, others: Sequence[str]) -> bool:
    """Whether a text says something that none of the others does, blanks aside; a beginning of another does not."""
    folded = _folded(text)
    return bool(folded) and not any(
        other.startswith(folded) or folded.startswith(other) for other in map(_folded, others)
    )


def _folded(text: str) -> str:
    return "".join(text.split())
