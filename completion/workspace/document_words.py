"""The words of a document, by which definitions and runs of lines in other files are scored."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from completion.workspace.definitions import Imports

SNIPPET_LINES = 16
"""Number of lines in a snippet; adjacent snippets overlap by half."""
MIN_SIMILARITY = 0.12
"""Minimum Jaccard similarity of a snippet; snippets below share little but keywords."""

_WORD = re.compile(r"[A-Za-z_]\w{2,}")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A run of a file's lines and its words, which are a tuple because garbage collections skip tuples of strings.

    Attributes:
        line: First of its lines, from 0.
    """

    path: str
    line: int
    words: tuple[str, ...]

    def text_in(self, text: str) -> str:
        """Return its lines in the text of its file."""
        return _lines_from(text.splitlines(), self.line)


def words_of(text: str) -> frozenset[str]:
    """Return the words of three letters or more; `camelCase` and `snake_case` words stay whole."""
    return frozenset(_WORD.findall(text))


def snippets_of(path: str, text: str) -> tuple[Snippet, ...]:
    """Return a file's overlapping runs of lines."""
    lines = text.splitlines()
    step = SNIPPET_LINES // 2
    starts = range(0, max(1, len(lines) - step), step)
    texts = ((start, _lines_from(lines, start)) for start in starts)
    known: dict[str, str] = {}  # a word is one object in all snippets of the file
    return tuple(
        Snippet(path, start, tuple(known.setdefault(word, word) for word in words_of(piece)))
        for start, piece in texts
        if piece.strip()
    )


def _lines_from(lines: list[str], start: int) -> str:
    return "\n".join(lines[start : start + SNIPPET_LINES])


def most_similar(near: frozenset[str], snippets: Iterable[Snippet], count: int) -> list[Snippet]:
    """Return the snippets most similar to the words near the cursor (Jaccard), best first, at most one of a file."""
    scored = []
    for snippet in snippets:
        shared = len(near.intersection(snippet.words))
        union = len(near) + len(snippet.words) - shared
        similarity = shared / union if union else 0.0
        if similarity >= MIN_SIMILARITY:
            scored.append((-similarity, snippet.path, snippet.line, snippet))
    chosen: dict[str, Snippet] = {}
    for *_, snippet in sorted(scored, key=lambda row: row[:3]):
        chosen.setdefault(snippet.path, snippet)
        if len(chosen) == count:
            break
    return list(chosen.values())


BLOCK_LINES = 16
"""Number of lines in a block; the words near the cursor come from a whole block, so that they change rarely."""

IMPORTED_SCORE = 4.0
"""Score of a definition whose name or file the document imports."""

_UNUSED_SO_FAR = 1.0  # added to the score of an imported name that the document does not use yet
_NEAR = 1.5  # score of a name near the cursor
_IMPORTED_FILE = 1.0  # added to the score of every name of a file that the document imports
_MAX_DEFINERS = 3  # files that define a name; more make the name ambiguous
_NAMED_BY_FOLDER = frozenset({"index", "mod", "__init__"})
_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")


@dataclass(frozen=True)
class DocumentWords:
    """The words of a document that definitions in other files are scored by.

    Equal ones give the same choice. They stay equal while a line is typed.

    Attributes:
        above: Lines above the cursor's line.
        budget_tokens: Approximate number of tokens for all snippets.
    """

    path: str
    imports: Imports
    above: str
    suffix: str
    budget_tokens: int

    @cached_property
    def words(self) -> frozenset[str]:
        """All words."""
        return self.imports.names | words_of(self.above + self.suffix)

    @cached_property
    def near(self) -> frozenset[str]:
        """Words near the cursor."""
        return words_of(_surroundings(self.above))

    @cached_property
    def used(self) -> frozenset[str]:
        """Words outside imports."""
        return words_of(_without_imports(self.above) + self.suffix)

    def imports_file(self, path: str) -> bool:
        """Return whether an import names the file."""
        return not _names_of(path).isdisjoint(self.imports.files)

    def imports_all_of(self, path: str) -> bool:
        """Return whether an import makes all definitions of the file available."""
        return not _names_of(path).isdisjoint(self.imports.modules)

    @property
    def names_only(self) -> bool:
        """Whether the document's language imports each name separately."""
        return self.path.endswith(_SCRIPTS)

    def score(self, name: str, path: str, definers: int) -> float:
        """Return the score of the definition of a word in a file, one of `definers`; higher scores are more useful."""
        same_folder = posixpath.dirname(path) == posixpath.dirname(self.path)
        fits = self.imports_file(path)
        if definers > _MAX_DEFINERS and not fits:
            return 0.0
        score = _NEAR if name in self.near else 0.0
        if name in self.imports.names:
            score += IMPORTED_SCORE + (_UNUSED_SO_FAR if name not in self.used else 0.0)
        elif not fits and not same_folder:
            return 0.0
        return (score + (_IMPORTED_FILE if fits else 0.0)) / definers


def _names_of(path: str) -> set[str]:
    """Return the names that imports use for a file; a package of Go is named by its folder, without its tests."""
    folder, name = posixpath.split(path)
    if folder and name.endswith(".go"):
        return set() if name.endswith("_test.go") else {posixpath.basename(folder)}
    stem = posixpath.splitext(name)[0].removesuffix(".d")
    return {name, stem, posixpath.basename(folder)} if stem in _NAMED_BY_FOLDER else {name, stem}


def _without_imports(text: str) -> str:
    words = ("import ", "from ", "use ", "#include", "} from", "export {")
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(words))


def _surroundings(above: str) -> str:
    """Return the last whole block of the lines above the cursor's line; all lines if there is no whole block."""
    lines = above.split("\n")[:-1]
    start = max(0, (len(lines) // BLOCK_LINES - 1) * BLOCK_LINES)
    return "\n".join(lines[start : max(start + BLOCK_LINES, len(lines) // BLOCK_LINES * BLOCK_LINES)])
