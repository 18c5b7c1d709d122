"""Maps a file's ending to its LSP language identifier, and back."""

from __future__ import annotations

from pathlib import PurePath

_LANGUAGE_OF_ENDING = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascriptreact", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".tsx": "typescriptreact", ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".cpp": "cpp", ".cc": "cpp",
    ".cxx": "cpp", ".h": "cpp", ".hpp": "cpp", ".hh": "cpp", ".json": "json",
    ".rb": "ruby", ".sh": "shellscript", ".bash": "shellscript", ".pl": "perl", ".r": "r", ".jl": "julia",
    ".kt": "kotlin", ".kts": "kotlin", ".swift": "swift", ".scala": "scala", ".dart": "dart", ".php": "php",
    ".cs": "csharp", ".m": "objective-c", ".vue": "vue", ".svelte": "svelte", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".css": "css", ".scss": "scss", ".less": "less", ".sql": "sql", ".ex": "elixir", ".exs": "elixir",
    ".clj": "clojure", ".proto": "proto3", ".zig": "zig", ".tf": "terraform", ".graphql": "graphql", ".mk": "makefile",
    ".html": "html", ".xml": "xml", ".lua": "lua", ".hs": "haskell", ".ps1": "powershell",
}  # fmt: skip
"""Languages with a grammar, then languages with known comments or strings; of each, its usual ending first.

A header is C++, as in most editors: the C++ grammar also reads C headers.
"""


def language_of(path: str | PurePath) -> str:
    """Return the LSP language identifier of a file by its ending; "" for an unknown one."""
    return _LANGUAGE_OF_ENDING.get(PurePath(path).suffix.lower(), "")


def ending_of(language: str) -> str:
    """Return the usual ending of a language's files; "" for an unknown language."""
    return next((ending for ending, own in _LANGUAGE_OF_ENDING.items() if own == language), "")
