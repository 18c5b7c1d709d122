"""What may follow the last word of a line that is still being written: a name, or the rest of what a keyword begins.

`self.name =`, `from pathlib` and `pub(crate)` are right so far, but not yet a statement. A suggestion grows word by
word on the screen, and of a finished one only the likely start is shown. So the syntax of such a start is checked
together with one of these texts. Which of them can follow which line is left to the grammar, whose acceptor rejects the
others before the document is parsed (`completion.grammar.constraint.GrammarConstraint.sound_when_closed`).
"""

from __future__ import annotations

from collections.abc import Mapping

ANY = " _"
"""Code that can stand for a name, an expression, a type or a statement."""

_FOR = ("=_;;", ";;", ":_", " _:_")
_BODIES = ("(_){}", "(;;){}", "{}while(_);")  # after `if`, `for` and `do`
_PREPROCESSOR = (">\n", " <_>\n", "include <_>\n")
_SCRIPT = (
    *(";", ",", "=_", " ''", " from ''", "(){}", ":", " of _", "=_;;", ">=_", ">{}", "=_>{}", *_BODIES),
    *(" {} from ''", "} from ''", " as _ from ''", " const _=_"),
)
_STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "python": (",", " import _", " in _: pass", ": pass", " else _", " def _(): pass"),
    "javascript": _SCRIPT,
    "typescript": (*_SCRIPT, " class _{}", " _(){}"),
    "rust": (
        *(";", ",", "{}", "(){}", "=_;", ":_,", ":_=_;", "=>_,", " fn _(){}", "=_{}", " in _{}"),
        *("{};", "::_;", ">(){}", "> _{}"),
    ),
    "go": (
        *(",", "{}", "=_", ":", "(){}", " struct{}", "; _{}", ":=_; _{}", "; _; _{}", ":=range _{}", " range _{}"),
        *(":=<-_:", "=<-_:", "<-_:", ' ""'),
    ),
    "java": (
        *(";", ",", "(){}", *_FOR, ":", "->_;", *_BODIES, " class _{}", " void _(){}", " _(){}"),
        *("> _ _(){}", "> _;", ">> _;", "{}finally{}"),
    ),
    "c": (";", ",", "(){}", *_PREPROCESSOR, *_FOR, ":", *_BODIES, " _;"),
    "cpp": (
        *(";", ",", "(){}", *_PREPROCESSOR, "=_", "=_;", "{};", *_FOR, ":", " _=_", *_BODIES, " _;", " _,"),
        *("{}catch(...){}", "> class _;", "<> class _;", " class _> class _;"),
    ),
    "json": (" 0", ":0", ' "":0', " 0,", ":0,", ' "":0,'),  # with a comma above others
}
"""By language, what may follow a line or one more name, the likeliest first."""

_TERNARY = ":_"
_SCRIPT_OPERANDS = (_TERNARY, "=>_", ">=>_", ")=>(_", "]:[_", '":"', "':'")
_OPERANDS: Mapping[str, tuple[str, ...]] = {
    "json": (" 0",),
    "python": (": _", " in _", " for _ in _"),
    "javascript": _SCRIPT_OPERANDS,
    "typescript": _SCRIPT_OPERANDS,
    "rust": ("{}", "|_", ")|(_", "||_", "=>_"),
    "go": ("{}", "a", "{}{}", "[_]_", "[_]_{}", "]_{}[_", "()", "(){}", "){}(", "a){}("),
    "java": (_TERNARY, "()", "[0]", "->_", ")->(_", "(_){}", " _"),
    "c": (_TERNARY, "=_"),
    "cpp": (_TERNARY, "=_", "{}", "]:_[_", "]{}[_", "){}("),
}
"""By language, what may follow in the middle of an expression or one more name, before everything is closed."""


def continuations(language: str) -> tuple[str, ...]:
    """Return texts of which one goes on with a line so that it is a statement, the likeliest first.

    Args:
        language: LSP language identifier.
    """
    texts = _STATEMENTS.get(language.removesuffix("react"), (";", ","))
    return (ANY, f"{ANY};", f"{ANY},", *texts, *(ANY + each for each in texts))


def missing_operands(language: str) -> tuple[str, ...]:
    """Return texts of which one completes the expression at the end of a line, as far as it has no closers of its own.

    They are balanced, so that what closes the line can follow: after `f(x, [&`, the text `]{}[_` closes the captures of
    a lambda and opens a bracket again.

    Args:
        language: LSP language identifier.
    """
    texts = _OPERANDS.get(language.removesuffix("react"), ())
    return (*texts, *(ANY + each for each in texts))
