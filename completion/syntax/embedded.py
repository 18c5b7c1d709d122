"""Languages inside documents of another one: scripts and styles of HTML and its kin."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from completion.language_ids import named_language, rows
from completion.request import CompletionRequest
from completion.syntax.table import pattern


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A kind of place in a document where another language is, as `languages.toml` describes it.

    Attributes:
        begin: Pattern of what is before the place.
        end: Pattern of what is after it.
        named: Pattern of the word in `begin` that names the language; None if nothing does.
        language: Language where no word names it; "" if it is unknown then.
        unless: Pattern of text in a document in which there is no such place.
    """

    begin: str
    end: re.Pattern[str]
    named: re.Pattern[str] | None
    language: str
    unless: re.Pattern[str] | None

    def language_after(self, begin: str) -> str:
        """Return the language after a text that matches `begin`; "" for an unknown one."""
        word = self.named.search(begin) if self.named else None
        return named_language(word[1]) if word else self.language


def embedded(request: CompletionRequest) -> CompletionRequest:
    """Return a request in the language that the cursor is in, with that language's part of the document only.

    It is the request itself where no other language is embedded, where an unknown one is, and where the end of that is
    not typed yet, which may be what comes next.
    """
    if not _kinds(request.language)[0] or request.messages:
        return request
    found = _begun(request.prefix, request.language)
    return _inside(request, *found) if found else request


@lru_cache(maxsize=2)  # several ask about the same cursor
def _begun(prefix: str, language: str) -> tuple[_Embedded, re.Match[str]] | None:
    """Return the kind of place that a text ends inside, and what begins it."""
    (kinds, begins), start = _kinds(language), 0
    while found := begins.search(prefix, start):
        kind, start = kinds[int(str(found.lastgroup).removeprefix("kind"))], found.end()
        end = kind.end.search(prefix, start)
        if end is None:
            return kind, found
        start = end.end()
    return None


def _inside(request: CompletionRequest, kind: _Embedded, begin: re.Match[str]) -> CompletionRequest:
    language, end = kind.language_after(begin[0]), kind.end.search(request.suffix)
    if not language or not end or _kinds(request.language)[1].search(request.suffix, 0, end.start()):
        return request
    if kind.unless and (kind.unless.search(request.prefix) or kind.unless.search(request.suffix)):
        return request
    return replace(
        request,
        language=language,
        prefix=request.prefix[begin.end() :],
        suffix=request.suffix[: end.start()],
    )


@cache
def _kinds(language: str) -> tuple[tuple[_Embedded, ...], re.Pattern[str]]:
    """Return what may be embedded in a language, and the pattern of what begins any of it."""
    kinds = tuple(
        _Embedded(
            begin=pattern(row["begin"]),
            end=re.compile(pattern(row["end"]), re.MULTILINE),
            named=re.compile(pattern(row["named"])) if "named" in row else None,
            language=row.get("language", ""),
            unless=re.compile(pattern(row["unless"])) if "unless" in row else None,
        )
        for row in rows().get(language, {}).get("embeds", ())
    )
    return kinds, re.compile("|".join(f"(?P<kind{index}>{kind.begin})" for index, kind in enumerate(kinds)))
