"""Finds end tags that a document has already, without parsing: of HTML's elements, and of the blocks of templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

VALUE = r"""\{(?:[^{}]|\{[^{}]*\})*+\}|"[^"]*"|'[^']*'"""
"""Pattern of a value of an attribute. In Svelte, values have braces, with `=>` in them."""
WITHIN_TAG = re.compile(rf"""<([A-Za-z][\w.:-]*)(?:\s(?:{VALUE}|[^<>"'])*+(?:"[^"]*|'[^']*)?)?\Z""")
"""A text that ends inside of an opening tag, between or within its attributes."""

_ELEMENT = rf"""<(?P<closes>/?)(?P<name>[A-Za-z][\w.:-]*)(?:\s(?:{VALUE}|[^<>"'])*+)?(?<!/)>"""
_BLOCK = r"\{%[-+~]?\s*(?P<ends>end)?(?P<word>[a-z]\w*)[^%\n]*%\}"  # of Jinja, Django, Twig and Liquid
_SVELTE = r"\{(?P<slash>[#/])(?P<block>[a-z]+)[^\n]*?\}"
_TAG = re.compile(f"{_ELEMENT}|{_BLOCK}|{_SVELTE}")
_NAMES = (("name", "closes"), ("word", "ends"), ("block", "slash"))
_MAY_END = re.compile(r"</|\{[%/]")
_BEGUN = re.compile(r"(?:<(?:/[\w.:-]*\s*)?|\{(?:%[-+~]?\s*(?:e(?:n(?:d[^}\n]*)?)?)?|/[^}\n]*)?)\Z")
_MAX_SCANNED = 30_000  # characters on each side of the cursor in which tags are counted


class _Tag(NamedTuple):
    """A tag: its offsets, what it is of, and whether it closes that."""

    start: int
    end: int
    name: str
    closes: bool


def doubled_end_tag(text: str, before: str, after: str, *, unfinished: bool = False) -> int | None:
    """Return the offset of the first end tag in a text that the document has further on; None if there is none.

    An end tag stays if the text has its opening tag, or the document lacks it: `before` opens more elements of that
    name than `after` closes. So it does if the text opens another one after it.

    Args:
        text: Text between `before` and `after`.
        before: Document before it. In a very long one, nothing is found, because its tags are not counted.
        after: Document after it.
        unfinished: Whether the text may go on, and close what it opens.
    """
    if _MAY_END.search(before[-1:] + text) is None or len(before) > _MAX_SCANNED:
        return None
    of_document, start = _around(before, after)
    lacking, own, length = of_document.copy(), Counter[str](), len(before) - start
    found: list[_Tag] = []
    for tag in _tags(before[start:] + text):
        if not tag.closes:
            own[tag.name] += 1
        elif own[tag.name]:
            own[tag.name] -= 1
        else:
            if not lacking[tag.name] and tag.start >= length - 1:
                found.append(tag)
            lacking[tag.name] -= 1
    if found and (begun := WITHIN_TAG.search(text)):
        own[f"name {begun.group(1)}"] += 1
    doubled = (max(0, tag.start - length) for tag in found if unfinished or not own[tag.name])
    return next(doubled, None)


def begun_end_tag(text: str, before: str) -> int:
    """Return the offset of what may become an end tag at the end of an unfinished text; its length if nothing may."""
    begun = _BEGUN.search(before[-1:] + text)
    return len(text) if begun is None else max(0, begun.start() - len(before[-1:]))


def forget_texts() -> None:
    """Free what was kept of texts around cursors, so that it need not be computed again."""
    _around.cache_clear()


@lru_cache(maxsize=2)  # the texts around the cursor stay the same while a suggestion grows
def _around(before: str, after: str) -> tuple[Counter[str], int]:
    """Return how many end tags of each name a document lacks, and where the last tag before the cursor ends."""
    (open_, _, end), (_, unopened, _) = _counted(before), _counted(after[:_MAX_SCANNED])
    return open_ - unopened, end


def _counted(text: str) -> tuple[Counter[str], Counter[str], int]:
    """Return how many tags of each name a text leaves open and closes without opening them, and where its last ends."""
    open_, unopened, end = Counter[str](), Counter[str](), 0
    for tag in _tags(text):
        if not tag.closes:
            open_[tag.name] += 1
        elif open_[tag.name]:
            open_[tag.name] -= 1
        else:
            unopened[tag.name] += 1
        end = tag.end
    return open_, unopened, end


def _tags(text: str) -> Iterator[_Tag]:
    """Yield the tags of a text, but not those that need no end tag, `<a />`."""
    for found in _TAG.finditer(text):
        kind, closes = next(each for each in _NAMES if found[each[0]])
        yield _Tag(found.start(), found.end(), f"{kind} {found[kind]}", found[closes] in ("/", "end"))
