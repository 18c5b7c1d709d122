"""Candidates for the next edit: lines of the document to which the last edits apply, and what they would become."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache

from completion.edits import MAX_LINE_CHARACTERS, Diagnostic, LineEdit, edits_of
from completion.ending.context import Context
from completion.ending.replaced_lines import ReplacedLines
from completion.next_edit.analogy import CHECKED_LINES, MAX_OCCURRENCES, analogous
from completion.next_edit.rewrites import REPORTED, Candidate, Rewrite, RewriteKind, apply, is_word, tokens_of, words
from completion.next_edit.taught_rewrites import line_pairs, rewrites
from completion.syntax.parsing import IN_PROCESS, Parsing

MAX_EDITS = 6
"""Maximum number of edits that candidates are made from, the last ones, in lines without a diagnostic."""
_MAX_HUNK_LINES = 12  # of an edit that teaches rewrites
_MAX_NAMES = 40  # places of one name that becomes another; of other rewrites, `MAX_OCCURRENCES`
_WORDS = re.compile(r"[^\W\d]\w+")
_RENAMES = (RewriteKind.NAME, RewriteKind.PART)
_FAR = frozenset(kind.value for kind in (*_RENAMES, RewriteKind.HOLES))  # what also applies to other documents
_SINGLE_WORD_KINDS = frozenset({RewriteKind.CONTEXT, RewriteKind.CALL})  # need two edits that teach them


@dataclass(slots=True)
class _Rule:
    """A rewrite with the edits that teach it."""

    rewrite: Rewrite
    edit: int
    taught_at: tuple[int, int]
    votes: set[int] = field(default_factory=set)


def candidates(
    lines: Sequence[str],
    edits: Sequence[LineEdit],
    check: Callable[[], None] = lambda: None,
    diagnostics: Sequence[Diagnostic] = (),
    elsewhere: Sequence[str] = (),
    written: Sequence[Candidate] = (),
) -> list[Candidate]:
    """Return what the last edits imply for the other lines of a document, in the order of the lines.

    Args:
        lines: Lines of the document after the edits, without their ends.
        edits: The edits, the latest last.
        check: Called often; it raises if nobody waits for the candidates any more.
        diagnostics: What other tools report. In their lines all edits count, and a rule that matches often as well.
        elsewhere: Lines of another document: unless there are none, only what names and forms become there is returned.
        written: Candidates of a model that writes next edits.
    """
    first = max(0, len(edits) - MAX_EDITS)
    if elsewhere:
        return [each for each in _rewritten(elsewhere, edits, first, _short(elsewhere), check) if each.kinds <= _FAR]
    edited = {number for edit in edits[first:] for number in range(edit.line, edit.line + len(edit.new))}
    free = _short(lines)
    found: dict[tuple[int, tuple[str, ...], tuple[str, ...]], Candidate] = {}
    for candidate in (
        *_rewritten(lines, edits, first, free, check),
        *analogous(lines, edits, first, edited, check),
        *_reported(lines, edits, free, check, diagnostics),
        *written,
    ):
        if any(_takes_back(candidate, edit) for edit in edits):
            continue
        key = (candidate.line, candidate.old, candidate.new)
        other = found.get(key)
        found[key] = candidate if other is None else _merged(other, candidate)
    return sorted(found.values(), key=lambda candidate: candidate.line)


def _short(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if len(line) <= MAX_LINE_CHARACTERS]


def _takes_back(candidate: Candidate, edit: LineEdit) -> bool:
    """Return whether a candidate undoes a part of an edit: removes what the user wrote, or brings back what is gone."""
    if not edit.new and candidate.line <= edit.line <= candidate.end:
        return set(edit.old) <= set(candidate.new)
    if candidate.end <= edit.line or edit.line + len(edit.new) <= candidate.line:
        return False
    before, now, old, new = (tokens_of(lines) for lines in (edit.old, edit.new, candidate.old, candidate.new))
    return bool((now - before) & (old - new) or (before - now) & (new - old))


def _merged(one: Candidate, other: Candidate) -> Candidate:
    """Return one candidate for two of the same change."""
    return replace(
        one if one.edit >= other.edit else other,
        kinds=one.kinds | other.kinds,
        occurrences=max(one.occurrences, other.occurrences),
        pattern=max(one.pattern, other.pattern),
        votes=max(one.votes, other.votes),
    )


def _rules(edits: Sequence[LineEdit], first: int, check: Callable[[], None]) -> list[_Rule]:
    """Return the rewrites that the edits from `first` on teach, the latest first."""
    rules: dict[tuple[tuple[str, ...], tuple[str | int, ...]], _Rule] = {}
    for index in range(len(edits) - 1, first - 1, -1):
        edit = edits[index]
        if not edit.old or not edit.new or max(len(edit.old), len(edit.new)) > _MAX_HUNK_LINES:
            continue
        check()
        for line, rewrite in _taught(edit.old, edit.new, check):
            place = (edit.line + line, rewrite.column)
            rule = rules.setdefault((rewrite.old, rewrite.new), _Rule(rewrite, index, place))
            rule.votes.add(index)
            if rewrite.kind is RewriteKind.NAME:  # a whole change tells more than a part of another one
                rule.rewrite = rewrite
    for index, rewrite in _moved(edits[first:], check):
        place = (edits[first + index].line, 0)
        rules.setdefault((rewrite.old, rewrite.new), _Rule(rewrite, first + index, place, {first + index}))
    return [rule for rule in rules.values() if len(rule.votes) > 1 or rule.rewrite.kind not in _SINGLE_WORD_KINDS]


def _moved(edits: Sequence[LineEdit], check: Callable[[], None]) -> Iterator[tuple[int, Rewrite]]:
    """Yield each word that is gone from the edits and the new one most like it, with the index of the edit."""
    small = [edit for edit in edits if max(len(edit.old), len(edit.new)) <= _MAX_HUNK_LINES]
    gone = words([line for edit in small for line in edit.old])
    came = words([line for edit in small for line in edit.new])
    for index, edit in enumerate(edits):
        for word in sorted(words(edit.old) & gone - came):
            check()
            own = words(edit.new if len(edit.old) == len(edit.new) else ())  # such lines teach by themselves
            for likest in get_close_matches(word, sorted(came - gone - own), 1):
                yield index, Rewrite((word,), (likest,), RewriteKind.PART)


@lru_cache(maxsize=64)
def _taught(old: tuple[str, ...], new: tuple[str, ...], check: Callable[[], None]) -> tuple[tuple[int, Rewrite], ...]:
    """Return the rewrites that an edit teaches, each with its line within the edit. The next pause needs most again."""
    pairs = line_pairs(old, new, check)
    return tuple((new.index(after), rewrite) for before, after in pairs for rewrite in rewrites(before, after))


def _rewritten(
    lines: Sequence[str],
    edits: Sequence[LineEdit],
    first: int,
    free: Sequence[int],
    check: Callable[[], None],
    *,
    is_bounded: bool = True,
) -> Iterator[Candidate]:
    rules = _rules(edits, first, check)
    having = _lines_with({text for rule in rules for text in rule.rewrite.old if is_word(text)}, lines, free, check)
    matched: defaultdict[int, dict[int, _Rule]] = defaultdict(dict)
    for rule in rules:
        most = _MAX_NAMES if rule.rewrite.kind in _RENAMES else MAX_OCCURRENCES
        places, occurrences = list[tuple[int, str, int, str]](), 0
        for number in min((having[text] for text in rule.rewrite.old if is_word(text)), key=len):
            check()
            new, columns = apply(rule.rewrite, lines[number])
            if columns and new != lines[number]:
                places.append((number, new, columns[0], rule.rewrite.kind.value))
                for column in columns if len(columns) == 2 and rule.rewrite.kind in _RENAMES else ():
                    one, _ = apply(rule.rewrite, lines[number], column)  # the other one may be text
                    places.append((number, one, column, RewriteKind.PART.value))
                occurrences += len(columns)
            if is_bounded and occurrences > most:
                places = []
                break
        for number, new, column, kind in places:
            if kind != RewriteKind.PART:
                matched[number][id(rule)] = rule
            yield Candidate(
                number,
                (lines[number],),
                (new,),
                frozenset({kind}),
                rule.edit,
                column=column,
                taught_at=rule.taught_at,
                occurrences=occurrences,
                pattern=len(rule.rewrite.old),
                votes=len(rule.votes),
            )
    for number, here in matched.items():
        if len(here) > 1:
            yield from _combined(number, lines[number], list(here.values()))


def _reported(
    lines: Sequence[str],
    edits: Sequence[LineEdit],
    free: Sequence[int],
    check: Callable[[], None],
    diagnostics: Sequence[Diagnostic],
) -> Iterator[Candidate]:
    named: defaultdict[int, set[str]] = defaultdict(set)
    for each in diagnostics:
        named[each.line].update(_WORDS.findall(each.message))
    having = [number for number in free if number in named]
    for candidate in _rewritten(lines, edits, 0, having, check, is_bounded=False) if having else ():
        if not candidate.names.isdisjoint(named[candidate.line]):
            yield replace(candidate, kinds=candidate.kinds | {REPORTED})


def _lines_with(
    words: set[str], lines: Sequence[str], free: Sequence[int], check: Callable[[], None]
) -> dict[str, list[int]]:
    """Return the numbers of the lines that have each word."""
    found: dict[str, list[int]] = {word: [] for word in words}
    for at, number in enumerate(free):
        if at % CHECKED_LINES == 0:
            check()
        for word in words.intersection(_WORDS.findall(lines[number])):
            found[word].append(number)
    return found


def _combined(number: int, line: str, rules: Sequence[_Rule]) -> Iterator[Candidate]:
    """Yield the line with all rules applied, those with longer patterns first."""
    new, used = line, list[_Rule]()
    for rule in sorted(rules, key=lambda rule: -len(rule.rewrite.old)):
        after, columns = apply(rule.rewrite, new)
        if columns:
            new, used = after, [*used, rule]
    if len(used) > 1:
        newest = max(used, key=lambda rule: rule.edit)
        yield Candidate(
            number,
            (line,),
            (new,),
            frozenset({"combined"}),
            newest.edit,
            taught_at=newest.taught_at,
            pattern=sum(len(rule.rewrite.old) for rule in used),
            votes=min(len(rule.votes) for rule in used),
        )


def replaced_lines(history: str, context: Context, parsing: Parsing = IN_PROCESS) -> ReplacedLines:
    """Return the lines that were deleted at the cursor, and what the edits before imply for them.

    The last hunk of a request's history is what was deleted at the cursor; "" stands for nothing.

    Raises:
        CancelledError: The token that `parsing` watches was cancelled.
    """
    edits = edits_of(history)
    if not edits or edits[-1].new:
        return ReplacedLines.of((), (), context)
    deleted = edits.pop().old
    taught = candidates(deleted, [edit for edit in edits if edit.old and edit.new], parsing.raise_if_cancelled)
    return ReplacedLines.of(deleted, [line for found in taught if not found.is_part for line in found.new], context)
