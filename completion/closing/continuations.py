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
    (r"(?:\} else )?(?:if|while|switch)\Z", ("(_){}",)),
    (r"for\Z", ("(;;){}",)),
)
_SCRIPT = (
    (r"import\s*\*", (" as _ from ''", " _ from ''", " from ''")),
    (r"import\b", (" _ from ''", " from ''", " ''")),
    (r"export\b(?!.*\b(?:type|function|interface)\b)", (" const _=_", " from ''", *_VALUE)),
    (r"(?:export )?type\b", ("=_", " _=_", *_VALUE)),
    (r"(?:export )?interface\b.*<[^>]*\Z", (">{}", "_>{}", "_=_>{}")),
    (r"(?:export )?(?:default )?(?:async )?function\b", _FUNCTION),
    *_CLAUSES,
)
_PREPROCESSOR = (
    (r"#\s*include\s*<", (">\n",)),
    (r"#\s*include\b", (" <_>\n",)),
    (r"#\s*\Z", ("include <_>\n",)),
)
_MODIFIERS = r"(?:public|private|protected|static|final|abstract|override|async|readonly)\b"

_BY_LANGUAGE = {
    "python": (
        (r"from\b", (" import _", " _ import _", ANY)),
        (r"(?:async )?for\b", (" in _: pass", " _ in _: pass", " _: pass")),
        (r"async\b", (" def _(): pass",)),
        (r".*[=(,:] .*\bif\b(?!.*\belse\b)|return\b.*\bif\b(?!.*\belse\b)", (" else _", " _ else _", ANY)),
    ),
    "javascript": _SCRIPT,
    "typescript": (*_SCRIPT, (_MODIFIERS, ("(){}", " _(){}", *_VALUE))),
    "rust": (
        (r"(?:pub\b.*)?\bfn\b", _FUNCTION),
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
        (r".*\bfunc\b", ("(){}", "()")),
        (r".*\bmap\Z", ("[_]_{}", "[_]_")),
        (r"\w+(?:, \w+)*,?\Z", ("=_", " _=_", ANY)),
    ),
    "java": (
        *_STATEMENTS,
        (r"case\b", (":", " _:", "->_;", " _->_;")),
        (r"default\b", (":", "->_;")),
        (_MODIFIERS, ("(){}", " _(){}", " void _(){}", " class _{}", *_VALUE)),
    ),
    "cpp": (*_PREPROCESSOR, *_CLAUSES, *_STATEMENTS, (r"using\b", ("=_;", *_VALUE))),
    "c": (*_PREPROCESSOR, *_CLAUSES, *_STATEMENTS),
}
"""By language, how a line may begin, and what may follow its last word then, the likeliest first."""

_OTHERWISE = {
    "json": (" 0", ":0", ' "":0'),
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
