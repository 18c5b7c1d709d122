"""The languages that have a grammar: LSP language identifier, package, entry function, and what an item is."""

from __future__ import annotations

import ctypes
import importlib
import re
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language

from completion.errors import GrammarUnsupportedError


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """One language.

    Attributes:
        package: Module of the installed grammar.
        entry: Its function that returns the `TSLanguage` capsule.
        indented: Blocks are made by indentation (Python).
    """

    package: str
    entry: str = "language"
    indented: bool = False


LANGUAGES = {
    "python": LanguageRow("tree_sitter_python", indented=True),
    "javascript": LanguageRow("tree_sitter_javascript"),
    "javascriptreact": LanguageRow("tree_sitter_javascript"),
    "typescript": LanguageRow("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": LanguageRow("tree_sitter_typescript", "language_tsx"),
    "go": LanguageRow("tree_sitter_go"),
    "rust": LanguageRow("tree_sitter_rust"),
    "java": LanguageRow("tree_sitter_java"),
    "c": LanguageRow("tree_sitter_c"),
    "cpp": LanguageRow("tree_sitter_cpp"),
    "json": LanguageRow("tree_sitter_json"),
}


_OBJECTIVE_C = re.compile(
    r"^[ \t]*(?:@(?:interface|implementation|protocol|property|import|end)\b|#[ \t]*import\b)", re.MULTILINE
)


def true_language(language: str, *parts: str) -> str:
    """The language of a document, which for C's header files an editor can only guess.

    Args:
        language: LSP language identifier that came with it.
        parts: Its text, in any number of pieces.
    """
    if language in ("c", "cpp") and any(_OBJECTIVE_C.search(part) for part in parts):
        return "objective-c" if language == "c" else "objective-cpp"
    return language


@cache
def language_address(package: str, entry: str) -> int:
    """Address of the package's `TSLanguage`.

    Raises:
        GrammarUnsupportedError: The package is not installed or has no such function.
    """
    try:
        capsule = getattr(importlib.import_module(package), entry)()
    except (ImportError, AttributeError) as error:
        raise GrammarUnsupportedError(f"The grammar {package}.{entry} cannot be loaded: {error}.") from error
    if isinstance(capsule, int):  # packages from before 2024 return the address itself
        return capsule
    read_capsule = ctypes.pythonapi.PyCapsule_GetPointer
    read_capsule.restype, read_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = read_capsule(capsule, b"tree_sitter.Language")
    assert address is not None  # noqa: S101  a wrong capsule raises ValueError
    return int(address)


@cache
def tree_sitter_language(package: str, entry: str) -> Language:
    """The grammar for tree-sitter's own parser."""
    return Language(getattr(importlib.import_module(package), entry)())
