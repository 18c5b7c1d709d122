"""Proposals: candidates with what the parse tree says about them, and their features for the gate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from completion.edits import LineEdit, NextEditRequest
from completion.next_edit.candidates import candidates
from completion.next_edit.edited_nodes import ChangeSyntax, syntax_of_changes
from completion.next_edit.judge import Judgement
from completion.next_edit.rewrites import REPORTED, Candidate, words
from completion.syntax.parsing import Parsing

_PARSED_CHARACTERS = 2_000_000  # of documents with one candidate applied: half a second of the parser's time
_MIN_PARSED = 6  # candidates, however large the document is
_MAX_RATIO = 12.0  # a log-likelihood ratio beyond which more tells nothing


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate that leaves the document as well-formed as it is.

    Attributes:
        syntax: What the parse tree says about it.
        age: Number of edits since the one that taught it.
        edit: The newest edit that taught it.
        written: Words of the new lines of all edits.
    """

    candidate: Candidate
    syntax: ChangeSyntax
    age: int
    edit: LineEdit
    written: frozenset[str]

    def rule_features(self) -> dict[str, float]:
        """Return the features that need no model, by name."""
        candidate, syntax = self.candidate, self.syntax
        orphan = syntax.orphan or REPORTED in candidate.kinds
        bound = float(not orphan)  # what lost its definition must change, however far or frequent it is
        return {
            **{kind: bound * (kind in candidate.kinds) for kind in ("name", "tokens", "holes", "analogy")},
            "votes": math.log(candidate.votes),
            "occurrences": bound * math.log(candidate.occurrences),
            "pattern": math.log1p(candidate.pattern),
            "distance": bound * math.log1p(abs(candidate.line - candidate.taught_at[0])),
            "age": bound * min(self.age, 3),
            "grows": float(len(candidate.new) > len(candidate.old)),
            "same_kind": float(syntax.same_kind),
            "same_scope": float(syntax.same_scope),
            "literal": float(syntax.literal),
            "orphan": float(orphan),
            "hunk": math.log1p(len(self.edit.old) + len(self.edit.new)),
            "kept": float(not candidate.names.isdisjoint(self.written)),  # no rename if the edits still use the name
            "same_text": float({line.strip() for line in candidate.old} <= {line.strip() for line in self.edit.old}),
        }


def judged_features(rules_logit: float, judgement: Judgement) -> dict[str, float]:
    """Return the features of a proposal that the model judged, by name."""
    new, old = judgement.new[judgement.shared :], judgement.old[judgement.shared :]
    ratio = max(-_MAX_RATIO, min(_MAX_RATIO, judgement.ratio))
    return {
        "rules": rules_logit,
        "ratio": ratio,
        "prefers": 1 / (1 + math.exp(-ratio)),  # most of what a nat tells, it tells around zero
        "first": max(-_MAX_RATIO, min(_MAX_RATIO, float(new[0] - old[0]))),
    }


def proposals(request: NextEditRequest, parsing: Parsing, written: Sequence[Candidate] = ()) -> list[Proposal]:
    """Return what the last edits imply for the other lines, without what would add syntax errors.

    A model that writes next edits has `written` some of the candidates.

    Raises:
        ParseLimitError: Parsing exceeded a bound.
        CancelledError: The token that `parsing` watches was cancelled.
    """
    edits, told = request.edits, (request.diagnostics, request.elsewhere, written)
    found = candidates(request.lines, edits, parsing.raise_if_cancelled, *told)
    found = _nearest(found, request.elsewhere or request.lines, edits)
    if not found:
        return []
    came = words([line for edit in edits for line in edit.new])
    facts = parsing(syntax_of_changes, request, found)
    return [
        Proposal(candidate, syntax, len(edits) - 1 - candidate.edit, edits[candidate.edit], came)
        for candidate, syntax in zip(found, facts, strict=True)
        if not syntax.breaks and (syntax.orphan or not (request.elsewhere or _is_bold(candidate, edits)))
    ]


def _is_bold(candidate: Candidate, edits: Sequence[LineEdit]) -> bool:
    """Return whether only a lost definition justifies a candidate: of a part of an edit, or of lines just edited."""
    edited = any(edit.line < candidate.end and candidate.line < edit.line + len(edit.new) for edit in edits)
    return candidate.is_part or (edited and REPORTED not in candidate.kinds)


def _nearest(found: list[Candidate], lines: Sequence[str], edits: Sequence[LineEdit]) -> list[Candidate]:
    """Return as many candidates as the parser has time for: those with diagnostics, those nearest to the last edit."""
    most = max(_MIN_PARSED, _PARSED_CHARACTERS // (1 + sum(map(len, lines))))
    if len(found) <= most:
        return found
    here = edits[-1].line
    nearest = sorted(found, key=lambda each: (REPORTED not in each.kinds, each.is_part, abs(each.line - here)))[:most]
    return sorted(nearest, key=lambda candidate: candidate.line)
