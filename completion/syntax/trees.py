"""Trees of whole and partial documents by LSP language identifier, from tree-sitter's own parser."""

from __future__ import annotations

from pathlib import PurePosixPath

from tree_sitter import Node, Parser, Tree

from completion.syntax.languages import LANGUAGES, tree_sitter_language


def parse(text: str, language: str) -> Tree | None:
    """Parse a whole or partial document; None for a language without a grammar. Offsets are UTF-8 bytes."""
    row = LANGUAGES.get(language)
    if row is None:
        return None
    return Parser(tree_sitter_language(row.package, row.entry)).parse(text.encode("utf-8", "replace"))


def ancestors(node: Node | None) -> list[Node]:
    """The node and everything around it, innermost first."""
    chain = []
    while node is not None:
        chain.append(node)
        node = node.parent
    return chain


_LANGUAGE_OF_ENDING = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascriptreact", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".tsx": "typescriptreact", ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".h": "cpp", ".cc": "cpp",
    ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".json": "json",
}  # fmt: skip


def language_of(path: str) -> str:
    """LSP language identifier by a file's ending; "" for one without a grammar."""
    return _LANGUAGE_OF_ENDING.get(PurePosixPath(path).suffix.lower(), "")
