"""Next edits in other documents: pairs of files of one release, of which the first is edited and the second is open.

The first file is edited change by change as in a replay. After each change, edits are sought in the second one, which
is as it was before the release: a right one makes a change of the release. Where the first file is complete, they are
sought in the second one as it is after the release as well: there, silence is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.next_edit.choosing import Way, rows_by_state, share, visible
from benchmarks.next_edit.replay import Later, Outcome, State, session, states
from benchmarks.next_edit.training import Row
from completion.next_edit.rewrites import words

MAX_PAIRS = 40
"""Maximum number of other files that are open beside one."""


def pairs(records: Sequence[Mapping[str, Any]]) -> Iterator[list[State]]:
    """Yield the states of each file with each other changed file of its release and language.

    Only those in which the other file has a word that the edits have taken away.
    """
    releases: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        releases[record["source"], record["language"]].append(record)
    for release in releases.values():
        for first in release:
            own = list(states(first)) if len(release) > 1 else []
            for second in [each for each in release if each is not first][:MAX_PAIRS]:
                if found := list(_with(own, second)):
                    yield found


def _with(own: Sequence[State], second: Mapping[str, Any]) -> Iterator[State]:
    found = session(second)
    before, after = tuple(found.text.split("\n")), tuple(second["after"].split("\n"))
    ahead, later = 0, list[Later]()
    for number, change in enumerate(found.changes):
        later.append(Later(number, change.start - ahead, change.end - ahead, change.new))
        ahead += len(change.new) - (change.end - change.start)
    known = words(before) | words(after)
    for state in own:
        name = f"{state.record} + {second['path']}"
        here = replace(state, record=name, elsewhere=before, later=tuple(later))
        if not known.isdisjoint(lost(here)):
            yield here
            if not state.later:
                yield replace(here, number=state.number + 1, elsewhere=after, later=())


def lost(state: State) -> frozenset[str]:
    """Return the words that the edits of a state have taken away."""
    gone, come = (words([line for edit in state.edits for line in getattr(edit, side)]) for side in ("old", "new"))
    return gone - come


def summary(replays: Sequence[Sequence[State]], rows: Sequence[Row], way: Way) -> dict[str, float | None]:
    """Return the figures of edits in other files.

    Dependent are changes that take away a word which the edits took away as well.
    """
    by_state = rows_by_state(rows)
    counts: Counter[str] = Counter()
    for replay in replays:
        done, dependent = set[int](), set[int]()
        for each in visible(replay, by_state, way):
            state = each.state
            done |= state.covered([row.proposal.candidate for row in each.rows if row.outcome is Outcome.EXACT])
            for later in state.later:
                gone = words(state.elsewhere[later.start : later.end]) - words(later.new)
                dependent |= set() if gone.isdisjoint(lost(state)) else {later.number}
            counts.update(row.outcome for row in each.new)
            counts["complete"] += not state.later
            counts["quiet"] += not state.later and not each.rows
        counts["dependent"] += len(dependent)
        counts["covered"] += len(done & dependent)
    count = sum(counts[outcome] for outcome in Outcome)
    return {
        "pairs_of_files": len(replays),
        "shown_other_files": count,
        "precision_other_files": share(counts[Outcome.EXACT], count, 3),
        "dependent_other_files": counts["dependent"],
        "coverage_other_files": share(counts["covered"], counts["dependent"], 4),
        "quiet_other_files": share(counts["quiet"], counts["complete"], 4),
    }
