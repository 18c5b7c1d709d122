"""Finds the next edits of a document: the rules propose, the model judges, the gate decides."""

from __future__ import annotations

from collections.abc import Sequence

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.edits import NextEdit, NextEditRequest
from completion.next_edit.gate import JUDGED_FROM, SHOWN_FROM, Gate
from completion.next_edit.judge import Judge
from completion.next_edit.proposals import judged_features, proposals
from completion.syntax.parser_process import Parsing

MAX_JUDGED = 6
"""Maximum number of proposals that the model judges for one request, the likeliest by the rules first."""


def worth_judging(chances: Sequence[float]) -> list[int]:
    """Return which proposals the model judges, by their probabilities; in their order, so that its cache moves little.

    Args:
        chances: Probability of each proposal of a document by the rules alone.
    """
    likeliest = sorted(range(len(chances)), key=lambda at: (-chances[at], at))[:MAX_JUDGED]
    return sorted(at for at in likeliest if chances[at] >= JUDGED_FROM)


def next_edits(
    request: NextEditRequest, judge: Judge, gate: Gate, session: KVSession, parsing: Parsing, cancel: CancelToken
) -> tuple[NextEdit, ...]:
    """Return the edits to show, none of which overlaps another: those after the last edit, then those before it.

    Raises:
        CancelledError: Within one chunk of a prompt after `cancel`.
        ParseLimitError: Parsing exceeded a bound.
    """
    found = []
    proposed = proposals(request.lines, request.edits, request.language, parsing, request.diagnostics)
    for at in worth_judging([gate.rules.probability(each.rule_features()) for each in proposed]):
        cancel.raise_if_cancelled()
        proposal = proposed[at]
        candidate = proposal.candidate
        question = judge.question(request.lines, request.edits, candidate, path=request.path, language=request.language)
        if question.is_too_long:
            continue
        judgement = judge.judge(question, session, cancel)
        chance = gate.both.probability(judged_features(gate.rules.logit(proposal.rule_features()), judgement))
        found.append(NextEdit(candidate.line, candidate.old, candidate.new, chance))
    here = request.edits[-1].line if request.edits else 0
    shown = without_overlaps([edit for edit in found if edit.probability >= SHOWN_FROM])
    return tuple(sorted(shown, key=lambda edit: (edit.line < here, edit.line)))


def without_overlaps(found: Sequence[NextEdit]) -> list[NextEdit]:
    """Return the likeliest of the edits that would change the same lines."""
    kept: list[NextEdit] = []
    for edit in sorted(found, key=lambda edit: -edit.probability):
        end = edit.line + len(edit.old)
        if all(edit.line >= other.line + len(other.old) or other.line >= end for other in kept):
            kept.append(edit)
    return kept
