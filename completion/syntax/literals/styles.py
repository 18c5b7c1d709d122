"""The style of each language."""

from __future__ import annotations

from completion.syntax.literals.patterns import (
    AFTER_NAME,
    APOSTROPHE,
    BRACKET_OR_QUOTE,
    CHARACTER,
    ESCAPED,
    PERL_LITERAL,
    RUBY_LITERAL,
    WITHIN_CODE,
    sigil,
    slash_regex,
    string_with_commands,
)
from completion.syntax.literals.style import LiteralStyle, style

_TRIPLE = "\"\"\" '''"
_QUOTES = "\" '"
_BLOCK = "/* */"
_PYTHON = style("#", _QUOTES, _TRIPLE)
_SCRIPT_REGEX = slash_regex(r"(,=:\[&|?;", r"(?<=\breturn /)", r"(?<=\bcase /)")  # no brace: Svelte has `{/if}`
_SCRIPT = style("//", _QUOTES, "`", blocks=_BLOCK, skipped=_SCRIPT_REGEX, where={"'": APOSTROPHE})
_IN_MARKUP = {"'": APOSTROPHE, "//": r"//(?<!://)"}
_UNCLOSED_IN_TEXT = r"\([^()<>\n]*+</"  # as in `<p>:(</p>`
_IN_COMPONENT = f"{_UNCLOSED_IN_TEXT}|{_SCRIPT_REGEX}"
_COMPONENT = style("//", _QUOTES, "`", blocks=f"{_BLOCK} <!-- -->", skipped=_IN_COMPONENT, where=_IN_MARKUP)
_GO = style("//", _QUOTES, "`", blocks=_BLOCK, raw="`")
_C = style("//", _QUOTES, blocks=_BLOCK)
_JVM = style("//", _QUOTES, '"""', blocks=_BLOCK)
_SCALA = style("//", '"', '"""', blocks=_BLOCK, whole=CHARACTER)  # `'a` is a symbol, `'{ a }` quotes code
_DART = style("//", _QUOTES, _TRIPLE, blocks=_BLOCK)
_CSHARP = style("//", _QUOTES, '"""', blocks=_BLOCK, long='@" " @$" "')
_PHP = style("// #", _QUOTES, blocks=_BLOCK, where={"#": r"#(?!\[)", "'": APOSTROPHE})
_RUST = style("//", "", '"', blocks=_BLOCK, whole=CHARACTER)
_JSON = style("", '"')
_R = style("#", "", _QUOTES, skipped=r"`(?:\\.|[^`\\\n])++`")  # a name of any characters
_ELIXIR_SIGIL = sigil(r"~[A-Za-z]+", ["()", "[]", "{}", "<>", "/", "|"])
_ELIXIR = style(
    *("#", "", f"{_QUOTES} {_TRIPLE}"), skipped=f"{_ELIXIR_SIGIL}|{BRACKET_OR_QUOTE}", where={"#": WITHIN_CODE}
)
_JULIA = style("#", "", '" """', blocks="#= =#", whole=AFTER_NAME)
_TOML = style("#", _QUOTES, _TRIPLE, raw="' '''")
_RUBY = style("#", "", _QUOTES, skipped=RUBY_LITERAL, where={"#": WITHIN_CODE})
_POD = "=pod =head1 =head2 =head3 =head4 =over =item =back =begin =end =for =encoding =attr =func =method"
_PERL_WHERE = {"#": r"#(?<!\$#)"} | {one: rf"{one}(?<![^\n]{one})\b" for one in _POD.split()}
_PERL = style("#", "", _QUOTES, blocks=f"{_POD} ".replace(" ", " =cut "), skipped=PERL_LITERAL, where=_PERL_WHERE)
_SHELL = style(
    *("#", "", _QUOTES),
    raw="'",
    whole=string_with_commands(),
    skipped=rf"\$'(?:[^'\\]|\\.)*+'|{ESCAPED}",
    where={"#": r"#(?<![^\s;&|()]#)"},
    lone_closers=")",  # of `case`
)
_YAML = style("#", _QUOTES, raw="'", where={"#": r"#(?<!\S#)", "'": APOSTROPHE})
_INI = style("# ;", where={"#": r"#(?<!\S#)", ";": r";(?<!\S;)"})
_BUILD = style("#", _QUOTES, raw="'", skipped=ESCAPED, where={"#": r"#(?<!\S#)", "'": APOSTROPHE})
_CMAKE = style("#", "", '"', blocks="#[[ ]]")
_TERRAFORM = style("# //", '"', blocks=_BLOCK)
_GRAPHQL = style("#", '"', '"""')
_POWERSHELL = style("#", _QUOTES, blocks="<# #>", long="@\" \"@ @' '@", raw=_QUOTES, skipped="`.")
_CSS = style("", _QUOTES, blocks=_BLOCK)
_SCSS = style("//", _QUOTES, blocks=_BLOCK, where={"//": r"//(?<![:(]//)"})  # an address may have no quotes
_SQL = style("--", "", _QUOTES, blocks=_BLOCK, skipped=r"'\\'(?=[\s;),])")  # as in `ESCAPE '\'`
_LISP = style(";", "", '"', skipped=ESCAPED)
_ERLANG = style("%", "'", '"', whole=r"\$(?:\\.|[^\\\n])")
_NIX = style("#", "", "\" ''", blocks=_BLOCK, raw="''", where={"''": r"''(?<![\w']'')"}, escapes={"''": r"''['$\\]"})
_LUA = style("--", _QUOTES, blocks="--[[ ]] --[=[ ]=] --[==[ ]==]", long="[[ ]] [=[ ]=] [==[ ]==]")
_OPERATOR = r"[!#$%&*+./<=>?@\\^|~:]"
_HASKELL_COMMENT = rf"--(?<!{_OPERATOR}--)(?!{_OPERATOR})"
_HASKELL = style("--", '"', blocks="{- -}", whole=AFTER_NAME, where={"--": _HASKELL_COMMENT})
_ML_COMMENT = {"(*": r"\(\*(?!\))"}  # but not the operator `(*)`
_OCAML = style("", "", '"', blocks="(* *)", whole=AFTER_NAME, where=_ML_COMMENT)
_FSHARP = style("//", "", '" """', blocks="(* *)", whole=AFTER_NAME, where=_ML_COMMENT)
_VALUES = {quote: f"(?<==){quote}" for quote in _QUOTES.split()}  # in markup, only values of attributes are strings
# In `href="{{ url("a") }}"` of a template, the opening braces are in the value, and the closing ones seem outside.
_MARKUP = style("", _QUOTES, blocks="<!-- -->", where=_VALUES, lone_closers=")]}")
_PLAIN = style()
_LIST_MARK_OR_FACE = r"\n[ \t]*\w{1,3}\)(?=[ \t])|[:;](?<!\S.)-?[()]"  # `1) one`, `well :)`
_NATURAL = style(lone_closers=")]}", skipped=_LIST_MARK_OR_FACE)
_TEX = style("%", where={"%": r"%(?<!\\%)"}, lone_closers=")]")  # half-open intervals, but braces are in pairs


def _of_each(one: LiteralStyle, languages: str) -> dict[str, LiteralStyle]:
    return dict.fromkeys(languages.split(), one)


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
