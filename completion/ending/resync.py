"""Ends a text where it meets what follows the cursor on its line, and says what it replaces there."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from completion.ending.balance import before_closer, joint
from completion.ending.context import Context
from completion.ending.rest_of_line import rest_of_line
from completion.ending.rule import Ends
from completion.syntax.lexicon import lexicon_of

_VALUE = r"""\{(?>(?:[^{}]|\{[^{}]*\})*)\}|"[^"]*"|'[^']*'"""  # of an attribute; in braces, it may have `=>`
_WITHIN_TAG = re.compile(rf"""(?<![\w.])<([A-Za-z][\w.:-]*)(?:\s(?>(?:{_VALUE}|[^<>"'])*)(?:"[^"]*|'[^']*)?)?\Z""")
_TAG_END = re.compile(r"""\s*/?>""")
_IN_TAG = re.compile(rf"""(?>(?:[^<>"'{{/=]|{_VALUE}|[/=](?!>))*)""")
_TAG = re.compile(
    rf"""<(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*)(?:\s(?>(?:{_VALUE}|[^<>"'])*))?(?<!/)>"""
    r"|\{%[-+~]?\s*(?P<end_>end)?(?P<name_>[a-z]\w*)[^%\n]*%\}"  # of Jinja, Django, Twig and Liquid
    r"|\{(?P<_end>[#/])(?P<_name>[a-z]+)[^\n]{0,1000}?\}"  # of Svelte
)
_BEGUN = re.compile(r"(?:<(?:/[\w.:-]*\s*)?|/|\{(?:%[-+~]?\s*(?:e(?:n(?:d[^}\n]*)?)?)?|/[^}\n]*)?)\Z")
_MAX_TAG = 1000  # characters before the cursor in which the tag around it begins
_MAX_SCANNED = 30_000  # characters on each side of the cursor in which tags are counted


def resync(text: str, context: Context) -> Ends:
    """End before the rest of the line and before closers that the document has further on.

    A closer directly after the cursor is replaced. In a comment, all stays but the rest of the line.
    """
    begun = _begun(text, context)
    ends = rest_of_line(text, context)
    kept, sure = text[: ends.maybe], min(ends.sure, len(text) - begun)
    if not context.before.comment:
        ended = _end_of_tags(kept, context)
        kept, sure = kept[: ended.maybe], min(sure, ended.sure)
    inside = context.before.string
    if begun and inside and context.line_after.startswith(inside) and context.scan(text).string == inside:
        kept = kept[: len(text) - begun]  # the document's delimiter would end one quote too early
    length, replaces = joint(kept, context)
    if length < len(kept) and not replaces:
        length = rest_of_line(kept[:length], context).maybe  # it was no end of the text before
    return Ends(length, min(length, sure), replaces=replaces)


def _begun(text: str, context: Context) -> int:
    """Return the length of what may become a delimiter of several characters at the end of a text; one may be whole."""
    if context.within_comment(text) or text[-1:].isalnum() or text[-1:].isspace():
        return 0
    found, strings = context.scan(text), lexicon_of(context.language).strings
    ends = [
        one[:count]
        for one in ([found.string] if found.string else strings)
        for count in range(1 + (not found.string and one[0] in strings), len(one))  # one quote begins a string, too
    ]
    return 0 if found.comment else max((len(each) for each in ends if text.endswith(each)), default=0)


def _end_of_tags(text: str, context: Context) -> Ends:
    """End where a text ends the tag around the cursor, or an element, if the document does so further on.

    An end tag stays if the text opens another element after it, which the document's then closes.
    """
    own = _own_tag_end(text, context) if ">" in text and ">" in context.line_after else len(text)
    begun = _BEGUN.search(context.prefix[-1:] + text) if "<" in context.suffix or "{" in context.suffix else None
    sure = len(text) if begun is None else max(0, begun.start() - len(context.prefix[-1:]))
    if len(context.prefix) > _MAX_SCANNED or ("</" not in context.suffix and "{" not in context.suffix):
        return Ends(own, min(own, sure))
    doubled = _doubled(text[:own], context)
    if doubled is None:
        return Ends(own, min(own, sure))
    at, is_again = doubled
    kept = before_closer(text, at)
    return Ends(own if is_again else kept, min(kept, sure))


def _own_tag_end(text: str, context: Context) -> int:
    """Return where a text ends the tag around the cursor, if the document ends it on the line; else its length."""
    string = context.before.string
    if "<" in context.line_after.partition(">")[0] or _WITHIN_TAG.search(context.prefix[-_MAX_TAG:]) is None:
        return len(text)
    start = text.find(string) + 1 if string else 0
    end = _IN_TAG.match(text, start).end()  # type: ignore[union-attr]
    is_end = (start or not string) and _TAG_END.match(text, end)
    return len(text[:end].rstrip()) if is_end else len(text)


def _doubled(text: str, context: Context) -> tuple[int, bool] | None:
    """Return where the first end tag is that the document has, and whether the text opens its element after it."""
    if "</" not in (near := context.prefix[-1:] + text) and "{%" not in near and "{/" not in near:
        return None
    of_document, start = _lacking(context.prefix, context.suffix)
    lacking, own, shift = of_document.copy(), Counter[str](), len(context.prefix) - start
    found = _TAG.finditer(context.prefix[start:] + text)
    doubled: list[tuple[int, str]] = []
    for each in found:
        name, is_end = _read(each)
        if not is_end:
            own[name] += 1
        elif own[name]:
            own[name] -= 1
        else:
            if lacking[name] <= 0 and each.end() > shift:
                doubled.append((max(0, each.start() - shift), name))
            lacking[name] -= 1
    if begun := _WITHIN_TAG.search(text):
        own[f"name {begun[1]}"] += 1
    lost = [at for at, name in doubled if not own[name]]
    return (lost[0], False) if lost else (doubled[0][0], True) if doubled else None


@lru_cache(maxsize=2)  # the text around the cursor stays the same while a suggestion grows
def _lacking(before: str, after: str) -> tuple[Counter[str], int]:
    """Return how many end tags of each name a document lacks, and where the last tag before the cursor ends."""
    lacking, surplus, end = Counter[str](), Counter[str](), 0
    for found in _TAG.finditer(before):
        name, is_end = _read(found)
        lacking[name], end = max(0, lacking[name] + (-1 if is_end else 1)), found.end()
    for name, is_end in map(_read, _TAG.finditer(after[:_MAX_SCANNED])):
        surplus[name] += -1 if is_end else 1
        if surplus[name] < 0:
            lacking[name] -= 1
            surplus[name] = 0
    return lacking, end


def _read(tag: re.Match[str]) -> tuple[str, bool]:
    """Return what a tag is of, and whether it ends that."""
    for kind in ("name", "name_", "_name"):
        if tag[kind]:
            return f"{kind} {tag[kind]}", (tag[kind.replace("name", "end")] or "#") != "#"
    raise AssertionError
