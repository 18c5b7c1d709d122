"""Finds the next edits of a document: the rules propose, the model judges where they are unsure, the gate decides."""

from __future__ import annotations

from collections.abc import Sequence

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.edits import NextEdit, NextEditRequest, fingerprint
from completion.next_edit.gate import INVOKED_FROM, JUDGED_FROM, SHOWN_FROM, SURE_FROM, Gate
from completion.next_edit.judge import Judge
from completion.next_edit.proposals import Proposal, judged_features, proposals
from completion.next_edit.rewrites import Candidate
from completion.next_edit.writer import EditWriter
from completion.syntax.parsing import Parsing

MAX_JUDGED = 6
"""Maximum number of proposals that the model judges for one request, the likeliest by the rules first."""


def worth_judging(chances: Sequence[float]) -> list[int]:
    """Return which proposals of a document the model judges, by their probabilities by the rules alone.

    They are in their order, so that the model's cache moves little.
    """
    likeliest = sorted(range(len(chances)), key=lambda at: (-chances[at], at))[:MAX_JUDGED]
    return sorted(at for at in likeliest if chances[at] >= JUDGED_FROM)


def next_edits(
    request: NextEditRequest,
    judge: Judge,
    gate: Gate,
    session: KVSession,
    parsing: Parsing,
    cancel: CancelToken,
    writer: EditWriter | None = None,
) -> tuple[NextEdit, ...]:
    """Return the edits to show, none of which overlaps another: those after the last edit, then those before it.

    What is sure by the rules alone is returned at once. Otherwise the model judges, place by place, until it finds
    edits to show: those of later places are found when the user has answered these. A manual request gets the likeliest
    edit where there is none to show. Unless the rules are sure, a model that was trained for it writes proposals.

    Raises:
        CancelledError: Soon after `cancel`.
        ParseLimitError: Parsing exceeded a bound.
    """
    cancel.raise_if_cancelled()
    proposed, chances = _proposed(request, gate, parsing)
    here = request.edits[-1].line if request.edits and not request.elsewhere else 0
    sure = [_edit(each, chance) for each, chance in zip(proposed, chances, strict=True) if chance >= SURE_FROM]
    if sure:
        return tuple(sorted(without_overlaps(sure), key=lambda edit: _order(edit.line, here)))
    if writer is not None and not request.elsewhere and (written := writer.candidates(request, cancel)):
        proposed, chances = _proposed(request, gate, parsing, written)
    judged: list[NextEdit] = []
    for rivals in _by_place([proposed[at] for at in worth_judging(chances)], here):
        judged += [_edit(each, _judged(each, request, judge, gate, session, cancel)) for each in rivals]
        if shown := without_overlaps([edit for edit in judged if edit.probability >= SHOWN_FROM]):
            return tuple(shown)
    likely = [edit for edit in judged if request.invoked and edit.probability >= INVOKED_FROM]
    return tuple(without_overlaps(likely)[:1])


def _proposed(
    request: NextEditRequest, gate: Gate, parsing: Parsing, written: Sequence[Candidate] = ()
) -> tuple[list[Proposal], list[float]]:
    """Return the proposals that the user has not refused, and the probability of each by the rules alone."""
    found = proposals(request, parsing, written)
    kept = [each for each in found if fingerprint(each.candidate.old, each.candidate.new) not in request.refused]
    return kept, [gate.rules.probability(each.rule_features()) for each in kept]


def _judged(
    proposal: Proposal, request: NextEditRequest, judge: Judge, gate: Gate, session: KVSession, cancel: CancelToken
) -> float:
    """Return the probability of a proposal that the model judges; 0 if its texts are too long."""
    cancel.raise_if_cancelled()
    question = judge.question(request, proposal.candidate)
    if question.is_too_long:
        return 0.0
    judgement = judge.judge(question, session, cancel)
    return gate.both.probability(judged_features(gate.rules.logit(proposal.rule_features()), judgement))


def _edit(proposal: Proposal, probability: float) -> NextEdit:
    return NextEdit(proposal.candidate.line, proposal.candidate.old, proposal.candidate.new, probability)


def _order(line: int, here: int) -> tuple[bool, int]:
    """Return the place of an edit in the order in which edits are shown."""
    return line < here, line


def _by_place(found: Sequence[Proposal], here: int) -> list[list[Proposal]]:
    """Return proposals in the order in which to show them; those that would change the same lines are together."""
    places: list[list[Proposal]] = []
    end = -1
    for proposal in sorted(found, key=lambda each: each.candidate.line):
        if proposal.candidate.line >= end:
            places.append([])
        places[-1].append(proposal)
        end = max(end, proposal.candidate.line + len(proposal.candidate.old))
    return sorted(places, key=lambda place: _order(place[0].candidate.line, here))


def without_overlaps(found: Sequence[NextEdit]) -> list[NextEdit]:
    """Return the likeliest of the edits that would change the same lines."""
    kept: list[NextEdit] = []
    for edit in sorted(found, key=lambda edit: -edit.probability):
        end = edit.line + len(edit.old)
        if all(edit.line >= other.line + len(other.old) or other.line >= end for other in kept):
            kept.append(edit)
    return kept
