"""Finds where a text begins to say the rest of the cursor's line again, also in slightly other words.

Words and marks are compared by how much they tell: what is rare in a document hardly stands in a text twice by chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from completion.ending.balance import closers_at, lacks
from completion.ending.context import Context
from completion.ending.rule import Ends, whole
from completion.syntax.brackets import CLOSERS
from completion.syntax.lexer import CLOSER_OF

Token = re.Match[str]
"""A word or mark of a text."""
TELLING = 12.0
"""Bits that the tokens in common must have more than the others, unless both end there."""

_Path = tuple[float, int, bool]  # bits, index of the first token, whether all is the same from there on
_CLOSERS = {*CLOSERS, ">"}
_MAX_TOKENS = 60  # of the text's last line and of the line's rest that are compared
_NOTHING = float("-inf")
_NO_FIRST = -_MAX_TOKENS  # no token of the text's last line follows its first word
_ONCE = re.compile(r"[ \t]*(?:[-+*/%|&^:]?=|:)[ \t]")  # what a name has once: its value, its type
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NEAR = 8_000  # characters on each side of the cursor whose tokens are counted
_PRIOR = 64  # tokens of any spelling that each document is taken to have
_BITS = 5  # of a character of these
_MOST_BITS = 200  # of one of these


def rest_of_line(text: str, context: Context) -> Ends:
    """End where the last line of a text begins to say the rest of the cursor's line, up to the line's end.

    If only closers follow the cursor, also of the string around it, brackets decide alone.
    """
    if only_closers(context):
        return whole(text)
    rest = _rest(context)
    line = text.rfind("\n", 0, len(text.rstrip())) + 1
    above = _above(text[:line], rest) if line else None
    if above is not None and sum(lacks(text[:above], context)) <= sum(lacks(text, context)):
        kept = len(before_rest(text, above, context))
        return Ends(kept, kept)
    own = text[line:].replace("'", '"')
    if rest.tokens[0][0] not in own and not own.rstrip().endswith(rest.tokens[0][0][0]):
        return whole(text)
    ours = tokens_of(text[line:])
    left_out = max(0, len(ours) - _MAX_TOKENS)
    starts, alive = _again(ours[left_out:], rest, _NO_FIRST if line else 1 - left_out, bits_of(context))
    sure = len(text) if alive is None else line + alive
    last = 2 * text[-1:]
    if last[:1] == context.line_after[:1] and (last in context.near or last in context.suffix):
        starts.discard(len(text) - line - 1)  # the mark may be doubled: `==`
    worst = sum(lacks(text, context)) if starts else 0
    for start in sorted(line + each for each in starts):
        if sum(lacks(text[:start], context)) <= worst:
            kept = len(before_rest(text, start, context))
            return Ends(kept, min(kept, sure))
    return Ends(len(text), sure)


@lru_cache(maxsize=2)  # the lines above the last one stay the same while it grows
def _above(lines: str, rest: _Rest) -> int | None:
    """Return where whole lines begin to say the rest of the cursor's line word for word, if that tells enough."""
    start, further = 0, [token[0] for token in rest.tokens[1:]]
    for line in lines.splitlines(keepends=True) if sum(rest.bits) > TELLING else ():
        if rest.tokens[-1][0] in line.replace("'", '"'):
            ours = tokens_of(line)[-1 - len(further) :]
            if rest.begins(ours[0]) and [token[0] for token in ours[1:]] == further:
                return start + rest.offset(ours[0])
        start += len(line)
    return None


@lru_cache(maxsize=2)
def only_closers(context: Context) -> bool:
    """Return whether nothing but closers follows the cursor on its line."""
    return closers_at(context).issuperset(context.line_after.strip())


def before_rest(text: str, start: int, context: Context) -> str:
    """Return the text before `start`, where the repetition begins, without the blanks that the line's rest has."""
    after = context.line_after
    return text[:start].removesuffix(after[: len(after) - len(after.lstrip())])


@dataclass(frozen=True, slots=True, eq=False)  # by identity, as a key of what is kept
class _Rest:
    """The rest of the cursor's line.

    Attributes:
        tokens: Its tokens.
        bits: How much each of them tells.
        tail: Its first token if that ends the word around the cursor, with which a word of a text may end, else "".
        closes: Whether it begins with a closer, which may be one of what the text opens.
        shortest: Index of its first word.
        operator: Tokens of what gives a name a value or a type, if it begins with that.
        marks: Its marks outside of brackets if it begins and ends with some, else None.
    """

    tokens: Sequence[Token]
    bits: Sequence[float]
    tail: str
    closes: bool
    shortest: int
    operator: Sequence[str]
    marks: Sequence[str] | None

    def begins(self, token: Token) -> bool:
        """Return whether a token may be its first one."""
        return token[0] == self.tokens[0][0] or (self.tail != "" and token[0].endswith(self.tail))

    def offset(self, token: Token) -> int:
        """Return where it begins in a token that may be its first one."""
        return token.start() if token[0] == self.tokens[0][0] else token.end() - len(self.tail)

    def is_alike(self, ours: Sequence[Token], index: int, first: int) -> bool:
        """Return whether a text has its marks from a token on, or gives a name a value, too."""
        if self.marks and ours[-1][0] == self.tokens[-1][0] and _marks(ours[index:]) == self.marks:
            return True
        is_there = [each[0] for each in ours[index : index + len(self.operator)]] == self.operator
        return bool(self.operator and is_there and index) and (self.operator != [":"] or index == first)

    def may_be_alike(self, ours: Sequence[Token], index: int) -> bool:
        """Return whether a text that grows may have its marks from a token on."""
        marks = _marks(ours[index:]) if self.marks else []
        return self.marks is not None and len(marks) < len(self.marks) and self.marks[: len(marks)] == marks


@lru_cache(maxsize=2)
def _rest(context: Context) -> _Rest:
    """Return the rest of the cursor's line."""
    tokens, bits = tokens_of(context.line_after)[:_MAX_TOKENS], bits_of(context)
    closes = tokens[0][0] in {each.replace("'", '"') for each in closers_at(context)}
    once, marks = _ONCE.match(context.line_after), _marks(tokens)
    is_anchored = len(marks) > 1 and marks[0] == tokens[0][0] and marks[-1] == tokens[-1][0] not in _CLOSERS
    return _Rest(
        tokens=tokens,
        bits=[bits[token[0]] for token in tokens],
        tail=tokens[0][0] if re.match(r"\w", context.line_after) else "",
        closes=closes,
        shortest=next((at for at, each in enumerate(tokens) if each[0][0].isalnum()), len(tokens)),
        operator=[token[0] for token in tokens_of(once.group())] if once else [],
        marks=marks if is_anchored and not closes else None,
    )


def _again(ours: Sequence[Token], rest: _Rest, first: int, bits: Bits) -> tuple[set[int], int | None]:
    """Return the offsets where a text says the rest of the line again, and the first one where it still may begin."""
    begun = [index for index, token in enumerate(ours) if rest.begins(token)]
    found, alive = _aligned(ours, rest, first, bits) if begun else (set[int](), set[int]())
    for index in begun:
        found |= {index} if rest.is_alike(ours, index, first) else set()
        alive |= {index} if rest.may_be_alike(ours, index) else set()
    starts = {rest.offset(ours[index]) for index in found}
    going = [rest.offset(ours[index]) for index in alive]
    if ours and rest.tokens[0][0].startswith(ours[-1][0]):
        going.append(ours[-1].start())
    return starts, min(going, default=None)


def _aligned(ours: Sequence[Token], rest: _Rest, first: int, bits: Bits) -> tuple[set[int], set[int]]:
    """Align the end of a text with the beginning of the line's rest: bits in common count, others count against.

    Return the indices of our tokens from which on enough is in common, and of those from which on enough may be. What
    follows the text's first word, from the index `first` on, needs to tell less.
    """
    paths: list[_Path] = [(_NOTHING, 0, False)] * len(rest.tokens)
    before, found = paths, set[int]()
    for at, token in enumerate(ours):
        before, paths = paths, []
        for index, (other, cost) in enumerate(zip(rest.tokens, rest.bits, strict=True)):
            path = (before[index][0] - bits[token[0]], before[index][1], False)
            if index and paths[-1][0] - cost > path[0]:
                path = (paths[-1][0] - cost, paths[-1][1], False)
            is_match = token[0] == other[0] or (not index and rest.begins(token))
            told, start, is_same = before[index - 1] if index else (0.0, at, True)
            if is_match and told + cost > path[0]:
                path = (told + cost, start, is_same)
            paths.append(path)
            if path[0] > 0 and _is_enough(path, index, at, ours, rest, first):
                found.add(path[1])
    further = list(accumulate(reversed(rest.bits), initial=0.0))[-2::-1]  # bits that may still be in common
    both = (zip(row, further, strict=True) for row in (before, paths))  # the last token may go on
    return found, {start for row in both for (told, start, _), more in row if told + more > 0}


def _is_enough(path: _Path, index: int, at: int, ours: Sequence[Token], rest: _Rest, first: int) -> bool:
    """Return whether what a path through a text and the rest of a line has in common tells that one repeats the other.

    If both are the same up to the text's end, it does. A text that only goes on like the rest may stand before it.
    After a closer or the text's first word, the same word is enough, whatever follows.
    """
    told, start, is_same = path
    is_last, is_end = at == len(ours) - 1, index == len(rest.tokens) - 1
    is_match = ours[at][0] == rest.tokens[index][0] or (not index and rest.begins(ours[at]))
    is_word = is_match and rest.tokens[index][0][0].isalnum()
    if (start < first and not is_same) or (rest.closes and index < rest.shortest):
        return False
    if is_last and is_match and (is_end or is_same):
        is_partial = ours[start][0] != rest.tokens[0][0]
        return is_same or told > (TELLING if is_partial else TELLING / 2)
    if rest.tail:
        return False
    if start == first and not rest.closes:
        return is_last or (is_same and is_word and told > TELLING / 2)
    if rest.closes and is_same and is_word:
        return told > TELLING
    return (is_last and told > TELLING) or (is_end and told > 2 * TELLING)


def _marks(tokens: Sequence[Token]) -> list[str]:
    """Return the tokens outside of brackets that are no words."""
    waiting, marks = list[str](), list[str]()
    for token in tokens:
        if waiting and token[0] == waiting[-1]:
            waiting.pop()
        if not waiting and not token[0][0].isalnum() and token[0][0] != "_":
            marks.append(token[0])
        if token[0] in CLOSER_OF:
            waiting.append(CLOSER_OF[token[0]])
    return marks


class Bits(dict[str, float]):
    """By token, minus the logarithm of its frequency in a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._counts = Counter(_TOKEN.findall(text.replace("'", '"')))
        self._total = self._counts.total() + _PRIOR

    def __missing__(self, token: str) -> float:
        share = (self._counts[token] + _PRIOR * 2.0 ** -min(_BITS * len(token), _MOST_BITS)) / self._total
        self[token] = bits = -math.log2(share)
        return bits


def tokens_of(text: str) -> list[Token]:
    """Return the words and marks of a text in any script; blanks are none. The kind of quotes does not count."""
    return list(_TOKEN.finditer(text.replace("'", '"')))


@lru_cache(maxsize=64)  # most lines of a text that grows stay the same
def folded(line: str) -> tuple[str, ...]:
    """Return the tokens of a line, without a comma or semicolon at its end. Their case does not count either."""
    tokens = _TOKEN.findall(line.replace("'", '"').lower())
    while tokens and tokens[-1] in (",", ";"):
        tokens.pop()
    return tuple(tokens)


@lru_cache(maxsize=2)
def bits_of(context: Context) -> Bits:
    """Return how much the tokens of a document tell near the cursor."""
    return Bits(f"{context.prefix[-_NEAR:]} {context.suffix[:_NEAR]}")
