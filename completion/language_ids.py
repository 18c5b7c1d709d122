"""The names of languages, by their rows in `syntax/languages.toml`: identifiers, what clients send, names of files.

This module imports the standard library only, because the types of requests use it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePath
from typing import Any

_TABLE = Path(__file__).parent / "syntax" / "languages.toml"
_UNNAMED = ("", "plaintext")
# what no row has from the one that it is like
_OWN = frozenset(["names", "endings", "files", "package", "entry", "acceptor", "tags", "named_literals", "like"])


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Return the rows of all languages by their identifier, each with what it has from the row that it is like.

    The row `patterns` has the patterns that others name, the row `words` the words of all languages.
    """
    import tomllib  # noqa: PLC0415 - `initialize` needs no row

    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    for language, row in table.items():  # a row stands below the one that it is like
        like = table[row["like"]] if "like" in row else {}
        table[language] = {key: value for key, value in like.items() if key not in _OWN} | row
    return table


@cache
def _by(key: str) -> dict[str, str]:
    """Return the languages by the words that their rows have for a key."""
    return {word: language for language, row in rows().items() for word in row.get(key, "").split()}


def language_of(path: str | PurePath) -> str:
    """Return the LSP language identifier of a file by its name; "" for an unknown one."""
    name = PurePath(path).name.lower()
    named = _by("files").get(name) or _by("endings").get(PurePath(name).suffix)
    return named or _by("files").get(name.partition(".")[0], "")  # Dockerfile.dev


def endings() -> list[str]:
    """Return the endings of the files of all languages, sorted."""
    return sorted(_by("endings"))


def ending_of(language: str) -> str:
    """Return the usual ending of a language's files; "" for an unknown language."""
    return next(iter(rows().get(known_language(language), {}).get("endings", "").split()), "")


def known_language(language: str, path: str = "") -> str:
    """Return the identifier that draftline knows a language by; an unknown one as it is.

    Editors without an extension for a language take its files for plain text. There, the file's name says more.

    Args:
        language: What a client calls the language: `sh`, `yaml.ansible`, `NeogitCommitMessage`.
        path: Path of the file; "" if unknown.
    """
    name, first = language.lower(), language.lower().partition(".")[0]
    known = _by("names").get(name) or _by("names").get(first) or first
    return (language_of(path) or known) if known in _UNNAMED else known


def named_language(word: str) -> str:
    """Return the language that a word of a document names: by an identifier, or a file's ending; "" for none."""
    known = known_language(word)
    return known if "endings" in rows().get(known, {}) else language_of(f"x.{word}")


def family_of(language: str) -> str:
    """Return the language that a client's one is like: a file in C has a header in C++."""
    known = known_language(language)
    return str(rows().get(known, {}).get("like", known))


class OfLanguage:
    """Base of the frozen dataclasses about a document in a language: they have one name for it, whatever a client says.

    Attributes:
        language: What a client calls the language, which becomes the identifier that draftline knows it by.
    """

    __slots__ = ()
    language: str
    path: str

    def __post_init__(self) -> None:
        """Replace the client's name of the language."""
        if isinstance(self.language, str):  # the host's schema refuses anything else, with a sentence
            object.__setattr__(self, "language", known_language(self.language, self.path))
