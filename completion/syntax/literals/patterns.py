"""Patterns of literals that are more than a delimiter at each end: characters, regular expressions, quotes of Ruby."""

from __future__ import annotations

from collections.abc import Sequence

CHARACTER = r"'(?:\\[^\n']{1,9}|[^'\\\n])'"
"""A character. Only a complete literal is skipped: Rust's lifetimes and Scala's symbols have a single apostrophe."""
AFTER_NAME = CHARACTER.replace("'", r"'(?<![\w)\]}.']')", 1)
"""The same where names can end with an apostrophe."""
APOSTROPHE = r"'(?<!\w')"
"""The quote that begins a string; text that is not quoted has apostrophes of its own."""
ESCAPED = r"\\."
"""A character and the backslash before it."""
WITHIN_CODE = r"#(?!\{)"
"""A mark of comments, but not the one in a string within the code of a string, as in `"#{a ? "#{b}" : c}"`."""
_AFTER_NO_NAME = r"\?(?<![\w)\]}]\?)"
BRACKET_OR_QUOTE = rf"{_AFTER_NO_NAME}\\?[\"'\[\](){{}}](?![\w@:$\"'\[({{])"
"""The character itself, as `?(`."""

_MAX_NESTED = 2  # brackets in brackets of a literal, as in `%r{(?:#{a.map { b }})}`


def slash_regex(after: str, *others: str) -> str:
    """Return a pattern of the slash that begins a regular expression, and does not divide, by what is before it.

    The slash is the first part of the pattern: looking behind at every character takes 30 times as long.

    Args:
        after: Characters that it follows, with a blank between or none, in the form of a set.
        others: Other patterns of it and what is before it.
    """
    # Where a line or the text begins, a division has a blank after the slash, and `/>` ends a tag.
    begins_line = r"(?:(?<![^\n\t]/)|(?<=  /))(?![\s>])"
    before = [rf"(?<=[{after}!]/)", rf"(?<=[{after}] /)", r"(?<==>/)", r"(?<==> /)", begins_line, *others]
    return rf"/(?:{'|'.join(before)})(?![*/])"


def sigil(begin: str, delimiters: Sequence[str]) -> str:
    """Return a pattern of literals that begin with `begin` and a delimiter, and end on the same line.

    Brackets of the delimiter's kind in a literal are in pairs.

    Args:
        begin: Pattern of what is before the delimiter.
        delimiters: Characters that begin and end a literal; one character if both are the same.
    """
    kinds = []
    for first, last in ((each[0], each[-1]) for each in delimiters):
        other = rf"\\.|[^\\\n\{first}\{last}]"
        inner = rf"(?:{other})*+"
        for _ in range(_MAX_NESTED if first != last else 0):
            inner = rf"(?:{other}|\{first}{inner}\{last})*+"
        kinds.append(rf"\{first}{inner}\{last}")
    return rf"{begin}(?:{'|'.join(kinds)})"


def string_with_commands() -> str:
    """Return a pattern of a shell's string with a command within, whose strings have the same quotes: `"$(f "a")"`."""
    text, string = r"[^()\"'\\]|\\.|'[^']*+'", r'"(?:[^"\\]|\\.)*+"'
    for _ in range(_MAX_NESTED + 1):
        group = rf"\((?:{text}|{string})*+\)"
        for _ in range(_MAX_NESTED):
            group = rf"\((?:{text}|{string}|{group})*+\)"
        string = rf'"(?:[^"\\$]|\\.|\$(?!\()|\${group})*+"'
    return string


_WORD_REGEX = r"(?<=\w /)(?!\s)"  # `when /a/`, `split /,/`: a division has a blank on both sides or on none
RUBY_LITERAL = "|".join(
    (
        sigil("%[rwWiIqQxs]?", ["()", "[]", "{}"]),
        sigil("%[rwWiIqQxs]", ["<>", "/", "|", "!"]),
        BRACKET_OR_QUOTE,
        slash_regex(r"(,=:\[&|?;{~", _WORD_REGEX),
    )
)
"""Literals of Ruby with delimiters of their own, characters and regular expressions."""

_BRACKETS = ("()", "[]", "{}", "<>")
_NO_NAME = r"(?<![\w$@%&*>]{0})"  # `$q`, `%s` and `->q` are names
_PERL_QUOTE = "|".join((f"q{_NO_NAME.format('q')}[qrwx]?", f"m{_NO_NAME.format('m')}"))
_PERL_CHANGE = "|".join(one + _NO_NAME.format(one) for one in ("s", "y", "tr"))
PERL_LITERAL = "|".join(
    (
        *(sigil(rf"(?:{_PERL_CHANGE})\{each}(?:\\.|[^\\\n{each}])*+(?=\{each})", each) for each in "/!|"),
        rf"{sigil(f'(?:{_PERL_CHANGE})', _BRACKETS)}(?:\s*{sigil('', _BRACKETS)})?",
        sigil(f"(?:{_PERL_QUOTE})", [*_BRACKETS, *"/!|"]),
        slash_regex(r"(,=:\[&|?;{~", _WORD_REGEX),
        r"\$\](?=\s*[<>=!])",  # the version, as in `$] < 5.020`
    )
)
"""Literals of Perl with delimiters of their own, regular expressions and replacements."""
