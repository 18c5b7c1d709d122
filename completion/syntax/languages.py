"""The languages with a grammar: LSP language identifier, package and entry function."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache

from tree_sitter import Language

from completion.errors import GrammarUnsupportedError
from completion.language_ids import rows
from completion.syntax.table import row_of

LANGUAGES = {language: row_of(language) for language, row in rows().items() if "package" in row}
"""Languages with a grammar, by the table."""


def true_language(language: str, *parts: str) -> str:
    """Return the language of a document; corrects editors that take Objective-C headers for C or C++.

    Args:
        language: LSP language identifier from the editor.
        parts: The document's text in any number of parts.
    """
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
    address = read_capsule(capsule, b"tree_sitter.Language")
    assert address is not None  # noqa: S101  a wrong capsule raises ValueError
    return int(address)


@cache
def tree_sitter_language(package: str, entry: str) -> Language:
    """Return the grammar for tree-sitter's own parser."""
    return Language(getattr(importlib.import_module(package), entry)())
