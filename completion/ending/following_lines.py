"""Cuts a suggestion where it begins to repeat the lines below the cursor, or a key of the mapping around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.ending.suffix_overlap import before_rest, repeatable_rest
from completion.syntax.brackets import LINE_CLOSERS
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import announces, defines_name, is_clause, may_be_modifiers, without_modifiers
from completion.syntax.mapping_keys import has_keys, key_of, keys_beside, may_become

LOOK_AHEAD = 2
"""Number of non-blank lines below the cursor where a repetition may begin."""
MAX_COMPARED = 4
"""Maximum number of lines that the text must have in common with the document."""

_LONG = 20  # characters of a folded line, from which on it hardly repeats by chance


class _Target(NamedTuple):
    """A line below the cursor and the lines below it that a repetition must have, too.

    Attributes:
        lines: The lines, folded; the first one, if it is a definition, without words such as `public`.
        first: The first one as it stands in the document.
        defines: Whether it is a definition.
    """

    lines: tuple[str, ...]
    first: str
    defines: bool


class _Line(NamedTuple):
    """A line as it would stand in the document, its offset in the text, and its form that repetitions share."""

    whole: str
    offset: int
    folded: str


def following_lines(text: str, context: Context) -> Ends:
    """End before the first line that repeats one of the next lines of the document, or a key of its own mapping.

    The comparison ignores blanks, case, the kind of quotes, a comma or semicolon at the end, and `public` or `async`
    before a definition. All other differences count, because lines of code often differ in one name only. After a line
    that may also begin another item (`try:`, a decorator, a comment), the lines that tell the items apart must be the
    same, as far as the text goes. All of them must be there if the user has begun such a line, and it stands elsewhere,
    too, or the text leaves its brackets open, as in `Exte` above `Extension(`: then it may begin a further item. A
    clause such as `else` begins none: a statement has it once. Of a text that was cut short, a last line that may
    become such a repetition goes, too. Lines without words are left to the `closers` rule.
    """
    targets = _targets(context.following, context.language)
    keyed = has_keys(context.language) and not context.before.string and not context.line_after.strip(LINE_CLOSERS)
    if not targets and not keyed:
        return whole(text)
    lines = _lines(text, context)
    sure = _sure(text, lines, targets, context, keyed=keyed)
    for index, line in enumerate(lines):
        near = [each for each in lines[index : index + MAX_COMPARED] if each.folded]
        needed = _repeated(text, near, targets, context) if line.folded else None
        if needed is None and keyed and _repeats_key(text, line, context):
            needed = 1
        if needed and not context.scan(text[: line.offset]).open:  # else a bracket of the text goes on in this line
            kept = _kept(text, line.offset, context)
            finished = sum(bool(each.folded) for each in lines[index:-1])
            return Ends(len(kept), min(len(kept), sure), over=finished >= needed)
    return Ends(min(sure, len(text)) if context.cut_short else len(text), sure)


@lru_cache(maxsize=2)  # they stay the same while a suggestion grows
def _targets(following: Sequence[str], language: str) -> tuple[_Target, ...]:
    """Return the next line, and the line after it if it is too long to match by chance.

    Each comes with the lines below it that a repetition must have, too. A line within the block that the next line
    opens is none: the text at the cursor does not begin in there.
    """
    below = list(islice((line for line in following if line.strip()), LOOK_AHEAD + MAX_COMPARED))
    found = [_target(below[index : index + MAX_COMPARED], language) for index in range(min(LOOK_AHEAD, len(below)))]
    return tuple(
        target
        for index, target in enumerate(found)
        if any(character.isalnum() for character in target.lines[0])
        and (index == 0 or (len(target.lines[0]) >= _LONG and depth(below[1]) <= depth(below[0])))
    )


def forget_texts() -> None:
    """Free what was kept of texts."""
    _targets.cache_clear()


def _target(lines: Sequence[str], language: str) -> _Target:
    """Return the first of the lines and those up to the first one that begins no other item."""
    compared = takewhile(lambda pair: _may_begin_another(*pair, language), pairwise(lines))
    defines = defines_name(lines[0])
    first = without_modifiers(lines[0]) if defines else lines[0]
    return _Target((_folded(first), *(_folded(line) for _, line in compared)), lines[0], defines)


def _may_begin_another(line: str, below: str, language: str) -> bool:
    """Return whether another item may begin with the same line: it opens or announces something without its name."""
    opens = depth(below) > depth(line) or below.lstrip().startswith("{")
    return (opens or announces(line, language)) and not (defines_name(line) or _is_clause(line, language))


def _lines(text: str, context: Context) -> list[_Line]:
    """Return the lines of the text that are not blank, and the last one."""
    lines, offset = [], 0
    for line in text.split("\n"):
        full = line if offset else context.line_before + line
        if full.strip() or offset + len(line) == len(text):
            lines.append(_Line(full, offset, _folded(full)))
        offset += len(line) + 1
    return lines


def _folded(line: str) -> str:
    """Return a line in the form that repetitions share."""
    return "".join(line.split()).rstrip(",;").replace("'", '"').lower()


def _sure(text: str, lines: Sequence[_Line], targets: Sequence[_Target], context: Context, *, keyed: bool) -> int:
    """Return the length of a text before lines at its end that may become a repetition."""
    near = lines[-MAX_COMPARED:]
    for index, line in enumerate(near):
        if any(_may_repeat(near[index:], target) for target in targets):
            return max(line.offset - 1, 0)
    last = lines[-1]
    if keyed and last.folded and key_of(last.whole, context.language) is None:
        return max(last.offset - 1, 0) if may_become(last.whole, _keys_beside(text, last, context)) else len(text)
    return len(text)


def _repeated(text: str, near: Sequence[_Line], targets: Sequence[_Target], context: Context) -> int | None:
    """Return how many of the lines tell that they repeat a target; None if they repeat none."""
    found = [each for each in targets if _repeats(near, each)]
    found = [each for each in found if not _is_of_inner(near[0].whole, each.first, context.language)]
    if not near[0].offset and context.line_before.strip():
        found = [each for each in found if len(near) >= len(each.lines) or not _begins_item(text, each, context)]
    return min((len(each.lines) for each in found), default=None)


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
    full, above = f"\n{target.first}\n", context.prefix[: len(context.prefix) - len(context.line_before)]
    return (full in above or context.suffix.count(full) > 1) and not above.endswith(full)


def _repeats(lines: Sequence[_Line], target: _Target) -> bool:
    """Return whether the lines begin with the target, or are its beginning.

    A short line must have the same indentation: ones such as `return None` often follow each other at other depths.
    """
    first, own = lines[0], target.lines[0]
    if not first.folded.endswith(own):
        return False
    if first.folded != own and not (target.defines and _folded(without_modifiers(first.whole)) == own):
        return False
    is_alike = len(own) >= _LONG or depth(first.whole) == depth(target.first)
    return is_alike and all(line.folded == own for line, own in zip(lines[1:], target.lines[1:], strict=False))


def _may_repeat(lines: Sequence[_Line], target: _Target) -> bool:
    """Return whether lines, the last of which is unfinished, may become the beginning of the target."""
    *finished, last = lines
    if len(finished) >= len(target.lines):
        return False
    own = target.lines[len(finished)]
    if finished or not target.defines:
        return own.startswith(last.folded) and (not finished or _repeats(finished, target))
    return may_be_modifiers(last.whole) or own.startswith((last.folded, _folded(without_modifiers(last.whole))))


def _repeats_key(text: str, line: _Line, context: Context) -> bool:
    """Return whether a line of the text has a key that its mapping has already."""
    key = key_of(line.whole, context.language)
    is_typed = not line.offset and key_of(context.line_before, context.language) is not None
    return key is not None and not is_typed and key in _keys_beside(text, line, context)


def _keys_beside(text: str, line: _Line, context: Context) -> frozenset[str]:
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
