"""Narrowing: the remainder of a suggestion after the user typed a part of it, and the text that it replaces."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile

from completion.request import Suggestion
from completion.syntax.brackets import CLOSERS as BRACKET_CLOSERS
from completion.syntax.brackets import scan
from completion.syntax.lexer import CLOSER_OF
from lsp_server.gate.features import typed_between
from lsp_server.suggesting.closers import CLOSERS, MAX_CLOSERS, places_of, string_around

_LINE_END = re.compile(r"[\r\n]")
_ADDITION = re.compile(r"""([)\]}>"'`]{0,3}?)(?:(?:\r\n|\r|\n)[ \t]*(?=[)\]}]|</)|</([\w.:-]*)>)""")
"""Closers, and what an editor adds after them: a line end before a closer or end tag, or an end tag."""

_SEPARATORS = (",", ";", ":")
_MAX_ADDITIONS = 6  # line ends and end tags that one suggestion brings while it is typed


@dataclass(frozen=True, slots=True)
class Situation:
    """The text around a cursor that narrowing and the gate use, with the document's line ends.

    Attributes:
        prefix: The text before the cursor, or the last part of it.
        suffix: The text after the cursor, or the first part of it.
        left_out_before: Number of characters of the document before `prefix`.
        left_out_after: Number of characters of the document after `suffix`.
    """

    prefix: str
    suffix: str
    left_out_before: int = 0
    left_out_after: int = 0

    @property
    def offset(self) -> int:
        """Number of characters of the document before the cursor."""
        return self.left_out_before + len(self.prefix)

    @property
    def remaining(self) -> int:
        """Number of characters of the document after the cursor."""
        return self.left_out_after + len(self.suffix)

    def with_accepted(self, left: Remainder) -> Situation:
        """Return the text around the cursor after a remainder was inserted."""
        return replace(self, prefix=self.prefix + left.text, suffix=self.suffix[left.replace_after :])


@dataclass(frozen=True, slots=True)
class Remainder:
    """The part of a suggestion that is left to insert at a cursor.

    Attributes:
        index: Index of the suggestion in its generation.
        text: The text to insert.
        replace_after: Number of code points after the cursor that the text replaces.
        typed: Number of characters of the suggestion before the text, which the user has typed.
    """

    index: int
    text: str
    replace_after: int
    typed: int = 0


def remainder(
    index: int, suggestion: Suggestion, start: Situation, now: Situation, typed: str, *, grows: bool
) -> Remainder | None:
    """Return the remainder of a suggestion after `typed`; None if it no longer fits or is typed in full.

    Of a suggestion that still grows, the remainder is empty if the user typed ahead of it.
    """
    if not suggestion.text.startswith(typed):
        catching_up = grows and typed.startswith(suggestion.text)
        return Remainder(index, "", 0, len(typed)) if catching_up else None
    text = suggestion.text[len(typed) :]
    if not text and not grows:
        return None
    before, own, tag = _without_additions(start, now)
    replaced = _replaced(start, before, suggestion.replace_after, text)
    if own is not None and replaced is not None and replaced > len(own):  # the others stay after what was added
        text, replaced = _before_closer(text, own), len(own)
    if tag is not None:
        text = _before_end_tag(text, tag)
    return None if replaced is None or not (text or grows) else Remainder(index, text, replaced, len(typed))


def shortened(left: Remainder, length: int, now: Situation) -> Remainder:
    """Return the first `length` characters of a remainder. They replace the closers that they contain themselves.

    These are also closers that the whole remainder leaves for what it opens later, as `a), (b` does between brackets.
    Closers of what the characters open again stay. A comma, semicolon or colon at their end is left out if the same one
    stands after the cursor.
    """
    if length == len(left.text):
        return left
    text, whole = left.text[:length], left.replace_after
    later = now.suffix[whole : whole + _opened_later(left.text, length, now.suffix)]
    closers = now.suffix[:whole] + "".join(takewhile(CLOSERS.__contains__, later))
    own = len(places_of(text, closers))
    replaced = own - _opened_again(text, closers[:own])
    last, after = text.rstrip(" \t")[-1:], now.suffix[replaced:].lstrip(" \t")
    if last in _SEPARATORS and after.startswith(last):
        text = text.rstrip(f" \t{last}")
    return replace(left, text=text, replace_after=replaced)


def inserted(left: Remainder, now: Situation) -> Remainder:
    """Return a remainder that replaces nothing, for editors that can only insert.

    Where the text ends with what it replaces, the document becomes the same. Elsewhere the text ends before the first
    replaced character.
    """
    replaced = now.suffix[: left.replace_after]
    if left.text.endswith(replaced):
        return replace(left, text=left.text.removesuffix(replaced), replace_after=0)
    return replace(left, text=left.text[: _first_replaced(left.text, replaced)].rstrip(), replace_after=0)


def opens_pair(left: Remainder, now: Situation) -> bool:
    """Return whether a text goes on in a new line between a bracket and its closer, which stays after its end.

    There a typed line end is better: the editor moves the closer to a line of its own.
    """
    closer = CLOSER_OF.get(now.prefix[-1:])
    starts_line = left.text.startswith(("\n", "\r"))
    return starts_line and not left.replace_after and closer is not None and now.suffix.startswith(closer)


def typed_since(start: Situation, now: Situation) -> str | None:
    """Return the text that was typed since `start`; None if anything else changed."""
    changes = _closer_changes(start, _without_additions(start, now)[0])
    if changes is None:
        return None
    typed = typed_between(start.prefix, now.prefix, now.offset - start.offset)
    over = start.suffix[: changes[0]]
    is_typed = typed is not None and all(typed.count(closer) >= over.count(closer) for closer in over)
    return typed if is_typed else None


def _without_additions(start: Situation, now: Situation) -> tuple[Situation, str | None, str | None]:
    """Return the text around a cursor without what an editor has added after it besides closers, and what that is.

    It puts a line end with indentation before a closer or end tag, where a line end is typed between it and its opener,
    and adds an end tag after a tag that is typed.

    Returns:
        The text; the closers before the first addition, None without one; the name of the first end tag, None for none.
    """
    if _closer_changes(start, now) is not None:
        return now, None, None
    typed = typed_between(start.prefix, now.prefix, now.offset - start.offset) or ""
    kept, rest, own, tag = "", now.suffix, None, None
    for _ in range(_MAX_ADDITIONS):
        found = _ADDITION.match(rest)
        is_possible = found is not None and (">" in typed if found.group(2) is not None else _LINE_END.search(typed))
        if found is None or not is_possible:
            break
        kept, rest = kept + found.group(1), rest[found.end() :]
        own, tag = found.group(1) if own is None else own, found.group(2) if tag is None else tag
        before = replace(now, suffix=kept + rest)
        if _closer_changes(start, before) is not None:
            return before, own, tag
    return now, None, None


def _before_end_tag(text: str, name: str) -> str:
    """Return a text up to the end of a tag that is open at the cursor; all of it if it has no such end."""
    depth = 0
    for found in re.finditer(rf"<(/?){re.escape(name)}(?![\w.:-])", text):
        depth += -1 if found.group(1) else 1
        if depth < 0:
            return text[: found.start()].rstrip()
    return text


def _before_closer(text: str, own: str) -> str:
    """Return the lines of a text before the bracket that closes what is open at the cursor outside of `own` closers."""
    unopened = scan(text, "", string_around(own)).unopened
    count = sum(closer in BRACKET_CLOSERS for closer in own)
    return text[: unopened[count].offset].rstrip() if len(unopened) > count else text


def _closer_changes(start: Situation, now: Situation) -> tuple[int, int] | None:
    """Return how many closers the user typed over, and how many the editor added after the cursor since then.

    Both changed where a string was closed and a call opened: `"‸")` becomes `", (‸))`. None for another change.
    """
    added_by = now.remaining - start.remaining
    fewest = max(0, -added_by)
    for over in range(fewest, max(fewest, MAX_CLOSERS) + 1):
        added = over + added_by
        before, after = start.suffix[over:], now.suffix[added:]
        common = min(len(before), len(after))
        if before[:common] == after[:common] and CLOSERS.issuperset(start.suffix[:over] + now.suffix[:added]):
            return over, added
    return None


def _replaced(start: Situation, now: Situation, replace_after: int, text: str) -> int | None:
    """Return how many code points after the cursor `text` replaces; None if it would double a closer.

    It replaces a closer that the editor added if it contains that closer itself.
    """
    over, added = _closer_changes(start, now) or (0, 0)
    closed = len(places_of(text, now.suffix[:added])) if added else 0
    if closed < added:
        return closed
    return replace_after - over + closed if replace_after >= over else None


def _first_replaced(text: str, replaced: str) -> int:
    """Return where a text contains the first of the characters that it replaces; 0 if that is nowhere."""
    return next(iter(places_of(text, replaced)), max(0, text.find(replaced[0])))


def _opened_later(text: str, length: int, after: str) -> int:
    """Return the length of the closers of what a text opens after its first `length` characters and does not close."""
    string = string_around(after)
    opens_string = bool(string) and text.count(string, length) % 2 == 1
    return len(string) * opens_string + sum(bracket.offset >= length for bracket in scan(text, "", string).open)


def _opened_again(text: str, closed: str) -> int:
    """Return how many of the closers that a text contains, from the last one back, close what it opens after them.

    Two quotes that begin a text are the rest of three: one does not close what these open.
    """
    string = string_around(closed)
    in_string = string if string and text.count(string) % 2 == 0 and not text.startswith(2 * string) else ""
    code = text[: text.rindex(in_string)] if in_string else text
    opened = reversed(scan(code, "", string).open)
    closers = in_string + "".join(CLOSER_OF[bracket.character] for bracket in opened)
    return max(count for count in range(len(closers) + 1) if closed.endswith(closers[:count]))
