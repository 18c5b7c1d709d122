"""How languages write comments and strings, for scanning without a grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiteralStyle:
    """The syntax of comments and strings in a family of languages.

    Attributes:
        token: A bracket, or what begins a comment or a string; of a character literal, all of it.
        line_comment: What begins a comment up to the line's end; "" if nothing does.
        multi_line_strings: Delimiters of strings that do not end with their line.
    """

    token: re.Pattern[str]
    line_comment: str
    multi_line_strings: frozenset[str]


def _style(
    line_comment: str, strings: tuple[str, ...], multi_line: tuple[str, ...] = (), *, c_like: bool
) -> LiteralStyle:
    literals = [re.escape(comment) for comment in (line_comment, "/*" if c_like else "") if comment]
    # Only a complete character literal is skipped, because Rust's lifetimes have a single apostrophe.
    characters = [] if "'" in strings or not c_like else [r"'(?:\\[^\n']{1,9}|[^'\\\n])'"]
    delimiters = [re.escape(delimiter) for delimiter in strings]
    token = re.compile("|".join([*literals, *characters, *delimiters, r"[()\[\]{}]"]))
    return LiteralStyle(token, line_comment, frozenset(multi_line))


_PYTHON = _style("#", ('"""', "'''", '"', "'"), ('"""', "'''"), c_like=False)
_SCRIPT = _style("//", ('"', "'", "`"), ("`",), c_like=True)
_C = _style("//", ('"', "'"), c_like=True)
_RUST = _style("//", ('"',), ('"',), c_like=True)
_JSON = _style("", ('"',), c_like=False)
_HASH = _style("#", ('"', "'"), ('"', "'"), c_like=False)
_CONFIGURATION = _style("#", ('"', "'"), c_like=False)  # with text that is not quoted, and its apostrophes
_CSS = _style("", ('"', "'"), c_like=True)
_SQL = _style("--", ('"', "'"), ('"', "'"), c_like=True)
_LISP = _style(";", ('"',), ('"',), c_like=False)
_LUA = _style("--", ('"', "'"), c_like=False)
_HASKELL = _style("--", ('"',), c_like=False)  # names can end with an apostrophe
_MARKUP = LiteralStyle(re.compile(r"""(?<==)["']|[()\[\]{}]"""), "", frozenset())  # values of attributes
_PLAIN = _style("", (), c_like=False)


def _of_each(style: LiteralStyle, languages: str) -> dict[str, LiteralStyle]:
    return dict.fromkeys(languages.split(), style)


# Identifiers of the Language Server Protocol or of VS Code's extensions, and the file types that Neovim sends.
COMPLETE_STYLES = {
    "python": _PYTHON,
    "rust": _RUST,
    "json": _JSON,
    "css": _CSS,
    "sql": _SQL,
    **_of_each(_SCRIPT, "javascript javascriptreact typescript typescriptreact go svelte vue"),
    **_of_each(
        _C, "c cpp csharp cs java kotlin swift scala dart php objective-c objc objective-cpp objcpp cuda-cpp cuda"
    ),
    **_of_each(_C, "groovy zig proto3 proto solidity glsl scss less"),
    **_of_each(_HASH, "ruby shellscript sh bash zsh perl r julia toml elixir"),
    **_of_each(_CONFIGURATION, "yaml dockerfile makefile make terraform hcl graphql"),
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


def is_known(language: str) -> bool:
    """Return whether the language is one of code whose style is known, in full or in part."""
    return language in COMPLETE_STYLES or language in _PARTLY_KNOWN


def style_of(language: str) -> LiteralStyle:
    """Return the style of a language; for an unknown one, every bracket counts and nothing is a comment or a string."""
    return COMPLETE_STYLES.get(language) or _PARTLY_KNOWN.get(language, _PLAIN)
