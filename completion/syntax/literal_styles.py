"""How languages write comments and strings, for scanning without a grammar."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


def _style(
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


_MAX_NESTED = 2  # brackets in brackets of a literal, as in `%r{(?:#{a.map { b }})}`
_TRIPLE = "\"\"\" '''"
_QUOTES = "\" '"
_BLOCK = "/* */"
# Only a complete character literal is skipped: Rust's lifetimes and Scala's symbols have a single apostrophe.
_CHARACTER = r"'(?:\\[^\n']{1,9}|[^'\\\n])'"
_AFTER_NAME = _CHARACTER.replace("'", r"'(?<![\w)\]}.']')", 1)  # where names can end with an apostrophe
_APOSTROPHE = r"'(?<!\w')"  # text that is not quoted has its own
_ESCAPED = r"\\."
_AFTER_NO_NAME = r"\?(?<![\w)\]}]\?)"
_BRACKET_OR_QUOTE = rf"{_AFTER_NO_NAME}\\?[\"'\[\](){{}}](?![\w@:$\"'\[({{])"  # the character itself, as `?(`
_WITHIN_CODE = r"#(?!\{)"  # in a string that is in the code of a string, as in `"#{a ? "#{b}" : c}"`


def _sigil(begin: str, delimiters: Sequence[str]) -> str:
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


_PYTHON = _style("#", _QUOTES, _TRIPLE)
_SCRIPT_REGEX = _regex(r"(,=:\[&|?;", r"(?<=\breturn /)", r"(?<=\bcase /)")  # no brace: Svelte has `{/if}`
_SCRIPT = _style("//", _QUOTES, "`", blocks=_BLOCK, skipped=_SCRIPT_REGEX, where={"'": _APOSTROPHE})
_IN_MARKUP = {"'": _APOSTROPHE, "//": r"//(?<!://)"}
_UNCLOSED_IN_TEXT = r"\([^()<>\n]*+</"  # as in `<p>:(</p>`
_IN_COMPONENT = f"{_UNCLOSED_IN_TEXT}|{_SCRIPT_REGEX}"
_COMPONENT = _style("//", _QUOTES, "`", blocks=f"{_BLOCK} <!-- -->", skipped=_IN_COMPONENT, where=_IN_MARKUP)
_GO = _style("//", _QUOTES, "`", blocks=_BLOCK, raw="`")
_C = _style("//", _QUOTES, blocks=_BLOCK)
_JVM = _style("//", _QUOTES, '"""', blocks=_BLOCK)
_SCALA = _style("//", '"', '"""', blocks=_BLOCK, whole=_CHARACTER)  # `'a` is a symbol, `'{ a }` quotes code
_DART = _style("//", _QUOTES, _TRIPLE, blocks=_BLOCK)
_CSHARP = _style("//", _QUOTES, '"""', blocks=_BLOCK, long='@" " @$" "')
_PHP = _style("// #", _QUOTES, blocks=_BLOCK, where={"#": r"#(?!\[)", "'": _APOSTROPHE})
_RUST = _style("//", "", '"', blocks=_BLOCK, whole=_CHARACTER)
_JSON = _style("", '"')
_R = _style("#", "", _QUOTES, skipped=r"`(?:\\.|[^`\\\n])++`")  # a name of any characters
_ELIXIR_SIGIL = _sigil(r"~[A-Za-z]+", ["()", "[]", "{}", "<>", "/", "|"])
_ELIXIR = _style(
    *("#", "", f"{_QUOTES} {_TRIPLE}"), skipped=f"{_ELIXIR_SIGIL}|{_BRACKET_OR_QUOTE}", where={"#": _WITHIN_CODE}
)
_JULIA = _style("#", "", '" """', blocks="#= =#", whole=_AFTER_NAME)
_TOML = _style("#", _QUOTES, _TRIPLE, raw="' '''")
_WORD_REGEX = r"(?<=\w /)(?!\s)"  # `when /a/`, `split /,/`: a division has a blank on both sides or on none
_RUBY_LITERAL = "|".join(
    (
        _sigil("%[rwWiIqQxs]?", ["()", "[]", "{}"]),
        _sigil("%[rwWiIqQxs]", ["<>", "/", "|", "!"]),
        _BRACKET_OR_QUOTE,
        _regex(r"(,=:\[&|?;{~", _WORD_REGEX),
    )
)
_RUBY = _style("#", "", _QUOTES, skipped=_RUBY_LITERAL, where={"#": _WITHIN_CODE})
_BRACKETS = ("()", "[]", "{}", "<>")
_NO_NAME = r"(?<![\w$@%&*>]{0})"  # `$q`, `%s` and `->q` are names
_PERL_QUOTE = "|".join((f"q{_NO_NAME.format('q')}[qrwx]?", f"m{_NO_NAME.format('m')}"))
_PERL_CHANGE = "|".join(one + _NO_NAME.format(one) for one in ("s", "y", "tr"))
_PERL_LITERAL = "|".join(
    (
        *(_sigil(rf"(?:{_PERL_CHANGE})\{each}(?:\\.|[^\\\n{each}])*+(?=\{each})", each) for each in "/!|"),
        rf"{_sigil(f'(?:{_PERL_CHANGE})', _BRACKETS)}(?:\s*{_sigil('', _BRACKETS)})?",
        _sigil(f"(?:{_PERL_QUOTE})", [*_BRACKETS, *"/!|"]),
        _regex(r"(,=:\[&|?;{~", _WORD_REGEX),
        r"\$\](?=\s*[<>=!])",  # the version, as in `$] < 5.020`
    )
)
_POD = "=pod =head1 =head2 =head3 =head4 =over =item =back =begin =end =for =encoding =attr =func =method"
_PERL_WHERE = {"#": r"#(?<!\$#)"} | {one: rf"{one}(?<![^\n]{one})\b" for one in _POD.split()}
_PERL = _style("#", "", _QUOTES, blocks=f"{_POD} ".replace(" ", " =cut "), skipped=_PERL_LITERAL, where=_PERL_WHERE)
_SHELL = _style(
    *("#", "", _QUOTES),
    raw="'",
    skipped=rf"\$'(?:[^'\\]|\\.)*+'|{_ESCAPED}",
    where={"#": r"#(?<![^\s;&|()]#)"},
    lone_closers=")",  # of `case`
)
_YAML = _style("#", _QUOTES, raw="'", where={"#": r"#(?<!\S#)", "'": _APOSTROPHE})
_INI = _style("# ;", where={"#": r"#(?<!\S#)", ";": r";(?<!\S;)"})
_BUILD = _style("#", _QUOTES, raw="'", skipped=_ESCAPED, where={"#": r"#(?<!\S#)", "'": _APOSTROPHE})
_CMAKE = _style("#", "", '"', blocks="#[[ ]]")
_TERRAFORM = _style("# //", '"', blocks=_BLOCK)
_GRAPHQL = _style("#", '"', '"""')
_POWERSHELL = _style("#", _QUOTES, blocks="<# #>", long="@\" \"@ @' '@", raw=_QUOTES, skipped="`.")
_CSS = _style("", _QUOTES, blocks=_BLOCK)
_SCSS = _style("//", _QUOTES, blocks=_BLOCK, where={"//": r"//(?<![:(]//)"})  # an address may have no quotes
_SQL = _style("--", "", _QUOTES, blocks=_BLOCK, skipped=r"'\\'(?=[\s;),])")  # as in `ESCAPE '\'`
_LISP = _style(";", "", '"', skipped=_ESCAPED)
_ERLANG = _style("%", "'", '"', whole=r"\$(?:\\.|[^\\\n])")
_NIX = _style("#", "", "\" ''", blocks=_BLOCK, raw="''", where={"''": r"''(?<![\w']'')"}, escapes={"''": r"''['$\\]"})
_LUA = _style("--", _QUOTES, blocks="--[[ ]] --[=[ ]=] --[==[ ]==]", long="[[ ]] [=[ ]=] [==[ ]==]")
_OPERATOR = r"[!#$%&*+./<=>?@\\^|~:]"
_HASKELL_COMMENT = rf"--(?<!{_OPERATOR}--)(?!{_OPERATOR})"
_HASKELL = _style("--", '"', blocks="{- -}", whole=_AFTER_NAME, where={"--": _HASKELL_COMMENT})
_ML_COMMENT = {"(*": r"\(\*(?!\))"}  # but not the operator `(*)`
_OCAML = _style("", "", '"', blocks="(* *)", whole=_AFTER_NAME, where=_ML_COMMENT)
_FSHARP = _style("//", "", '" """', blocks="(* *)", whole=_AFTER_NAME, where=_ML_COMMENT)
_VALUES = {quote: f"(?<==){quote}" for quote in _QUOTES.split()}  # in markup, only values of attributes are strings
# In `href="{{ url("a") }}"` of a template, the opening braces are in the value, and the closing ones seem outside.
_MARKUP = _style("", _QUOTES, blocks="<!-- -->", where=_VALUES, lone_closers=")]}")
_PLAIN = _style()
_LIST_MARK_OR_FACE = r"\n[ \t]*\w{1,3}\)(?=[ \t])|[:;](?<!\S.)-?[()]"  # `1) one`, `well :)`
_NATURAL = _style(lone_closers=")]}", skipped=_LIST_MARK_OR_FACE)
_TEX = _style("%", where={"%": r"%(?<!\\%)"}, lone_closers=")]")  # half-open intervals, but braces are in pairs


def _of_each(style: LiteralStyle, languages: str) -> dict[str, LiteralStyle]:
    return dict.fromkeys(languages.split(), style)


COMPLETE_STYLES = {
    "python": _PYTHON,
    "rust": _RUST,
    "json": _JSON,
    "css": _CSS,
    "sql": _SQL,
    "ruby": _RUBY,
    "perl": _PERL,
    "csharp": _CSHARP,
    "php": _PHP,
    "r": _R,
    "elixir": _ELIXIR,
    "julia": _JULIA,
    "toml": _TOML,
    "shellscript": _SHELL,
    "yaml": _YAML,
    "terraform": _TERRAFORM,
    "erlang": _ERLANG,
    "graphql": _GRAPHQL,
    **_of_each(_SCRIPT, "javascript javascriptreact typescript typescriptreact"),
    **_of_each(_COMPONENT, "vue svelte"),
    **_of_each(_C, "c cpp objective-c objective-cpp cuda-cpp jsonc zig proto3 solidity glsl"),
    **_of_each(_GO, "go gomod"),
    "scala": _SCALA,
    **_of_each(_JVM, "java kotlin swift"),
    **_of_each(_DART, "dart groovy"),
    **_of_each(_SCSS, "scss less"),
    **_of_each(_BUILD, "dockerfile makefile"),
    **_of_each(_LISP, "clojure lisp scheme racket"),
}
"""Styles of the languages whose comments and strings they all find, by `completion.language_ids.known_language`."""

_MOSTLY_TEXT = {
    **_of_each(_NATURAL, "markdown plaintext restructuredtext asciidoc git-commit mail"),
    "latex": _TEX,
}
"""Styles of documents that are mostly natural language."""

_PARTLY_KNOWN = {
    "lua": _LUA,
    "haskell": _HASKELL,
    "ocaml": _OCAML,
    "fsharp": _FSHARP,
    "cmake": _CMAKE,
    "nix": _NIX,
    "powershell": _POWERSHELL,
    "ini": _INI,
}
"""Styles of languages with other comments or strings as well, such as nested ones, or those of Lua with `[===[`.

What is a comment or a string in INI depends on the program.
"""

_MARKED_UP = _of_each(_MARKUP, "html xml")
_STYLES = {**COMPLETE_STYLES, **_PARTLY_KNOWN, **_MARKED_UP, **_MOSTLY_TEXT}


def is_code(language: str) -> bool:
    """Return whether the language is known, and documents in it are not mostly natural language."""
    return language in _STYLES and language not in _MOSTLY_TEXT


def has_sentences(language: str) -> bool:
    """Return whether documents in the language contain text, in which brackets can be of any meaning, as in `:(`."""
    return language in _MARKED_UP or language in _MOSTLY_TEXT


def style_of(language: str) -> LiteralStyle:
    """Return the style of a language; for an unknown one, every bracket counts and nothing is a comment or a string."""
    return _STYLES.get(language, _PLAIN)
