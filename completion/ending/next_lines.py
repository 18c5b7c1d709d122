"""Cuts a text where it says one of the next lines again, or what is said once only: a key, a name's value, a jump."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from completion.ending.context import Context
from completion.ending.rest_of_line import before_rest, bits_of, folded, only_closers, tokens_of
from completion.ending.rule import Ends
from completion.syntax.indent_style import depth
from completion.syntax.line_roles import (
    announces,
    defines_name,
    is_clause,
    is_item,
    may_be_modifiers,
    without_modifiers,
)
from completion.syntax.table import row_of

TELLING = 36.0
"""Bits of a line, from which on it hardly repeats by chance at another depth or below another line."""

_LOOK_AHEAD = 2  # lines below the cursor where a repetition may begin
_MOST_ALIKE = 4  # lines that a text must have in common with the document

_NAME = re.compile(
    r"[ \t]*(?P<head>[^=(\"'#]{0,200}?(?P<name>(?!_\b)[$@]?\w[\w.$>-]{0,200}+)[ \t]*"
    r"(?::(?!=)[^=]{0,200})?(?<=[ \t]):?=)(?![=>~])(?P<value>.*)"
)  # without a blank before `=`, it is an attribute, an option, or a variable of a shell's command
_JUMP = re.compile(r"[ \t]*(?:return|break|continue|raise|throw)\b(?!(?>.*\b(?:if|unless|when)\b)(?!.*\belse\b))")
_LABEL = re.compile(r"[ \t]*(?:case|default|when)\b.*|.*:|[ \t]*[#)}\];].*")  # control gets there from elsewhere
_WORDS = re.compile(r"[\w \t]*")

_KEY = re.compile(
    r"""[ \t]*(?:("(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*(?:=|:(?!=))"""
    r"""|([^\s:#"'{}\[\]<&*!|>%@`,?=-][^:#=\n]*+)(?:=|:(?=\s|\Z)))"""
)
_TABLE = re.compile(r"^\[[A-Za-z_][^\[\],\n]*\](?=[ \t]*(?:#.*)?\r?$)", re.MULTILINE)  # a key of the whole document
_SEPARATOR = re.compile(r"---|\.\.\.|\{\{|\{%|\[")  # of documents, of branches in a template, before a table
_SCALAR = re.compile(r"(?:^|[\s:-])[|>][-+\d]*[ \t]*(?:#.*)?\Z")  # what begins text of several lines


class _Line(NamedTuple):
    """A line of a text as it would stand in the document, its offset in the text, and its tokens."""

    whole: str
    offset: int
    tokens: tuple[str, ...]


class _Target(NamedTuple):
    """A line below the cursor, the tokens of it and of the lines below it that a repetition must have, and its bits."""

    first: str
    lines: tuple[tuple[str, ...], ...]
    bits: float


def next_lines(text: str, context: Context) -> Ends:
    """End before the first line that says one of the next lines again, or what is said once only.

    After a line that may also begin another item (`try:`, a decorator, a comment), the lines that tell the items apart
    must be the same, as far as the text goes. All of them must be there if the user has begun such a line and it
    stands elsewhere, too, or the text leaves its brackets open: then it may begin a further item. A clause such as
    `else` begins none: a statement has it once. Of a text that was cut short, a last line that may become such a
    repetition goes, too, unless the user has begun it. Lines without words are left to the brackets.
    """
    lines = _lines(text, context)
    sure = _sure(text, lines, context)
    for index, line in enumerate(lines):
        near = [each for each in lines[index : index + _MOST_ALIKE] if each.tokens]
        needed = _needed(text, near, context) if line.tokens else 0
        needed = needed or int(_is_said(text, line, context))
        if needed and not context.scan(text[: line.offset]).open:  # else a bracket of the text goes on in this line
            kept = _kept(text, line.offset, context)
            finished = sum(bool(each.tokens) for each in lines[index:-1])
            return Ends(len(kept), min(len(kept), sure), over=finished >= needed)
    goes_on = "\n" not in text and context.line_before.strip()  # with what the user has begun
    return Ends(sure if context.cut_short and not goes_on else len(text), sure)


@lru_cache(maxsize=2)
def _targets(context: Context) -> list[_Target]:
    """Return the next line, and the line after it if it tells enough.

    A line within the block that the next line opens is none: the text at the cursor does not begin in there.
    """
    below = list(islice((line for line in context.following if line.strip()), _LOOK_AHEAD + _MOST_ALIKE))
    found = [_target(below[index : index + _MOST_ALIKE], context) for index in range(min(_LOOK_AHEAD, len(below)))]
    if len(found) > 1 and (found[1].bits < TELLING or depth(below[1]) > depth(below[0])):
        found.pop()
    return [target for target in found if any(token[0].isalnum() for token in target.lines[0])]


def _target(lines: Sequence[str], context: Context) -> _Target:
    """Return the first of the lines and those up to the first one that begins no other item."""
    compared = takewhile(lambda pair: _may_begin_another(*pair, context.language), pairwise(lines))
    told, bits = _told(lines[0]), bits_of(context)
    own = (folded(told), *(folded(_told(line)) for _, line in compared))
    return _Target(lines[0], own, sum(bits[token[0]] for token in tokens_of(told)[: len(own[0])]))


def _may_begin_another(line: str, below: str, language: str) -> bool:
    """Return whether another item may begin with the same line: it opens or announces something without its name."""
    opens = depth(below) > depth(line) or below.lstrip().startswith("{")
    return (opens or announces(line, language)) and not (defines_name(line) or is_clause(line, language))


def _told(line: str) -> str:
    """Return what of a line is compared: not the words before what it defines."""
    return without_modifiers(line) if defines_name(line) else line


def _lines(text: str, context: Context) -> list[_Line]:
    """Return the lines of the text that are not blank, and the last one."""
    lines, offset = [], 0
    for line in text.split("\n"):
        full = line if offset else context.line_before + line
        if full.strip() or offset + len(line) == len(text):
            lines.append(_Line(full, offset, folded(_told(full))))
        offset += len(line) + 1
    return lines


def _sure(text: str, lines: Sequence[_Line], context: Context) -> int:
    """Return the length of a text before lines at its end that may become a repetition."""
    near = lines[-_MOST_ALIKE:]
    for index, line in enumerate(near):
        if any(_may_repeat(near[index:], target) for target in _targets(context)):
            return max(line.offset - 1, 0)
    is_open = near[-1].tokens and _may_be_said(text, near[-1], context)
    return max(near[-1].offset - 1, 0) if is_open else len(text)


def _needed(text: str, near: Sequence[_Line], context: Context) -> int:
    """Return how many of the lines tell that they repeat a target; 0 if they repeat none."""
    found = [each for each in _targets(context) if _repeats(near, each)]
    if is_clause(near[0].whole, context.language):  # with another statement than the same line further out or in
        found = [each for each in found if depth(near[0].whole) == depth(each.first)]
    if found and not near[0].offset and context.line_before.strip():
        found = [each for each in found if len(near) >= len(each.lines) or not _begins_item(text, each, context)]
    return min((len(each.lines) for each in found), default=0)


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
    if any(line.tokens != below for line, below in zip(lines, target.lines, strict=False)):
        return False
    return target.bits >= TELLING or depth(lines[0].whole) == depth(target.first)


def _may_repeat(lines: Sequence[_Line], target: _Target) -> bool:
    """Return whether lines, the last of which is unfinished, may become the beginning of the target."""
    *finished, last = lines
    if len(finished) >= len(target.lines):
        return False
    if finished and not _repeats(finished, target):
        return False
    own, is_definition = target.lines[len(finished)], defines_name(target.first) and not finished
    begun = {last.tokens, folded(without_modifiers(last.whole)) if is_definition else last.tokens}
    return any(_begin(tokens, own) for tokens in begun) or (is_definition and may_be_modifiers(last.whole))


def _begin(tokens: tuple[str, ...], line: tuple[str, ...]) -> bool:
    """Return whether tokens, the last of which may go on, are the beginning of a line."""
    count = len(tokens) - 1
    return not tokens or (tokens[:-1] == line[:count] and "".join(line[count : count + 1]).startswith(tokens[-1]))


def _kept(text: str, start: int, context: Context) -> str:
    """Return the text before a repetition, without the rest of the cursor's line at its end; "" if it is blank."""
    kept = text[: max(start - 1, 0)].removesuffix("\r")
    rest = "" if only_closers(context) else context.line_after.strip()
    if rest and kept.rstrip().endswith(rest):
        kept = kept[: len(kept.rstrip()) - len(rest)]
        kept = kept[: len(before_rest(kept, len(kept), context))]
    return kept if kept.strip() else ""


def _is_said(text: str, line: _Line, context: Context) -> bool:
    """Return whether a line has a key that its mapping has, gives the next line's name a value, or leaves before it."""
    if not _may_say(context):
        return False
    if row_of(context.language).keys:
        key, typed = _key_of(line.whole), "" if line.offset else context.line_before
        return key is not None and _key_of(typed) is None and key in _beside(text, line, context)
    below, typed_name = context.line_below, not line.offset and _NAME.match(context.line_before)
    if depth(line.whole) != depth(below) or context.before.comment or typed_name:
        return False
    if _JUMP.match(line.whole):
        is_last = not text[line.offset :].rstrip().partition("\n")[2]
        return is_last and _is_reached(below, context)
    ours, theirs = _NAME.match(line.whole), _NAME.match(below)
    if ours is None or theirs is None or ours["head"] not in (theirs["head"], f"{theirs['name']} ="):
        return False  # the second is a value before the line that declares the name
    _, *further = (each for each in context.following if each.strip())
    value = [theirs["value"], *takewhile(lambda each: depth(each) > depth(below), further)]
    read = re.compile(rf"(?<!\w){re.escape(ours['name'])}(?!\w)")
    return not any(map(read.search, (*value, text[line.offset :].partition("\n")[2])))


def _may_say(context: Context) -> bool:
    """Return whether a line at a cursor may be what is said once only: no line of text is, nor of a long statement."""
    row = row_of(context.language)
    is_apart = not row.has_sentences and row.statement_end is None
    return is_apart and not context.before.string and only_closers(context)


def _may_be_said(text: str, line: _Line, context: Context) -> bool:
    """Return whether `_is_said` may become true of an unfinished line."""
    if not _may_say(context):
        return False
    if row_of(context.language).keys:
        begun = line.whole.strip().strip("\"'")
        return _key_of(line.whole) is None and any(key.startswith(begun) for key in _beside(text, line, context))
    is_open = _WORDS.fullmatch(line.whole) and (_NAME.match(context.line_below) or _JUMP.match(line.whole))
    return bool(is_open) and depth(line.whole) == depth(context.line_below)


def _is_reached(below: str, context: Context) -> bool:
    """Return whether only the line above leads to a line below: neither it nor what a comment is of begins apart."""
    lines = (line for line in context.following if line.strip())
    code = next((line for line in lines if not announces(line, context.language)), "")
    begins_apart = is_clause(code, context.language) or defines_name(code) or _LABEL.fullmatch(code)
    return code.strip() != "" and depth(code) == depth(below) and not begins_apart


def _key_of(line: str) -> str | None:
    """Return the key that a line begins with; None if it has none, or begins an item of a list."""
    if table := _TABLE.match(line):
        return table.group()
    found = None if is_item(line) else _KEY.match(line)
    return None if found is None else (found[1] or found[2]).rstrip().strip("\"'")


def _beside(text: str, line: _Line, context: Context) -> frozenset[str]:
    """Return the other keys of the mapping that a line is in; nothing in text of several lines."""
    typed = context.line_before + text[: line.offset] if line.offset else ""
    above, below = context.near.removesuffix(context.line_before), "\n".join(context.following)
    level, mark = depth(line.whole), row_of(context.language).line_comment
    if line.whole.startswith("["):
        return frozenset(_TABLE.findall(f"{above}{typed}\n{below}"))
    keys, end = _level(typed, level, mark, upwards=True)
    if not end:
        further, end = _level(above, level, mark, upwards=True)
        keys |= further
    return frozenset() if _SCALAR.search(end) else keys | _level(below, level, mark, upwards=False)[0]


@lru_cache(maxsize=64)  # the document's lines and most of a text's are the same for every token
def _level(text: str, level: int, mark: str, *, upwards: bool) -> tuple[frozenset[str], str]:
    """Return the keys at one level, and the line that ends their mapping; "" if nothing does."""
    lines, end = text.split("\n"), ""
    keys = set[str | None]()
    for line in reversed(lines) if upwards else lines:
        code = line.strip()
        if not code or (mark and code.startswith(mark)):
            continue
        own = depth(line)
        if own < level or (own == level and _SEPARATOR.match(code)):
            if upwards and is_item(line) and own + len(code) - len(code[1:].lstrip()) == level:
                keys.add(_key_of(line[:own] + " " + line[own + 1 :]))
            end = line
            break
        if own == level:
            keys.add(_key_of(line))
    return frozenset(filter(None, keys)), end
