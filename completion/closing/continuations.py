"""What may follow the last word of a line that is still being written: a name, or the rest of what a keyword begins.

`self.name =`, `from pathlib` and `pub(crate)` are right so far, but not yet a statement. A suggestion grows word by
word on the screen, and of a finished one only the likely start is shown. So the syntax of such a start is checked
together with one of these texts.
"""

from __future__ import annotations

import re

ANY = " _"
"""Code that can stand for a name, an expression, a type or a statement."""

_FUNCTION = (" _(){}", "(){}")
_VALUE = (ANY, f"{ANY};", f"{ANY},")

_CLAUSES = (
    (r"case\b", (":", " _:")),
    (r"default\b", (":",)),
)
_STATEMENTS = (
    (r"(?:\} else )?(?:if|while|switch|synchronized)\Z", ("(_){}",)),
    (r"for\Z", ("(;;){}",)),
    (r"do\Z", ("{}while(_);",)),
)
_FOR = (
    (r"for\b.*;.*;", (ANY,)),
    (r"for\b.*;", (";", " _;")),
    (r"for\b", (";;", "=_;;", " _;;", ":_", " _:_", " _=_;;", " _ _:_")),
)
_DECLARED = (  # words that begin a declaration
    r"(?:(?:static|const|constexpr|inline|extern|typedef|mutable|virtual|volatile|unsigned|struct)\s+)*"
    r"(?:static|const|constexpr|inline|extern|typedef|mutable|virtual|volatile|unsigned|struct)\b(?:\s+[\w:]*)?\Z"
)
_SCRIPT = (
    *_STATEMENTS,
    (r"for\b.*;.*;", (ANY,)),
    (r"for\b.*;", (";", " _;")),
    (r"for\b", (" of _", " _ of _", "=_;;", " _=_;;")),
    (r"import\s+\w+\s*,", (" {} from ''", " _} from ''", " from ''")),
    (r"import\s*\*", (" as _ from ''", " _ from ''", " from ''", " ''")),
    (r"import\b", (" _ from ''", " from ''", " ''")),
    (r"export\s*\*", (" from ''", " ''")),
    (r"export\b(?!.*\b(?:type|function|interface)\b)", (" const _=_", " from ''", *_VALUE)),
    (r"(?:export )?type\b", ("=_", " _=_", "_=_", "_>=_", *_VALUE)),
    (r"(?:export )?interface\b.*<[^>]*\Z", (">{}", "_>{}", "_=_>{}")),
    (r"(?:export )?(?:default )?(?:async )?function\b", _FUNCTION),
    *_CLAUSES,
)
_PREPROCESSOR = (
    (r"#\s*include\s*<", (">\n",)),
    (r"#\s*include\b", (" <_>\n",)),
    (r"#\s*\Z", ("include <_>\n",)),
)
_MODIFIERS = r"(?:public|private|protected|static|final|abstract|override|async|readonly|get|set)\b"

_BY_LANGUAGE = {
    "python": (
        (r"from\b", (" import _", " _ import _", ANY)),
        (r"(?:async )?for\b", (" in _: pass", " _ in _: pass", " _: pass")),
        (r"async\b", (" def _(): pass",)),
        (r"(?:(?>.*?[=(,:] )|return\b)(?>.*\bif\b)(?!.*\belse\b)", (" else _", " _ else _", ANY)),
    ),
    "javascript": _SCRIPT,
    "typescript": (
        *_SCRIPT,
        (r"@\Z", ("_ class _{}", "_ _(){}")),
        (_MODIFIERS, ("(){}", " _(){}", " class _{}", *_VALUE)),
    ),
    "rust": (
        (r"(?:pub\b.*|async |const |unsafe )?\bfn\b", (*_FUNCTION, " _>(){}")),
        (r"impl\b", (" _{}", " _> _{}", "{}")),
        (r"(?:if|while) let\b", ("=_{}", " _=_{}")),
        (r"for\b", (" in _{}", " _ in _{}")),
        (r".*\belse\Z", ("{}", "{};")),
        (r"pub\b(?!.*\b(?:use|mod|struct|enum|const|static|type)\b)", (" fn _(){}", ":_,", " _:_,", *_VALUE)),
        (r"(?:pub\b.*)?\b(?:const|static)\b", (":_=_;", " _:_=_;", *_VALUE)),
        (r"(?:pub\b.*)?\btype\b", ("=_;", " _=_;", *_VALUE)),
    ),
    "go": (
        (r"type\b", (" struct{}", " _ struct{}", ANY)),
        (r"func\b", _FUNCTION),
        (r"import\b", (' ""',)),
        (r"(?:const|var)\b", ("=_", " _=_", ANY)),
        (r"case\b", (":", " _:", ":=<-_:", " _:=<-_:", "<-_:", " _=<-_:")),
        (r"default\b", (":",)),
        (r"(?:if|switch)\b.*:=", ("; _{}", " _; _{}")),
        (r"(?:if|switch)\b.*,", (" _:=_; _{}", ":=_; _{}")),
        (r"for\b.*;.*;", ("{}", " _{}")),
        (r"for\b.*;", ("; _{}", " _; _{}")),
        (r"for\b", ("; _; _{}", " _; _; _{}", " range _{}", " _:=range _{}", ":=range _{}")),
        (r"\w+(?:, \w+)*,?\Z", ("=_", " _=_", ANY)),
    ),
    "java": (
        *_STATEMENTS,
        *_FOR,
        (r"try\Z", ("{}finally{}",)),
        (r"@\Z", ("_ void _(){}", "_ class _{}")),
        (r"[\w\s.]*\brecord\b", ("(){}", " _(){}")),
        (r"[\w\s.]*<[^=(>]*,\Z", (" _> _;", " _>> _;")),
        (r"[\w\s.]*\s<[^>]*\Z", ("> _ _(){}", "_> _ _(){}", " _> _ _(){}")),
        (r"case\b", (":", " _:", "->_;", " _->_;")),
        (r"default\b", (":", "->_;")),
        (_MODIFIERS, ("(){}", " _(){}", " void _(){}", " class _{}", *_VALUE)),
    ),
    "cpp": (
        *_PREPROCESSOR,
        *_CLAUSES,
        *_STATEMENTS,
        *_FOR,
        (r"try\Z", ("{}catch(...){}",)),
        (r"(?:\} else )?(?:if|while|switch)\b[^;=]*\Z", ("=_", " _=_", " _ _=_")),
        (r"using\b", ("=_;", *_VALUE)),
        (r"concept\b", ("=_;", " _=_;", ANY)),
        (r"template\b", ("> class _;", "<> class _;", " _> class _;", " class _> class _;")),
        (r"(?:class|struct)\b[^{]*:", ("{};", " _{};", "_{};")),
        (_DECLARED, (*_VALUE, " _ _;", " _ _,")),
    ),
    "c": (*_PREPROCESSOR, *_CLAUSES, *_STATEMENTS, *_FOR, (_DECLARED, (*_VALUE, " _ _;"))),
}
"""By language, how a line may begin, and what may follow its last word then, the likeliest first."""

_TERNARY = (r"(?<![?\w]\?)(?<=[\w)\]\"' ])\?(?![?.])[^:;]*\Z", (":_", " _:_"))
_SCRIPT_ENDS = (
    _TERNARY,
    (r"[(,=:]\s*(?:async\s*)?(?:<[^()]*>)?\([^()]*\)(?::[^()=]*)?\Z", ("=>_", " _=>_", "_>=>_")),
    (r"[(,=]\s*(?:async\s*)?(?:<[^()]*>)?\([^()]*\Z", (")=>(_", " _)=>(_")),
    (r"^\[[^\]]*\Z", ("]:[_", " _]:[_")),
    (r'^"[^"]*\Z', ('":"',)),
    (r"^'[^']*\Z", ("':'",)),
)
_C_ENDS = (_TERNARY, (r"[{,]\s*\.\w*\Z", ("=_", "_=_")))

_AT_END = {
    "json": ((r"[\[,:]\s*\Z", (" 0",)),),
    "python": (
        (r"\blambda\b[^:]*\Z", (": _", " _: _")),
        (r"[(\[{].*\basync\b(?: for)?\Z", (" for _ in _", " _ in _")),
        (r"[(\[{].*\bfor\s[\w, ]*\Z", (" in _",)),
    ),
    "javascript": _SCRIPT_ENDS,
    "typescript": _SCRIPT_ENDS,
    "rust": (
        (r"[(,=]\s*(?:move\s*)?\|[^|]*\Z", ("|_", "_|_", " _|_")),
        (r"[(,=]\s*(?:move\s*)?\|[^|(]*\([^|]*\Z", (")|(_", "_)|(_", " _)|(_")),
        (r"\|[^|]*\|\s*->[^{]*\Z", ("{}", " _{}")),
        (r"\b(?:async|move|unsafe|loop|match|if)\Z", ("{}", "||_", " _{}")),
        (r"[(=]\s*(?:if|match)\b[^{]*\Z", ("{}", " _{}")),
        (r"\bmatch\b.*\{[^{}]*\Z", ("=>_", " _=>_")),
    ),
    "go": (
        (r"\.\Z", ("a",)),
        (r"\bstruct\Z", ("{}", "{}{}")),
        (r"\bmap\Z", ("[_]_", "[_]_{}")),
        (r"\bmap\[[^\]]*\Z", ("]_{}[_", "_]_{}[_")),
        (r"\]\*?[\w.]+\Z", ("{}",)),
        (r"\bfunc\Z", ("()", "(){}")),
        (r"\bfunc\([^()]*\Z", ("){}(", " _){}(", "a){}(", "_){}(")),
        (r"\bfunc\([^{}]*\)[^{}]*\Z", ("{}",)),
    ),
    "java": (
        _TERNARY,
        (r"\bnew\Z", (" _()",)),
        (r"\bnew [\w.]+(?:<[^;()]*>)?\Z", ("()", "[0]")),
        (r"[(,=]\s*\([^()]*\)\Z", ("->_",)),
        (r"[(,=]\s*\([^()]*\Z", (")->(_", " _)->(_")),
        (r"[=(]\s*switch\Z", ("(_){}",)),
        (r"[(,]\s*@\w*\Z", ("_ _ _", " _ _")),
        (r"[(,]\Z", (" _ _",)),
    ),
    "cpp": (
        *_C_ENDS,
        (r"\bfor\s*\([^:]*\[[^\]]*\Z", ("]:_[_", "_]:_[_", " _]:_[_")),
        (r"(?:[(,={&|]|\breturn)\s*\[[^\[\]]*\Z", ("]{}[_", " _]{}[_")),
        (r"(?:[(,={&|]|\breturn)\s*\[[^\[\]]*\]\s*\([^()]*\Z", ("){}(", " _){}(")),
        (r"(?:[(,={&|]|\breturn)\s*\[[^\[\]]*\][^{}]*\Z", ("{}", " _{}")),
    ),
    "c": _C_ENDS,
}
"""By language, how a line may end in the middle of an expression, and what may follow before everything is closed."""

_NEAR = 200  # characters before the end of a line among which its expression begins

_OTHERWISE = {
    "json": (" 0", ":0", ' "":0', " 0,", ":0,", ' "":0,'),  # with a comma above others
    "python": (ANY, f"{ANY},"),
    "go": (ANY, f"{ANY},", f"{ANY}{{}}"),
    "rust": (*_VALUE, "=>_,", " _=>_,", "::_;", ":_,"),
    "c": (*_VALUE, "(){}"),
    "cpp": (*_VALUE, "(){}"),
}


def continuations(line: str, language: str) -> tuple[str, ...]:
    """Return texts of which one goes on with a line so that it is a statement, the likeliest first.

    Args:
        line: A line of code up to its last word.
        language: LSP language identifier.
    """
    language = language.removesuffix("react")
    code = line.strip()
    kinds = _BY_LANGUAGE.get(language, ())
    return next((texts for start, texts in kinds if re.match(start, code)), _OTHERWISE.get(language, _VALUE))


def missing_operands(line: str, language: str) -> tuple[str, ...]:
    """Return texts of which one completes the expression at the end of a line, as far as it has no closers of its own.

    They are balanced, so that what closes the line can follow: after `f(x, [&`, the text `]{}[_` closes the captures of
    a lambda and opens a bracket again.

    Args:
        line: A line of code up to its last word.
        language: LSP language identifier.
    """
    kinds, near = _AT_END.get(language.removesuffix("react"), ()), line[-_NEAR:]
    return tuple(text for end, texts in kinds if re.search(end, near) for text in texts)
