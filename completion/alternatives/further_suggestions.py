"""Alternatives to the first suggestion: exact branches where the model was least certain, or superposed drafts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace

from completion.alternatives.branch_tree import BranchTree, SeparateBranches
from completion.alternatives.superposed import superposed_drafts
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt, Branch
from completion.decoding.local_task import LocalTask
from completion.decoding.task import Task
from completion.ending.replaced_lines import without_blanks
from completion.request import Alternatives, Mode, StopReason, Suggestion

MIN_EXTRA_TOKENS = 8
"""Number of tokens by which an alternative may always exceed the first suggestion."""

MIN_BRANCH_TOKENS = 24
"""Number of tokens that a branch may always have after its first own token."""
BRANCH_DIVISOR = 4
"""Divisor of a long first suggestion's length that bounds a branch; its first lines are enough to choose by."""

REPLACEMENT_BRANCHES = 2
"""Minimum number of alternatives to generate if the first suggestion is dropped: one of them takes its place."""
DROPPED_WEIGHT = 1 / 2_500
"""Weight of the text of a dropped suggestion. It may be below the cursor already, so it is hardly what is wanted."""


def alternatives(task: Task, first: Attempt, known: Sequence[Suggestion], cancel: CancelToken) -> Generator[Suggestion]:
    """Yield suggestions that differ from the known ones in more than whitespace, by falling probability.

    Without known ones, they differ from the text that was dropped.

    Raises:
        CancelledError: Between two steps.
    """
    texts = [suggestion.text for suggestion in known]
    others, left = texts or list(_dropped(first)[1]), task.request.suggestions - len(texts)
    wanted = task.request.suggestions - 1 if texts else max(task.request.suggestions - 1, REPLACEMENT_BRANCHES)
    if texts and isinstance(task, LocalTask) and task.request.alternatives is Alternatives.SUPERPOSED:
        max_tokens = min(max_alternative_tokens(first.output.new_tokens), task.request.max_tokens)
        attempts = _superposed(task, first, wanted + 1, max_tokens, cancel)
    else:
        attempts = _branches(task, first, texts, wanted, cancel)
    with closing(attempts):
        for attempt in attempts:
            result = None if is_abandoned(task, attempt) else task.finish(attempt)
            if isinstance(result, Suggestion) and is_new(result.text, others):
                others.append(result.text)
                yield result
                left -= 1
                if not left:
                    return


def _branches(task: Task, first: Attempt, known: Sequence[str], wanted: int, cancel: CancelToken) -> Generator[Attempt]:
    """Yield the first attempt, whose text may be new, and its branches, each with the text that it would have alone.

    The likeliest branch is yielded as soon as it has ended, since the others only become less likely. So the order
    does not depend on which branch ended first.
    """
    yield first
    trunk, known = (first, known) if known else _dropped(first)
    branches = begin_branches(task, trunk, known, wanted)
    growing = [(branch, attempt) for branch, attempt in branches if attempt.stop is None]
    tree: BranchTree | SeparateBranches | None = None
    if growing and isinstance(task, LocalTask):
        tree = BranchTree.of(task, first, growing, cancel)
    elif growing:
        tree = SeparateBranches([attempt for _, attempt in growing], cancel)
    waiting = [attempt for _, attempt in branches]
    try:
        while waiting and not cancel.hurried:
            likeliest = max(waiting, key=lambda attempt: sum(attempt.log_probabilities))
            if likeliest.stop is not None:
                waiting.remove(likeliest)
                yield likeliest
            elif tree is not None:
                cancel.raise_if_cancelled()
                tree.step(lambda attempt: may_be_new(attempt.output.whole(), known))
                waiting = [attempt for attempt in waiting if attempt.stop is not None or attempt in tree.growing]
    finally:
        if tree is not None:
            tree.close()


def _dropped(first: Attempt) -> tuple[Attempt, Sequence[str]]:
    """Return a dropped attempt with the weight of its text, all of which it may branch off from, and that text."""
    if first.stop is None:
        return first, ()
    text = first.output.whole()
    whole = replace(first, stop=replace(first.stop, length=len(text)))
    return whole.reweighted(DROPPED_WEIGHT), (text,) if text.strip() else ()


def begin_branches(task: Task, first: Attempt, known: Sequence[str], wanted: int) -> list[tuple[Branch, Attempt]]:
    """Start the likeliest branches that may become suggestions, half as many again as wanted, as some will not."""
    tokens, branches = first.output.new_tokens, list[tuple[Branch, Attempt]]()
    healed = first.output.tokens - tokens
    max_tokens = min(task.request.max_tokens, max_alternative_tokens(tokens))
    for branch in first.branches():
        max_end = max(branch.start - healed, 0) + 1 + max_tokens_after_branch(tokens)
        attempt = task.branch_attempt(first, branch, min(max_tokens, max_end))
        if may_be_new(attempt.output.whole(), known) and not is_abandoned(task, attempt):
            branches.append((branch, attempt))
        if len(branches) == wanted + (wanted + 1) // 2:
            break
    return branches


def _superposed(
    task: LocalTask, first: Attempt, count: int, max_tokens: int, cancel: CancelToken
) -> Generator[Attempt]:
    """Yield the first attempt, whose text may be new, and superposed drafts by falling probability.

    Drafts become hopeless as branches of the first attempt do.
    """
    yield first
    drafts = superposed_drafts(task, first, count, max_tokens, cancel)
    rules = first.rules.for_branch(first.log_probabilities, task.request.max_tokens)
    attempts = [task.attempt_from(draft.tokens, draft.log_probabilities, rules) for draft in drafts]
    yield from sorted(attempts, key=lambda attempt: -sum(attempt.log_probabilities))


def is_abandoned(task: Task, attempt: Attempt) -> bool:
    """Return whether an alternative has become hopeless, soon will, or exceeds its bound of tokens.

    In a block, one that has a complete line is not abandoned. Everywhere else, it would offer a part of a line.
    """
    if attempt.stop is None:
        return attempt.rules.soon_unlikely(attempt.output.tokens, sum(attempt.log_probabilities))
    at_bound = attempt.stop.reason is StopReason.MAX_TOKENS and attempt.output.new_tokens < task.request.max_tokens
    if not at_bound and attempt.stop.reason is not StopReason.UNLIKELY:
        return False
    whole_lines = attempt.output.whole().rpartition("\n")[0]
    return not (task.request.filters and task.context.mode is Mode.BLOCK and whole_lines.strip())


def may_be_new(growing: str, known: Sequence[str]) -> bool:
    """Return whether a text that may still grow starts with none of the known ones, whitespace aside."""
    folded = without_blanks(growing)
    return not any(folded.startswith(without_blanks(text)) for text in known)


def max_alternative_tokens(first_tokens: int) -> int:
    """Return the maximum length of an alternative to a first suggestion of `first_tokens` tokens."""
    return first_tokens + max(first_tokens // 2, MIN_EXTRA_TOKENS)


def max_tokens_after_branch(first_tokens: int) -> int:
    """Return the maximum number of tokens of a branch after its first own one; see `max_alternative_tokens`."""
    return max(first_tokens // BRANCH_DIVISOR, MIN_BRANCH_TOKENS)


def ranked(suggestions: Sequence[Suggestion], new: Suggestion) -> list[Suggestion]:
    """Insert a new suggestion: the first stays the first, the alternatives follow by falling probability."""
    others = sorted((*suggestions[1:], new), key=lambda suggestion: -suggestion.log_probability)
    return [*suggestions[:1], *others] if suggestions else others


def is_new(text: str, others: Sequence[str]) -> bool:
    """Return whether a text neither starts one of the others nor starts with one, whitespace aside."""
    folded = without_blanks(text)
    return bool(folded) and not any(
        other.startswith(folded) or folded.startswith(other) for other in map(without_blanks, others)
    )
