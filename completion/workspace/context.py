"""What the model sees of other files: definitions of what the document imports, similar and recently edited code.

The choice depends on the document's imports and on coarse blocks of lines around the cursor, not on single letters:
while somebody types it stays the same, and so does the part of the prompt that is cached for it.
"""

from __future__ import annotations

import posixpath
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from completion.errors import ParseLimitError
from completion.request import CompletionRequest, ContextFile, WorkspaceUpdate
from completion.syntax.file_endings import language_of
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.workspace.code_only import code_by_marks, code_only
from completion.workspace.definitions import Definition, Imports, definitions, imports
from completion.workspace.secret_files import is_secret
from completion.workspace.similar_snippets import Snippet, most_similar, snippets_of, words_of

LARGEST_FILE = 200_000
"""Characters; larger files are data or generated."""
MOST_FILES = 2_000
"""Files that one workspace keeps; those that changed longest ago go first."""
LONGEST_HEAD = 100
"""Characters of a definition that is only mentioned."""
BLOCK_LINES = 16
"""The cursor's surroundings move in blocks of so many lines."""

_CHARACTERS_PER_TOKEN = 3.2
_HEAD = 8_000
_MOST_DEFINERS = 3
_EDITS_KEPT = 4
_EDIT_MARGIN = 2
_LONGEST_EDIT = 24
_IMPORTED, _UNUSED_SO_FAR, _NEAR, _SAME_STEM = 4.0, 1.0, 1.5, 1.0
_LEAST_SCORE = 1.5
_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")


def _code_and_definitions(text: str, language: str) -> tuple[str, tuple[Definition, ...]]:
    """Return a file without its prose, and what it defines."""
    code = code_only(text, language)
    return code, definitions(code, language)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file as the choice sees it; its text is code without prose."""

    path: str
    text: str
    definitions: tuple[Definition, ...]
    snippets: tuple[Snippet, ...]

    @classmethod
    def of(cls, path: str, text: str, parsing: Parsing = IN_PROCESS) -> IndexedFile:
        """Read a file's definitions and snippets, both without its prose.

        A file that cannot be parsed within bounds has no definitions.
        """
        language = language_of(path)
        try:
            code, found = parsing(_code_and_definitions, text, language)
        except ParseLimitError:
            code, found = code_by_marks(text, language), ()
        return cls(path, code, found, snippets_of(path, code))


@dataclass(frozen=True, slots=True)
class _Question:
    """All that a choice depends on, besides the other files: it stays the same while a line is being typed.

    Attributes:
        imported: Words of the document's imports.
        modules: Those of imports that bring all of a file within reach.
        above: The lines above the cursor's.
        suffix: The text behind the cursor.
    """

    path: str
    imported: frozenset[str]
    modules: frozenset[str]
    above: str
    suffix: str
    budget_tokens: int


@dataclass(slots=True)
class WorkspaceContext:
    """The files of one workspace, fed by updates; files of credentials are never kept."""

    parsing: Parsing = IN_PROCESS
    files: OrderedDict[str, IndexedFile] = field(default_factory=OrderedDict)
    edits: OrderedDict[str, ContextFile] = field(default_factory=OrderedDict)
    _last: tuple[_Question, tuple[ContextFile, ...]] | None = None
    _last_imports: tuple[str, str, Imports] | None = None

    def update(self, update: WorkspaceUpdate) -> None:
        """Take over what changed; the last edited region of each file is remembered."""
        touched = {*update.removed, *(changed.path for changed in update.changed)}
        for path in update.removed:
            self.files.pop(path, None)
            self.edits.pop(path, None)
        for changed in update.changed:
            if is_secret(changed.path) or len(changed.text) > LARGEST_FILE or not changed.path.isprintable():
                self.files.pop(changed.path, None)
                continue
            before = self.files.pop(changed.path, None)
            self.files[changed.path] = after = IndexedFile.of(changed.path, changed.text, self.parsing)
            if before is not None and (region := edited_region(before.text, after.text)):
                self.edits.pop(changed.path, None)
                self.edits[changed.path] = ContextFile(changed.path, region)
        while len(self.files) > MOST_FILES:
            touched.add(self.files.popitem(last=False)[0])
        while len(self.edits) > _EDITS_KEPT:
            touched.add(self.edits.popitem(last=False)[0])
        if self._last is not None and touched != {self._last[0].path}:
            self._last = None

    def choose(self, request: CompletionRequest, budget_tokens: int) -> tuple[ContextFile, ...]:
        """Pieces of other files for a request, most useful last, within a budget.

        Args:
            request: Its prefix, suffix, path and language are looked at.
            budget_tokens: About how many tokens all pieces may take; half of it at most goes to code that is only
                similar or recently edited.
        """
        brought = self._imports(request.prefix[:_HEAD], request.language)
        question = _Question(
            path=request.path,
            imported=brought.names,
            modules=brought.modules,
            above=request.prefix[: request.prefix.rfind("\n") + 1],
            suffix=request.suffix,
            budget_tokens=budget_tokens,
        )
        if self._last is None or self._last[0] != question:
            self._last = question, self._choose(_Needs.of(question), int(budget_tokens * _CHARACTERS_PER_TOKEN))
        return self._last[1]

    def _imports(self, head: str, language: str) -> Imports:
        """The imports of a document's head, read anew only when they change."""
        if self._last_imports is None or self._last_imports[:2] != (head, language):
            found = Imports(frozenset(), frozenset())
            with suppress(ParseLimitError):
                found = self.parsing(imports, head, language)
            self._last_imports = head, language, found
        return self._last_imports[2]

    def _choose(self, needs: _Needs, budget: int) -> tuple[ContextFile, ...]:
        defined = self._definitions(needs, budget)
        left = min(budget - sum(len(piece.text) for piece in defined), budget // 2)
        taken = {piece.path for piece in defined} | {needs.path}
        return (*self._beside(needs, left, taken), *defined)

    def _definitions(self, needs: _Needs, budget: int) -> list[ContextFile]:
        """One piece a file with the outlines that the document most likely needs."""
        scored: list[tuple[float, str, int, Definition]] = []
        for name, places in self._definers(needs.path, needs.words).items():
            for path, index, definition in places:
                score = needs.score(name, path, len(places))
                if score >= _LEAST_SCORE:
                    scored.append((score, path, index, definition))
        scored.sort(key=lambda row: (-row[0], row[1], row[2]))
        chosen = _Pieces(budget)
        for _, path, index, definition in scored:
            chosen.add(path, index, definition.outline)
        chosen.spare(chosen.budget // 2)
        for path in self._related(needs):
            for index, definition in enumerate(self.files[path].definitions):
                chosen.add(path, index, definition.outline.partition("\n")[0][:LONGEST_HEAD])
        return chosen.pieces()

    def _related(self, needs: _Needs) -> list[str]:
        """Files that define words of the document or are imported by name, most of them first.

        What else they define may be used, too, but for languages in which each name must be imported by itself.
        """
        scored = []
        for path, file in self.files.items():
            if needs.names_only and not needs.imports_all_of(path):
                continue
            words = sum(definition.name in needs.words for definition in file.definitions)
            score = words + (_IMPORTED if needs.imports_file(path) else 0)
            if score and path != needs.path:
                scored.append((-score, path))
        return [path for _, path in sorted(scored)]

    def _definers(self, own: str, words: frozenset[str]) -> dict[str, list[tuple[str, int, Definition]]]:
        """For each word of the document the definitions of that name in other files."""
        found: dict[str, list[tuple[str, int, Definition]]] = {}
        for path, file in self.files.items():
            if path == own:
                continue
            for index, definition in enumerate(file.definitions):
                if definition.name in words:
                    found.setdefault(definition.name, []).append((path, index, definition))
        return found

    def _beside(self, needs: _Needs, budget: int, taken: set[str]) -> list[ContextFile]:
        """Similar snippets, then recently edited regions, of files that gave no definition."""
        others = (s for path, file in self.files.items() if path not in taken for s in file.snippets)
        similar = [ContextFile(snippet.path, snippet.text) for snippet in most_similar(needs.near, others, 2)]
        edited = [piece for path, piece in self.edits.items() if path not in taken]
        kept: list[ContextFile] = []
        for piece in [*similar, *reversed(edited)]:
            size = len(piece.text) + len(piece.path) + 4
            if size <= budget and piece.path not in taken:
                taken.add(piece.path)
                budget -= size
                kept.append(piece)
        return kept[::-1]


@dataclass(slots=True)
class _Pieces:
    """Texts by file while the budget of characters lasts; the first file that got one is the most useful."""

    budget: int
    chosen: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, path: str, index: int, text: str) -> None:
        """Take a definition in, unless it is in or does not fit."""
        size = len(text) + 1 + (0 if path in self.chosen else len(path) + 4)
        if size > self.budget or not text or index in self.chosen.get(path, {}):
            return
        self.budget -= size
        self.chosen.setdefault(path, {})[index] = text

    def spare(self, characters: int) -> None:
        """Leave so much of the budget unused."""
        self.budget -= characters

    def pieces(self) -> list[ContextFile]:
        """One piece a file, its definitions in the file's order, the most useful file last."""
        return [
            ContextFile(path, "\n".join(text for _, text in sorted(texts.items())))
            for path, texts in reversed(self.chosen.items())
        ]


@dataclass(frozen=True, slots=True)
class _Needs:
    """What the document asks of other files."""

    path: str
    imported: frozenset[str]
    modules: frozenset[str]
    words: frozenset[str]
    near: frozenset[str]
    used: frozenset[str]

    @classmethod
    def of(cls, question: _Question) -> _Needs:
        imported, near = question.imported, words_of(_surroundings(question.above))
        words = imported | words_of(question.above + question.suffix)
        body = _without_imports(question.above) + question.suffix
        return cls(question.path, imported, question.modules, words, near, words_of(body))

    def imports_file(self, path: str) -> bool:
        """Whether the file's name stands in an import."""
        return _stem(path) in self.imported

    def imports_all_of(self, path: str) -> bool:
        """Whether an import brings all that the file defines within reach."""
        return _stem(path) in self.modules

    @property
    def names_only(self) -> bool:
        """Whether a file like this uses of others what it imports by name, and nothing else."""
        return self.path.endswith(_SCRIPTS)

    def score(self, name: str, path: str, definers: int) -> float:
        """How likely the definition of `name` in `path` helps here."""
        same_folder = posixpath.dirname(path) == posixpath.dirname(self.path)
        fits = self.imports_file(path)
        if definers > _MOST_DEFINERS and not fits:
            return 0.0
        score = _NEAR if name in self.near else 0.0
        if name in self.imported:
            score += _IMPORTED + (_UNUSED_SO_FAR if name not in self.used else 0.0)
        elif not fits and not same_folder:
            return 0.0
        return (score + (_SAME_STEM if fits else 0.0)) / definers


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


def _without_imports(text: str) -> str:
    words = ("import ", "from ", "use ", "#include", "} from", "export {")
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(words))


def _surroundings(above: str) -> str:
    """Of the lines above the cursor's: the block of lines that it stands in and the one before."""
    lines = above.split("\n")[:-1]
    start = max(0, (len(lines) // BLOCK_LINES - 1) * BLOCK_LINES)
    return "\n".join(lines[start : max(start + BLOCK_LINES, len(lines) // BLOCK_LINES * BLOCK_LINES)])


def edited_region(before: str, after: str) -> str:
    """The lines that an edit changed, with a margin; "" where nothing but blanks changed."""
    old, new = before.splitlines(), after.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tail = next(
        (i for i, (a, b) in enumerate(zip(reversed(old[start:]), reversed(new[start:]), strict=False)) if a != b),
        min(len(old), len(new)) - start,
    )
    changed = new[start : len(new) - tail]
    if not "".join(changed).strip() or len(changed) > _LONGEST_EDIT:
        return ""
    return "\n".join(new[max(0, start - _EDIT_MARGIN) : len(new) - tail + _EDIT_MARGIN])
