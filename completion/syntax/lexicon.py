"""What the lexer looks for in a language: patterns of brackets and of what begins and ends comments and strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from completion.language_ids import rows
from completion.syntax.table import pattern

_BRACKETS = "|".join(map(re.escape, "()[]{}"))  # alternatives that begin with a character are searched fast
_MAX_REGEX = 200  # characters of a regular expression's literal; it bounds the time for a line of many slashes
_CLASS = rf"\[(?>(?:[^\]\\\n]|\\.){{0,{_MAX_REGEX}}})\]"  # of characters, in a regular expression
_REGEX = rf"(?>(?:[^/\\\[\n]|\\.|{_CLASS}){{1,{_MAX_REGEX}}})/"  # from its first character to its last
_MAX_NESTED = 2  # brackets in brackets of a literal, as in `%r{(?:#{a.map { b }})}`


@dataclass(frozen=True, slots=True)
class Literal:
    """A kind of comment or string.

    Attributes:
        end: What ends it; a line's end for a comment up to there.
        inside: Pattern from its first character on up to its end, or up to what begins `code` in it.
        lines: Whether it goes on in further lines.
        is_comment: Whether it is a comment.
    """

    end: str
    inside: re.Pattern[str]
    lines: bool = False
    is_comment: bool = False


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the lexer looks for in a language.

    Attributes:
        code: In code: a bracket, a whole literal, or what begins a comment, string or heredoc, by the group's name.
        line_code: In the code of a string that ends with its line: the same without comments, and the line's end.
        prose: What begins a comment or a string, wherever it stands: rather too much is prose than too little.
        literals: Kinds of comments and strings by the name of their group.
        strings: By what begins a string, wherever it stands, the delimiter that ends it.
        no_heredoc: What is not before a heredoc on its line; "" for nothing.
        is_complete: Whether all comments and strings of the language are known.
    """

    code: re.Pattern[str]
    line_code: re.Pattern[str]
    prose: re.Pattern[str]
    literals: Mapping[str, Literal]
    strings: Mapping[str, str]
    no_heredoc: str
    is_complete: bool


class _Begin(NamedTuple):
    """What begins a comment or a string, and the pattern of it and what is around it."""

    begin: str
    around: str
    literal: Literal
    has_prefix: bool = False

    def group(self, name: str) -> str:
        """Return a pattern of it, with an empty group at its end that says what it is."""
        return f"{self.around}(?P<{name}>)"


@cache
def lexicon_of(language: str) -> Lexicon:
    """Return what the lexer looks for in a language; in an unknown one, brackets only."""
    row = rows().get(language, {})
    # of what begins alike, the longest counts, and what must have something before it
    begins = sorted((*_comments(row), *_strings(row)), key=lambda one: (-len(one.begin), not one.has_prefix))
    named = {f"literal{index}": one for index, one in enumerate(begins)}
    whole = pattern(row.get("whole", ""))
    known = [whole, *map(_sigil, row.get("sigils", ())), *_slash(row), pattern(row.get("skipped", ""))]
    heredoc = [f"{pattern(row['heredoc'])}(?P<heredoc>)"] if "heredoc" in row else []
    strings = [one.group(name) for name, one in named.items() if not one.literal.is_comment]
    usual = {one.begin: f"{re.escape(one.begin)}(?P<{name}>)" for name, one in named.items() if not one.has_prefix}
    return Lexicon(
        code=_any_of([*known, *heredoc, *(one.group(name) for name, one in named.items()), _BRACKETS]),
        line_code=_any_of([*known, *strings, _BRACKETS, r"\n(?P<line>)"]),
        prose=_any_of([whole, *usual.values()]),
        literals={name: one.literal for name, one in named.items()},
        strings={one.begin: one.literal.end for one in begins if not one.has_prefix and not one.literal.is_comment},
        no_heredoc=row.get("no_heredoc", ""),
        is_complete=bool(begins) and not row.get("partly") and not row.get("kind"),
    )


@cache
def string_ended_by(delimiter: str, language: str) -> Literal:
    """Return the usual kind of string that a delimiter ends; one of a line where the language has none."""
    strings = (one.literal for one in _strings(rows().get(language, {})) if one.literal.end == delimiter)
    return next(reversed(list(strings)), None) or _string(delimiter, {})


def _comments(row: Mapping[str, Any]) -> Iterator[_Begin]:
    """Yield what begins the comments of a language."""
    for begin in row.get("line_comments", "").split():
        yield _Begin(begin, _around(begin, row), Literal("\n", re.compile(r"[^\n]*(?=\n)"), is_comment=True))
    words = row.get("block_comments", "").split()
    for begin, end in zip(words[::2], words[1::2], strict=True):
        inside = re.compile(f"(?s:.*?){re.escape(end)}")
        yield _Begin(begin, _around(begin, row), Literal(end, inside, lines=True, is_comment=True))


def _strings(row: Mapping[str, Any]) -> Iterator[_Begin]:
    """Yield what begins the strings of a language."""
    for kind in row.get("strings", ()):
        for quote in kind["quotes"].split():
            prefixes = [f"(?<={_word_start(each)}{re.escape(each + quote)})" for each in kind.get("after", "").split()]
            around = f"{re.escape(quote)}(?:{'|'.join(prefixes)})" if prefixes else _around(quote, row)
            yield _Begin(quote, around, _string(kind.get("end", quote), kind), has_prefix=bool(prefixes))


def _word_start(prefix: str) -> str:
    return r"\b" if prefix[0].isalnum() else ""


def _around(begin: str, row: Mapping[str, Any]) -> str:
    """Return the pattern of what begins a literal, and what must be around it there."""
    where, exact = row.get("where", {}), re.escape(begin)
    return pattern(where.get(begin) or where.get(begin[0], exact)).replace("{}", exact)


def _string(end: str, kind: Mapping[str, Any]) -> Literal:
    """Return a kind of string. The pattern of what is inside it takes all that neither ends it nor begins code."""
    lines, raw, code, skip = (kind.get(key, "") for key in ("lines", "raw", "code", "skip"))
    ends, line_end = re.escape(end), "" if lines else r"\n"
    special = re.escape("".join({*"\\", end[0], *re.sub(r"[\w\\?=()|]", "", code + skip)}))
    escape = (ends * 2 if len(end) == 1 and not skip else "") if raw else r"(?s:\\.)"
    stops = "".join(f"(?!{each})" for each in (ends, code, "" if raw else r"\\") if each)
    other = [skip, f"(?!{code}){escape}" if code and escape else escape, f"[^{special}{line_end}]++"]
    inner = "|".join(filter(None, [*other, f"{stops}[^{line_end}]" if line_end else f"{stops}(?s:.)"]))
    last = [ends, f"(?P<code>{code})" if code else "", "" if lines else r"(?=\n)"]
    return Literal(end, re.compile(f"(?>(?:{inner})*)(?:{'|'.join(filter(None, last))})"), lines=bool(lines))


def _slash(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a pattern of regular expressions: of a slash that does not divide, by what is before it.

    The slash is the first part of the pattern: looking behind at every character takes 30 times as long.
    """
    if "slash_after" not in row:
        return
    one, others = row["slash_after"]["one"], map(pattern, row["slash_after"]["others"])
    # Where a line or the text begins, a division has a blank after the slash, and `/>` ends a tag.
    begins_line = r"(?:(?<![^\n\t]/)|(?<=  /))(?![\s>])"
    before = [rf"(?<=[{one}!]/)", rf"(?<=[{one}] /)", r"(?<==>/)", r"(?<==> /)", begins_line, *others]
    yield rf"/(?:{'|'.join(before)})(?![*/])(?:{_REGEX})?"


def _sigil(kind: Mapping[str, Any]) -> str:
    """Return a pattern of literals with delimiters of their own, which end on the same line."""
    return f"{pattern(kind['begin'])}(?:{'|'.join(_delimited(kind))})"


def _delimited(kind: Mapping[str, Any]) -> Iterator[str]:
    """Yield patterns of what is between delimiters, one for each kind of them; brackets of the kind are in pairs."""
    brackets = "|".join(_between(each) for each in kind["delimiters"].split() if len(each) > 1)
    for each in kind["delimiters"].split():
        again = ""
        if "twice" in kind:
            again = rf"(?:[ \t]*(?:{brackets}))?" if len(each) > 1 else rf"(?>(?:\\.|[^\\\n{each}])*)\{each}"
        yield _between(each) + again


def _between(delimiters: str) -> str:
    first, last = delimiters[0], delimiters[-1]
    other = rf"\\.|[^\\\n\{first}\{last}]"
    inner = rf"(?>(?:{other})*)"
    for _ in range(_MAX_NESTED if first != last else 0):
        inner = rf"(?>(?:{other}|\{first}{inner}\{last})*)"
    return rf"\{first}{inner}\{last}"


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(filter(None, patterns)) or r"(?!)", re.MULTILINE)
