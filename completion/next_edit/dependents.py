"""Dependent edits: what an edit makes necessary elsewhere and does not show. The model writes what is new there."""

from __future__ import annotations

from collections.abc import Iterator

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.edits import NextEditRequest, fingerprint
from completion.next_edit.candidates import DEPENDENT, GAP, MAX_EDITS, Candidate
from completion.next_edit.judge import Judge, Judgement
from completion.next_edit.parallels import parallels
from completion.next_edit.proposals import Proposal, with_syntax
from completion.syntax.dependent_places import dependent_places
from completion.syntax.parsing import Parsing

MAX_JUDGED = 4
"""Maximum number of dependent edits that the model writes and judges for one request, those nearest to the last edit
first."""

MAX_CHARACTERS = 300_000
"""Maximum length of a document with dependent edits: what they need of its tree is found within the parser's bounds."""


def dependents(request: NextEditRequest, parsing: Parsing) -> list[Candidate]:
    """Return the dependent edits of a document, the nearest to the last edit first; a `GAP` is yet to be written.

    Raises:
        ParseLimitError: Parsing exceeded a bound.
        CancelledError: The token that `parsing` watches was cancelled.
    """
    lines, edits = request.lines, request.edits
    is_large = sum(map(len, lines)) > MAX_CHARACTERS
    if not edits or is_large or any(edit.line + len(edit.new) > len(lines) for edit in edits):
        return []
    first = max(0, len(edits) - MAX_EDITS)
    found = list(parallels(lines, edits, first, request.language, parsing.raise_if_cancelled))
    places = parsing(dependent_places, list(lines), list(edits[first:]), request.language, GAP)
    for index, change in places:
        old = tuple(lines[change.line : change.line + change.count])
        kinds = frozenset({DEPENDENT})
        found.append(Candidate(change.line, old, change.new, kinds, first + index, change.column, change.taught_at))
    found = [each for each in found if not any(GAP in line for line in each.old)]
    return sorted(found, key=lambda each: abs(each.line - edits[-1].line))


def judged_dependents(
    request: NextEditRequest, judge: Judge, session: KVSession, parsing: Parsing, cancel: CancelToken
) -> Iterator[tuple[Proposal, Judgement]]:
    """Yield the dependent edits that the model could write and that add no syntax errors, each with its judgement.

    Raises:
        CancelledError: Soon after `cancel`.
        ParseLimitError: Parsing exceeded a bound.
    """
    seen = set(request.refused)
    for place in dependents(request, parsing)[:MAX_JUDGED]:
        written = judge.written(request, place, session, cancel) if any(GAP in line for line in place.new) else place
        if written is None or (name := fingerprint(written.old, written.new)) in seen:
            continue
        seen.add(name)
        for proposal in with_syntax([written], request.lines, request.edits, request.language, parsing):
            question = judge.question(
                request.lines, request.edits, written, path=request.path, language=request.language
            )
            if not question.is_too_long:
                yield proposal, judge.judge(question, session, cancel)
