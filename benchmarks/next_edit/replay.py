"""States of files between two releases: after each change, what the language server knows and what changes later."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.quality.tasks import apply_edit
from completion.edits import LineEdit, NextEditRequest
from completion.next_edit.rewrites import Candidate
from lsp_server.documents.documents import Document
from lsp_server.documents.text_lines import TextLines


class Outcome(StrEnum):
    """What a proposal turns out to be."""

    EXACT = "exact"  # a later change makes these lines what the proposal says
    PLACE = "place"  # a later change changes these lines, to something else
    WRONG = "wrong"  # no later change touches them


@dataclass(frozen=True, slots=True)
class Later:
    """A later change: the lines that it replaces in the document now, and the lines in their place.

    Attributes:
        number: Number of the change within the record.
    """

    number: int
    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A file after one of its changes.

    Attributes:
        record: Name of the record.
        package: Name of the package, by which the data is divided.
        number: Number of the last change.
        lines: The document now.
        edits: What the language server logged.
        later: The changes that follow; empty where the file is complete.
        elsewhere: Another document, in which edits are sought and which `later` is about; empty if it is this one.
    """

    record: str
    package: str
    language: str
    path: str
    number: int
    lines: tuple[str, ...]
    edits: tuple[LineEdit, ...]
    later: tuple[Later, ...]
    elsewhere: tuple[str, ...] = ()

    def request(self) -> NextEditRequest:
        """Return the request for what the edits imply."""
        return NextEditRequest(self.lines, self.edits, self.language, self.path, elsewhere=self.elsewhere)

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return what a candidate turns out to be."""
        start, end = candidate.line, candidate.line + len(candidate.old)
        for later in self.later:
            if (start < later.end and later.start < end) or start == end == later.start:
                window = len(candidate.new)
                inside = later.start <= start and end <= later.end
                made = any(later.new[at : at + window] == candidate.new for at in range(len(later.new) - window + 1))
                made = made if candidate.new else not later.new  # lines that become others are not deleted
                return Outcome.EXACT if inside and made else Outcome.PLACE
            # an insertion right after or before a line that the proposal repeats
            if later.start == later.end and start <= later.start <= end:
                keeps = candidate.old[: later.start - start], candidate.old[later.start - start :]
                if (*keeps[0], *later.new, *keeps[1]) == candidate.new:
                    return Outcome.EXACT
        return Outcome.WRONG

    def covered(self, proposals: list[Candidate]) -> set[int]:
        """Return the numbers of the later changes that exact proposals make completely."""
        done = set()
        for later in self.later:
            lines = list((self.elsewhere or self.lines)[later.start : later.end])
            made = [p for p in proposals if later.start <= p.line and p.line + len(p.old) <= later.end]
            for proposal in sorted(made, key=lambda p: -p.line):
                at = proposal.line - later.start
                lines[at : at + len(proposal.old)] = proposal.new
            inserted = later.start == later.end and any(
                later.start - 1 <= p.line <= later.start and self.outcome(p) is Outcome.EXACT for p in proposals
            )
            if (tuple(lines) == later.new and made) or inserted:
                done.add(later.number)
        return done


@dataclass(frozen=True, slots=True)
class Change:
    """A change of lines: those from `start` to before `end`, in the document as it is then, become `new`."""

    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A file that is edited from one release to the next, from the top to the bottom."""

    text: str
    changes: tuple[Change, ...]


def session(record: Mapping[str, Any]) -> Session:
    """Return the session of a release replay."""
    before, after = (TextLines(record[key]) for key in ("before", "after"))
    old = [before.line(number) for number in range(before.end.line + 1)]
    new = [after.line(number) for number in range(after.end.line + 1)]
    operations = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = tuple(
        Change(new_start, new_start + end - start, tuple(new[new_start:new_end]))
        for kind, start, end, new_start, new_end in operations
        if kind != "equal"
    )
    return Session("\n".join(old), changes)


def states(record: Mapping[str, Any]) -> Iterator[State]:
    """Yield the states of a release replay, whose changes are made from the top to the bottom."""
    found = session(record)
    document = Document("", record["language"], 0, TextLines(found.text))
    for number, change in enumerate(found.changes):
        replace_lines(document, change.start, change.end - change.start, list(change.new))
        later, ahead = list[Later](), 0
        for each, following in enumerate(found.changes[number + 1 :], number + 1):
            later.append(Later(each, following.start - ahead, following.end - ahead, following.new))
            ahead += len(following.new) - (following.end - following.start)
        lines = tuple(document.lines.line(at) for at in range(document.lines.end.line + 1))
        edits = document.edits.edits(document.lines)
        package = record["source"].partition("==")[0]
        yield State(record["id"], package, record["language"], record["path"], number, lines, edits, tuple(later))


def replace_lines(document: Document, first: int, count: int, new: list[str]) -> None:
    """Replace lines of a document by one message of an editor."""
    lines = [document.lines.line(at) for at in range(document.lines.end.line + 1)]
    offset = sum(len(line) + 1 for line in lines[:first])
    gone = "".join(line + "\n" for line in lines[first : first + count])
    come = "".join(line + "\n" for line in new)
    if first + count > len(lines) - 1:  # the last line has no end
        gone, come = gone.removesuffix("\n"), come.removesuffix("\n")
    apply_edit(document, offset, gone, come)
