"""Cuts a text where it begins to say one of the next lines again, defines what that defines, or leaves before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from completion.ending.context import Context
from completion.ending.keys import has_keys, may_repeat_key, repeats_key
from completion.ending.rest_of_line import before_rest, only_closers
from completion.ending.rule import Ends
from completion.ending.tokens import bits_of, folded
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import announces, defines_name, is_clause, may_be_modifiers, without_modifiers

TELLING = 36.0
"""Bits of a line, from which on it hardly repeats by chance at another depth or below another line."""

_LOOK_AHEAD = 2  # lines below the cursor where a repetition may begin
_MOST_ALIKE = 4  # lines that a text must have in common with the document
_NAME = re.compile(
    r"[ \t]*(?P<declares>[^=(\"'#]*?)(?P<name>[$@]?\w[\w.$>-]*)[ \t]*(?::(?!=)[^=]*)?(?<![-=!<>+*/%&|^.])"
    r"(?::=|=)(?![=>~])(?P<value>.*)"
)
_JUMP = re.compile(r"[ \t]*(?:return|break|continue|raise|throw)\b(?!.*\b(?:if|unless|when)\b(?!.*\belse\b))")
_LABEL = re.compile(r"[ \t]*(?:case|default|when)\b.*|.*:|[ \t]*[#)}\]].*")  # control gets there from elsewhere
_WORDS = re.compile(r"[\w \t]*")


class _Target(NamedTuple):
    """A line below the cursor: it and the lines below it that a repetition must have, and the bits of the first."""

    lines: tuple[tuple[str, ...], ...]
    first: str
    defines: bool
    bits: float


class _Line(NamedTuple):
    """A line as it would stand in the document, its offset in the text, and its tokens."""

    whole: str
    offset: int
    tokens: tuple[str, ...]


def next_lines(text: str, context: Context) -> Ends:
    """End before the first line that says one of the next lines again, or a key of its own mapping.

    After a line that may also begin another item (`try:`, a decorator, a comment), the lines that tell the items apart
    must be the same, as far as the text goes. All of them must be there if the user has begun such a line and it
    stands elsewhere, too, or the text leaves its brackets open: then it may begin a further item. A clause such as
    `else` begins none: a statement has it once. Of a text that was cut short, a last line that may become such a
    repetition goes, too. Lines without words are left to the brackets.
    """
    targets = _targets(context)
    lines, keyed = _lines(text, context), has_keys(context)
    sure = _sure(text, lines, targets, context, keyed=keyed)
    for index, line in enumerate(lines):
        needed = None
        if line.tokens and targets:
            near = [each for each in lines[index : index + _MOST_ALIKE] if each.tokens]
            needed = _repeated(text, near, targets, context)
        if needed is None and (_says_name(text, line, context) or (keyed and repeats_key(text, *line[:2], context))):
            needed = 1
        if needed and not context.scan(text[: line.offset]).open:  # else a bracket of the text goes on in this line
            kept = _kept(text, line.offset, context)
            finished = sum(bool(each.tokens) for each in lines[index:-1])
            return Ends(len(kept), min(len(kept), sure), over=finished >= needed)
    return Ends(min(sure, len(text)) if context.cut_short else len(text), sure)


@lru_cache(maxsize=2)
def _targets(context: Context) -> tuple[_Target, ...]:
    """Return the next line, and the line after it if it tells enough.

    A line within the block that the next line opens is none: the text at the cursor does not begin in there.
    """
    below = list(islice((line for line in context.following if line.strip()), _LOOK_AHEAD + _MOST_ALIKE))
    found = [_target(below[index : index + _MOST_ALIKE], context) for index in range(len(below))]
    return tuple(
        target
        for index, target in enumerate(found[:_LOOK_AHEAD])
        if any(token[0].isalnum() for token in target.lines[0])
        and (index == 0 or (target.bits >= TELLING and depth(below[1]) <= depth(below[0])))
    )


def _target(lines: Sequence[str], context: Context) -> _Target:
    """Return the first of the lines and those up to the first one that begins no other item."""
    compared = takewhile(lambda pair: _may_begin_another(*pair, context.language), pairwise(lines))
    defines = defines_name(lines[0])
    first = folded(without_modifiers(lines[0]) if defines else lines[0])
    bits = bits_of(context)
    told = sum(bits[token] for token in first)
    return _Target((first, *(folded(line) for _, line in compared)), lines[0], defines, told)


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
            lines.append(_Line(full, offset, folded(full)))
        offset += len(line) + 1
    return lines


def _sure(text: str, lines: Sequence[_Line], targets: Sequence[_Target], context: Context, *, keyed: bool) -> int:
    """Return the length of a text before lines at its end that may become a repetition."""
    near, last = lines[-_MOST_ALIKE:], lines[-1]
    for index, line in enumerate(near):
        for target in targets:
            if _may_repeat(near[index:], target):
                return max(line.offset - 1, 0)
    may_say = last.tokens and _may_say_name(last, context)
    if may_say or (last.tokens and keyed and may_repeat_key(text, *last[:2], context)):
        return max(last.offset - 1, 0)
    return len(text)


def _repeated(text: str, near: Sequence[_Line], targets: Sequence[_Target], context: Context) -> int | None:
    """Return how many of the lines tell that they repeat a target; None if they repeat none."""
    head, language = near[0].whole, context.language
    found = [each for each in targets if _repeats(near, each) and not _is_of_inner(head, each.first, language)]
    if found and not near[0].offset and context.line_before.strip():
        found = [each for each in found if len(near) >= len(each.lines) or not _begins_item(text, each, context)]
    return min(len(each.lines) for each in found) if found else None


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
    """Return whether the lines begin with the target, or are its beginning. One that tells little has its depth."""
    first, own = lines[0], target.lines[0]
    if first.tokens[-1:] != own[-1:]:
        return False
    if first.tokens != own and not (target.defines and folded(without_modifiers(first.whole)) == own):
        return False
    is_alike = target.bits >= TELLING or depth(first.whole) == depth(target.first)
    return is_alike and all(line.tokens == below for line, below in zip(lines[1:], target.lines[1:], strict=False))


def _may_repeat(lines: Sequence[_Line], target: _Target) -> bool:
    """Return whether lines, the last of which is unfinished, may become the beginning of the target."""
    *finished, last = lines
    if len(finished) >= len(target.lines):
        return False
    own = target.lines[len(finished)]
    if finished or not target.defines:
        return _begin(last.tokens, own) and (not finished or _repeats(finished, target))
    return may_be_modifiers(last.whole) or any(
        _begin(each, own) for each in (last.tokens, folded(without_modifiers(last.whole)))
    )


def _begin(tokens: tuple[str, ...], line: tuple[str, ...]) -> bool:
    """Return whether tokens, the last of which may go on, are the beginning of a line."""
    count = len(tokens) - 1
    return not tokens or (tokens[:-1] == line[:count] and "".join(line[count : count + 1]).startswith(tokens[-1]))


def _says_name(text: str, line: _Line, context: Context) -> bool:
    """Return whether a line gives the next line's name another value that nothing reads, or leaves before that."""
    jumps, ours = _JUMP.match(line.whole), _NAME.match(line.whole)
    below = context.line_below
    if not (jumps or ours) or depth(line.whole) != depth(below) or context.before.string or context.before.comment:
        return False
    if not only_closers(context) or (not line.offset and _NAME.match(context.line_before)):
        return False
    if jumps:
        is_last = not text[line.offset :].rstrip().partition("\n")[2]
        return is_last and _is_reached(below, context)
    theirs = _NAME.match(below)
    if ours is None or theirs is None or ours["name"] != theirs["name"]:
        return False
    reads = re.compile(rf"(?<!\w){re.escape(ours['name'])}(?!\w)")
    later = text[line.offset + len(line.whole) :]
    return reads.search(theirs["value"]) is None and reads.search(later) is None


def _is_reached(below: str, context: Context) -> bool:
    """Return whether only the line above leads to a line below: neither it nor what a comment is of begins apart."""
    lines = (line for line in context.following if line.strip())
    code = next((line for line in lines if not announces(line, context.language)), "")
    begins_apart = _is_clause(code, context.language) or defines_name(code) or _LABEL.fullmatch(code)
    return code.strip() != "" and depth(code) == depth(below) and not begins_apart


def _may_say_name(line: _Line, context: Context) -> bool:
    """Return whether an unfinished line of words may become one that defines what the next line defines, or a jump."""
    if _WORDS.fullmatch(line.whole) is None or not (_NAME.match(context.line_below) or _JUMP.match(line.whole)):
        return False
    return depth(line.whole) == depth(context.line_below)


def _kept(text: str, start: int, context: Context) -> str:
    """Return the text before a repetition, without the rest of the cursor's line at its end; "" if it is blank."""
    kept = text[: max(start - 1, 0)].removesuffix("\r")
    rest = "" if only_closers(context) else context.line_after.strip()
    if rest and kept.rstrip().endswith(rest):
        kept = kept[: len(kept.rstrip()) - len(rest)]
        kept = kept[: len(before_rest(kept, len(kept), context))]
    return kept if kept.strip() else ""
