"""The languages with a grammar: which are installed, and where their packages have them."""

from __future__ import annotations

import ctypes
import importlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from tree_sitter import Language, Parser, Query

from completion.errors import GrammarUnsupportedError
from completion.language_ids import rows
from completion.syntax.table import Row, row_of

LANGUAGES = tuple(language for language, row in rows().items() if "package" in row)
"""LSP identifiers of the languages that have a grammar, whether or not its package is installed."""

_CAPSULE = b"tree_sitter.Language"  # its name, which must outlive it


@cache
def parsed_row(language: str) -> Row | None:
    """Return the row of a language whose grammar is installed and can be loaded; None for any other language."""
    row = row_of(language)
    with suppress(GrammarUnsupportedError, ValueError):  # which a parser raises for a version that it does not know
        if row.package and Parser(tree_sitter_language(row.package, row.entry)):
            return row
    return None


def grammars_to_install() -> list[str]:
    """Return the languages whose grammar could be installed and is not, or cannot be loaded."""
    return [language for language in LANGUAGES if parsed_row(language) is None]


def true_language(language: str, *parts: str) -> str:
    """Return the language of a document in parts; corrects editors that take Objective-C headers for C or C++."""
    other = row_of(language).may_be
    signs = row_of(other).signs if other else None
    if signs is not None and any(signs.search(part) for part in parts):
        return other
    return language


@cache
def language_address(package: str, entry: str) -> int:
    """Return the address of the package's `TSLanguage`.

    Raises:
        GrammarUnsupportedError: The package is not installed or has no such function.
    """
    try:
        capsule = getattr(importlib.import_module(package), entry)()
    except (ImportError, AttributeError) as error:
        raise GrammarUnsupportedError(
            f"The grammar {package}.{entry} cannot be loaded: {error}. Update its package."
        ) from error
    if isinstance(capsule, int):  # packages from before 2024 return the address
        return capsule
    read_capsule = ctypes.pythonapi.PyCapsule_GetPointer
    read_capsule.restype, read_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = read_capsule(capsule, _CAPSULE)
    assert address is not None  # noqa: S101  a wrong capsule raises ValueError
    return int(address)


@cache
def tree_sitter_language(package: str, entry: str) -> Language:
    """Return the grammar for tree-sitter's own parser, which wants a capsule also from a package that returns none."""
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return Language(new_capsule(language_address(package, entry), _CAPSULE, None))


@cache
def tags_query(language: str) -> Query | None:
    """Return the query of the definitions that a grammar's package has; None if the language's row does not use it."""
    row = parsed_row(language)
    if row is None or not row.tags:
        return None
    module = importlib.import_module(row.package)
    file = Path(str(module.__file__)).with_name("queries") / "tags.scm"
    return Query(tree_sitter_language(row.package, row.entry), file.read_text(encoding="utf-8"))
