"""What a scan without a grammar knows of a language, and how this is made of delimiters and patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiteralStyle:
    """The syntax of comments and strings in a family of languages.

    Attributes:
        token: A bracket, or what begins a comment, a string or a regular expression; of a character literal, all of it.
        prose: What begins a comment or a string, wherever it stands: rather too much is prose than too little.
        line_comment: What begins a comment up to the line's end; "" if nothing does.
        comments: By what begins a comment, what ends it.
        strings: By what begins a string, the delimiter that ends it.
        multi_line_strings: What begins or ends a string that does not end with its line.
        raw_strings: What begins or ends a string in which a backslash is no escape, but two delimiters are.
        lone_closers: Closing brackets that need no opener.
        escapes: By what begins a raw string, the pattern of an escape in it that begins like its end.
    """

    token: re.Pattern[str]
    prose: re.Pattern[str]
    line_comment: str
    comments: Mapping[str, str]
    strings: Mapping[str, str]
    multi_line_strings: frozenset[str]
    raw_strings: frozenset[str]
    lone_closers: frozenset[str]
    escapes: Mapping[str, str]


def style(
    line_comments: str = "",
    strings: str = "",
    multi_line: str = "",
    *,
    blocks: str = "",
    long: str = "",
    raw: str = "",
    whole: str = "",
    skipped: str = "",
    where: Mapping[str, str] | None = None,
    lone_closers: str = "",
    escapes: Mapping[str, str] | None = None,
) -> LiteralStyle:
    """Return a style. Of all that is separated by blanks, the longest that fits counts.

    Args:
        line_comments: What begins a comment up to the line's end, the usual one first.
        strings: Delimiters of strings that end with their line.
        multi_line: Delimiters of other strings.
        blocks: What begins and what ends each kind of comment of several lines.
        long: What begins and what ends each kind of raw string of several lines, where these differ.
        raw: Delimiters of raw strings.
        whole: Pattern of literals that count only as a whole.
        skipped: Pattern of code without brackets and quotes: regular expressions, escaped characters.
        where: By what begins a comment or a string, the pattern of it and what is around it.
        lone_closers: Closing brackets that need no opener.
        escapes: By the delimiter of a raw string, the pattern of an escape in it that begins like its end.
    """
    comments = dict.fromkeys(line_comments.split(), "\n") | _pairs(blocks)
    short = {*strings.split(), *multi_line.split()}
    delimiters = dict(zip(short, short, strict=True)) | _pairs(long)
    long_ones = {*_pairs(long), *_pairs(long).values()} - short
    begins = sorted({*comments, *delimiters}, key=len, reverse=True)
    token = [whole, skipped, *((where or {}).get(one, re.escape(one)) for one in begins), r"[()\[\]{}]"]
    return LiteralStyle(
        token=_any_of(token),
        prose=_any_of([whole, *map(re.escape, begins)]),
        line_comment=(line_comments.split() or [""])[0],
        comments=comments,
        strings=delimiters,
        multi_line_strings=frozenset(multi_line.split()) | long_ones,
        raw_strings=frozenset(raw.split()) | long_ones,
        lone_closers=frozenset(lone_closers),
        escapes=escapes or {},
    )


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(filter(None, patterns)) or r"(?!)")
