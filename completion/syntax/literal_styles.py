"""How languages write comments and strings, for scanning without a grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiteralStyle:
    """The syntax of comments and strings in a family of languages.

    Attributes:
        token: A bracket, or what begins a comment, a string or a regular expression; of a character literal, all of it.
        prose: What begins a comment or a string, wherever it stands: rather too much is prose than too little.
        line_comment: What begins a comment up to the line's end; "" if nothing does.
        multi_line_strings: Delimiters of strings that do not end with their line.
        lone_closers: Closing brackets that need no opener.
    """

    token: re.Pattern[str]
    prose: re.Pattern[str]
    line_comment: str
    multi_line_strings: frozenset[str]
    lone_closers: frozenset[str] = frozenset()


def _style(
    line_comment: str,
    strings: tuple[str, ...],
    multi_line: tuple[str, ...] = (),
    *,
    c_like: bool,
    comment: str = "",
    regex: str = "",
    lone_closers: str = "",
) -> LiteralStyle:
    """Return a style; `comment` and `regex` are patterns of what begins a line comment and a regular expression."""
    # Only a complete character literal is skipped, because Rust's lifetimes have a single apostrophe.
    characters = r"'(?:\\[^\n']{1,9}|[^'\\\n])'" if c_like and "'" not in strings else ""
    literals = [r"/\*" if c_like else "", characters, *map(re.escape, strings)]
    everywhere = re.escape(line_comment)
    token = _any_of([comment or everywhere, *literals, regex, r"[()\[\]{}]"])
    prose = _any_of([everywhere, *literals])
    return LiteralStyle(token, prose, line_comment, frozenset(multi_line), frozenset(lone_closers))


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(filter(None, patterns)) or r"(?!)")


def _regex(after: str, *others: str) -> str:
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


_PYTHON = _style("#", ('"""', "'''", '"', "'"), ('"""', "'''"), c_like=False)
_SCRIPT_REGEX = _regex(r"(,=:\[&|?;", r"(?<=\breturn /)", r"(?<=\bcase /)")  # no brace: Svelte has `{/if}`
_SCRIPT = _style("//", ('"', "'", "`"), ("`",), c_like=True, regex=_SCRIPT_REGEX)
_GO = _style("//", ('"', "'", "`"), ("`",), c_like=True)
_C = _style("//", ('"', "'"), c_like=True)
_RUST = _style("//", ('"',), ('"',), c_like=True)
_JSON = _style("", ('"',), c_like=False)
_HASH = _style("#", ('"', "'"), ('"', "'"), c_like=False)
_WORD_REGEX = r"(?<=\w /)(?!\s)"  # `when /a/`, `split /,/`: a division has a blank on both sides or on none
_RUBY = _style("#", ('"', "'"), ('"', "'"), c_like=False, regex=_regex(r"(,=:\[&|?;{~", _WORD_REGEX))
_PERL_REGEX = _regex(r"(,=:\[&|?;{~", _WORD_REGEX, r"(?<=[^\w$@%>][ms]/)", r"(?<=[^\w$@%>]qr/)")
_PERL = _style("#", ('"', "'"), ('"', "'"), c_like=False, comment=r"#(?<!\$#)", regex=_PERL_REGEX)
_SHELL_COMMENT = r"#(?<![^\s;&|()]#)"
_SHELL = _style("#", ('"', "'"), ('"', "'"), c_like=False, comment=_SHELL_COMMENT, lone_closers=")")  # of `case`
_CONFIGURATION = _style("#", ('"', "'"), c_like=False)  # with text that is not quoted, and its apostrophes
_YAML = _style("#", ('"', "'"), c_like=False, comment=r"#(?<!\S#)")
_CSS = _style("", ('"', "'"), c_like=True)
_SQL = _style("--", ('"', "'"), ('"', "'"), c_like=True)
_LISP = _style(";", ('"',), ('"',), c_like=False)
_LUA = _style("--", ('"', "'"), c_like=False)
_HASKELL = _style("--", ('"',), c_like=False)  # names can end with an apostrophe
_ATTRIBUTE = r"""(?<==)["']"""  # in markup, only values of attributes are strings
_MARKUP = LiteralStyle(_any_of([_ATTRIBUTE, r"[()\[\]{}]"]), _any_of([_ATTRIBUTE]), "", frozenset())
_PLAIN = _style("", (), c_like=False)
_NATURAL = _style("", (), c_like=False, lone_closers=")]}")  # lists have `1)`, faces `:)`
_TEX = _style("", (), c_like=False, lone_closers=")]")  # half-open intervals, but braces are in pairs


def _of_each(style: LiteralStyle, languages: str) -> dict[str, LiteralStyle]:
    return dict.fromkeys(languages.split(), style)


# Identifiers of the Language Server Protocol or of VS Code's extensions, and the file types that Neovim sends.
COMPLETE_STYLES = {
    "python": _PYTHON,
    "go": _GO,
    "rust": _RUST,
    "json": _JSON,
    "css": _CSS,
    "sql": _SQL,
    "ruby": _RUBY,
    "perl": _PERL,
    **_of_each(_SCRIPT, "javascript javascriptreact typescript typescriptreact svelte vue"),
    **_of_each(
        _C, "c cpp csharp cs java kotlin swift scala dart php objective-c objc objective-cpp objcpp cuda-cpp cuda"
    ),
    **_of_each(_C, "groovy zig proto3 proto solidity glsl scss less"),
    **_of_each(_HASH, "r julia toml elixir"),
    **_of_each(_SHELL, "shellscript sh bash zsh"),
    **_of_each(_YAML, "yaml dockerfile makefile make"),
    **_of_each(_CONFIGURATION, "terraform hcl graphql"),
    **_of_each(_LISP, "clojure lisp scheme racket"),
}
"""Styles of the languages whose comments and strings they all find."""

_PARTLY_KNOWN = {
    "lua": _LUA,
    "haskell": _HASKELL,
    **_of_each(_CONFIGURATION, "powershell ps1"),
    **_of_each(_MARKUP, "html xml xsl handlebars django-html htmldjango jinja-html erb eruby astro"),
}
"""Styles of languages with other comments or with prose as well."""

_MOSTLY_TEXT = {
    **_of_each(_NATURAL, "markdown plaintext text restructuredtext rst asciidoc git-commit gitcommit mail"),
    **_of_each(_TEX, "latex tex plaintex"),
}
"""Styles of documents that are mostly natural language."""


def is_known(language: str) -> bool:
    """Return whether the language is one of code whose style is known, in full or in part."""
    return language in COMPLETE_STYLES or language in _PARTLY_KNOWN


def style_of(language: str) -> LiteralStyle:
    """Return the style of a language; for an unknown one, every bracket counts and nothing is a comment or a string."""
    return COMPLETE_STYLES.get(language) or _PARTLY_KNOWN.get(language) or _MOSTLY_TEXT.get(language, _PLAIN)
