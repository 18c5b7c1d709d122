"""Cuts a suggestion where it begins to repeat the lines below the cursor, or a key of the mapping around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from completion.postprocess.context import Context, Dropped, DropReason
from completion.postprocess.suffix_overlap import before_rest, repeatable_rest
from completion.request import Suggestion
from completion.syntax.brackets import LINE_CLOSERS
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import announces, defines_name, is_clause, may_be_modifiers, without_modifiers
from completion.syntax.mapping_keys import has_keys, key_of, keys_beside, may_become

LOOK_AHEAD = 2
"""Number of non-blank lines below the cursor where a repetition may begin."""
MAX_COMPARED = 4
"""Maximum number of lines that the text must have in common with the document."""

_BLANKS = re.compile(r"\s+")
_LONG = 20  # characters of a folded line, from which on it hardly repeats by chance


class _Target(NamedTuple):
    """A line below the cursor and the lines below it that a repetition must have, too.

    Attributes:
        lines: The lines, folded.
        first: The first one as it stands in the document.
    """

    lines: tuple[str, ...]
    first: str

    def folded(self, line: str) -> str:
        """Return a line in the form of the first one: if that is a definition, without words such as `public`."""
        return fold(without_modifiers(line) if defines_name(self.first) else line)


class _Line(NamedTuple):
    """A line as it would stand in the document, and its offset in the text."""

    whole: str
    offset: int


def following_lines(suggestion: Suggestion, context: Context) -> Suggestion | Dropped:
    """Cut before the first line that repeats one of the next lines of the document, or a key of its own mapping.

    The comparison ignores blanks, case, the kind of quotes, a comma or semicolon at the end, and `public` or `async`
    before a definition. All other differences count, because lines of code often differ in one name only. After a line
    that may also begin another item (`try:`, a decorator, a comment), the lines that tell the items apart must be the
    same, as far as the text goes. All of them must be there if the user has begun such a line, and it stands elsewhere,
    too, or the text leaves its brackets open, as in `Exte` above `Extension(`: then it may begin a further item. A
    clause such as `else` begins none: a statement has it once. Of a text that was cut short, a last line that may
    become such a repetition goes, too. Lines without words are left to the `closers` filter.
    """
    start = _repetition(suggestion.text, context, whole=False)
    if start is not None:
        kept = _kept(suggestion.text, start, context)
    elif context.cut_short and suggestion.text:
        kept = suggestion.text[: stable_length(suggestion.text, context)]
    else:
        return suggestion
    return replace(suggestion, text=kept) if kept else Dropped(DropReason.REPEATS_FOLLOWING)


def certain_length(text: str, context: Context) -> int:
    """Return the length of whole lines without a repetition that the filter cuts however the text continues."""
    start = _repetition(text, context, whole=True)
    return len(text) if start is None else len(_kept(text, start, context))


def stable_length(text: str, context: Context) -> int:
    """Return the length of the part of an unfinished text that the filter keeps however the text continues."""
    targets = _targets(context)
    start = text.rfind("\n") + 1
    last = _Line(text[start:] if start else context.line_before + text, start)
    lines = [*_lines(text[:start], context), last] if targets else []
    near = lines[-MAX_COMPARED:]
    for index, line in enumerate(near):
        if any(_may_repeat(near[index:], target) for target in targets):
            return max(line.offset - 1, 0)
    return max(last.offset - 1, 0) if _may_repeat_key(text, last, context) else len(text)


def fold(line: str) -> str:
    """Return the line in the form that repetitions share; a short line keeps its indentation.

    Short lines such as `return None` often follow each other at different depths; long lines hardly ever do.
    """
    folded = _folded(line)
    if len(folded) >= _LONG:
        return folded
    return " " * depth(line) + folded


def _folded(line: str) -> str:
    return _BLANKS.sub("", line).rstrip(",;").replace("'", '"').lower()


def _targets(context: Context) -> list[_Target]:
    """Return the folded next line, and the line after it if it is too long to match by chance.

    Each comes with the lines below it that a repetition must have, too. A line within the block that the next line
    opens is none: the text at the cursor does not begin in there.
    """
    below = list(islice((line for line in context.following if line.strip()), LOOK_AHEAD + MAX_COMPARED))
    found = [_target(below[index : index + MAX_COMPARED], context) for index in range(min(LOOK_AHEAD, len(below)))]
    return [
        target
        for index, target in enumerate(found)
        if any(character.isalnum() for character in target.lines[0])
        and (index == 0 or (len(target.lines[0].lstrip()) >= _LONG and depth(below[1]) <= depth(below[0])))
    ]


def _target(lines: Sequence[str], context: Context) -> _Target:
    """Return the first of the lines and those up to the first one that begins no other item."""
    compared = takewhile(lambda pair: _may_begin_another(*pair, context.language), pairwise(lines))
    found = _Target(tuple(_folded(line) for _, line in compared), lines[0])
    return found._replace(lines=(found.folded(lines[0]), *found.lines))


def _may_begin_another(line: str, below: str, language: str) -> bool:
    """Return whether another item may begin with the same line: it opens or announces something without its name."""
    opens = depth(below) > depth(line) or below.lstrip().startswith("{")
    return (opens or announces(line, language)) and not (defines_name(line) or _is_clause(line, language))


def _lines(text: str, context: Context) -> list[_Line]:
    """Return the lines of the text that are not blank."""
    lines, offset = [], 0
    for line in text.split("\n"):
        if line.strip():
            lines.append(_Line(line if offset else context.line_before + line, offset))
        offset += len(line) + 1
    return lines


def _repetition(text: str, context: Context, *, whole: bool) -> int | None:
    """Return the offset of the first line that repeats a target, all of it if `whole`; None if there is none."""
    targets = _targets(context)
    for index, line in enumerate(lines := _lines(text, context)):
        near = lines[index : index + MAX_COMPARED]
        found = [
            target
            for target in targets
            if _repeats(near, target, whole=whole) and not _is_of_inner(line.whole, target.first, context.language)
        ]
        if not line.offset and context.line_before.strip():
            found = [each for each in found if len(near) >= len(each.lines) or not _begins_item(text, each, context)]
        if (found or _repeats_key(text, line, context)) and _may_cut(text, line.offset, context):
            return line.offset
    return None


def _is_clause(line: str, language: str) -> bool:
    """Return whether a line goes on with a statement above it, also after the closer of its block."""
    return is_clause(line.lstrip().removeprefix("}"), language)


def _is_of_inner(line: str, below: str, language: str) -> bool:
    """Return whether a line goes on with another statement than `below` does, which is the same further out or in."""
    return depth(line) != depth(below) and _is_clause(below, language)


def _begins_item(text: str, target: _Target, context: Context) -> bool:
    """Return whether a text makes of the line that the user has begun the first line of a further item.

    Its brackets stay open, or the line stands elsewhere, too, but not right above.
    """
    if context.scan(text).open:
        return True
    whole, above = f"\n{target.first}\n", context.prefix[: len(context.prefix) - len(context.line_before)]
    return (whole in above or context.suffix.count(whole) > 1) and not above.endswith(whole)


def _repeats(lines: Sequence[_Line], target: _Target, *, whole: bool) -> bool:
    """Return whether the lines begin with the target, or are its beginning unless it must be whole."""
    if target.folded(lines[0].whole) != target.lines[0] or (whole and len(lines) < len(target.lines)):
        return False
    return all(_folded(line.whole) == own for line, own in zip(lines[1:], target.lines[1:], strict=False))


def _may_repeat(lines: Sequence[_Line], target: _Target) -> bool:
    """Return whether lines, the last of which is unfinished, may become the beginning of the target."""
    *finished, last = lines
    if len(finished) >= len(target.lines):
        return False
    own = target.lines[len(finished)].lstrip()
    if finished:
        return own.startswith(_folded(last.whole)) and _repeats(finished, target, whole=False)
    if defines_name(target.first) and may_be_modifiers(last.whole):
        return True
    return own.startswith(target.folded(last.whole).lstrip())


def _repeats_key(text: str, line: _Line, context: Context) -> bool:
    """Return whether a line of the text has a key that its mapping has already."""
    key = key_of(line.whole, context.language)
    is_typed = not line.offset and key_of(context.line_before, context.language) is not None
    return key is not None and not is_typed and key in _keys_beside(text, line, context)


def _may_repeat_key(text: str, last: _Line, context: Context) -> bool:
    """Return whether the unfinished last line of the text may still get a key that its mapping has already."""
    if not last.whole.strip() or key_of(last.whole, context.language) is not None:
        return False
    return may_become(last.whole, _keys_beside(text, last, context))


def _keys_beside(text: str, line: _Line, context: Context) -> frozenset[str]:
    if not has_keys(context.language) or context.before.string or context.line_after.strip(LINE_CLOSERS):
        return frozenset()
    above = context.near[: len(context.near) - len(context.line_before)]
    own = context.line_before + text[: line.offset] if line.offset else ""
    return keys_beside(line.whole, above, own, "\n".join(context.following), context.language)


def _kept(text: str, start: int, context: Context) -> str:
    """Return the text before a repetition, without the rest of the cursor's line at its end; "" if it is blank."""
    kept = text[: max(start - 1, 0)].removesuffix("\r")
    rest = repeatable_rest(context)
    if rest and kept.rstrip().endswith(rest):
        kept = before_rest(kept, len(kept.rstrip()) - len(rest), context)
    return kept if kept.strip() else ""


def _may_cut(text: str, offset: int, context: Context) -> bool:
    """Return whether every bracket that the text opens before `offset` is closed there."""
    return not context.scan(text[:offset]).open
