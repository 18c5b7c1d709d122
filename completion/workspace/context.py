"""Chooses the snippets of other files for a prompt: definitions of imported names, similar code and recent edits.

The choice depends on the document's imports and on coarse blocks of lines around the cursor, not on single characters.
So it stays the same during typing, and the cached part of the prompt stays valid.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from sys import getsizeof

from completion.edits import changed_span
from completion.errors import ParseLimitError
from completion.language_ids import language_of
from completion.request import CompletionRequest, ContextFile, WorkspaceFile, WorkspaceUpdate
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.code_only import code_by_marks, code_only
from completion.workspace.definitions import Definition, Imports, definitions, imports
from completion.workspace.document_words import IMPORTED_SCORE, DocumentWords, Snippet, most_similar, snippets_of
from completion.workspace.secret_files import is_secret

MAX_FILE_CHARACTERS = 200_000
"""Maximum number of characters in a file; larger files are data or generated code."""
MAX_FILES = 2_000
"""Maximum number of files in a workspace; the files that changed longest ago are removed first."""
MAX_HEAD_CHARACTERS = 100
"""Maximum number of characters of a definition's head, for definitions that are listed without an outline."""

_ALIGNMENT = 16  # bytes to which Python rounds the size of an object
_CHARACTERS_PER_TOKEN = 3.2  # of code, by which a budget in tokens becomes one in characters
_IMPORT_CHARACTERS = 8_000  # at a document's start, among which its imports are
_MAX_EDITS = 4  # edited regions that are kept, one a file
_EDIT_MARGIN = 2  # lines that are shown above and below the changed ones
_MAX_EDIT_LINES = 24  # changed lines of a region; longer ones are rather pasted than edited
_MIN_SCORE = 1.5  # of a definition that is shown; see `DocumentWords.score`
_MAX_SOURCES = 20 * MAX_FILES  # files of which a hash says how they were sent; the hashes of all take 10 MB


def _code_and_definitions(text: str, language: str) -> tuple[str, tuple[Definition, ...]]:
    """Return a file's code without prose, and its definitions."""
    code = code_only(text, language)
    return code, definitions(code, language)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the workspace, as code without prose.

    Attributes:
        size_bytes: Memory of all this.
    """

    text: str
    definitions: tuple[Definition, ...]
    snippets: tuple[Snippet, ...]
    size_bytes: int

    @classmethod
    def of(cls, path: str, text: str, parsing: Parsing = IN_PROCESS) -> IndexedFile:
        """Return the index of a file.

        A file that cannot be parsed within bounds has no definitions; no code either, if its comments take too long.
        """
        language = language_of(path)
        try:
            code, found = parsing(_code_and_definitions, text, language)
        except ParseLimitError:
            code, found = "", ()
            with suppress(ParseLimitError):
                code = parsing(code_by_marks, text, language)
        snippets = snippets_of(path, code)
        return cls(code, found, snippets, _size_bytes(code, found, snippets))


def _size_bytes(code: str, found: Sequence[Definition], snippets: Sequence[Snippet]) -> int:
    """Return the memory of a file's index, in which a word that several snippets share is one object."""
    texts = [code, *(text for each in found for text in (each.name, each.outline))]
    words = {id(word): word for each in snippets for word in each.words}
    objects = [*texts, *words.values(), *snippets, *found, *(each.words for each in snippets)]
    return sum(-(-getsizeof(each) // _ALIGNMENT) * _ALIGNMENT for each in objects)


_NO_EDIT = ContextFile("", "")


@dataclass(slots=True)
class WorkspaceContext:
    """The indexed files of one workspace, without secret files.

    Attributes:
        files: Files by path, the last changed one last.
        sources: Hash of each file as it was last sent, by path; also of those that `files` does not keep.
        edits: Last edited region of each file by path, as the file has it now, the latest last.
    """

    parsing: Parsing = IN_PROCESS
    files: OrderedDict[str, IndexedFile] = field(default_factory=OrderedDict)
    sources: dict[str, int] = field(default_factory=dict)
    edits: OrderedDict[str, ContextFile] = field(default_factory=OrderedDict)
    _last: tuple[DocumentWords, tuple[ContextFile, ...]] | None = None
    _last_imports: tuple[str, str, Imports] | None = None

    def update(self, update: WorkspaceUpdate) -> None:
        """Apply an update, and record the last edited region of each changed file."""
        touched = {*update.removed, *(changed.path for changed in update.changed)}
        for path in update.removed:
            self.files.pop(path, None)
            self.edits.pop(path, None)
            self.sources.pop(path, None)
        for changed in update.changed:
            before, code = self.files.pop(changed.path, None), ""
            self.sources.pop(changed.path, None)  # until it is indexed, which may be cancelled
            if changed.path.isprintable() and len(changed.text) <= MAX_FILE_CHARACTERS and not is_secret(changed.path):
                self.files[changed.path] = after = IndexedFile.of(changed.path, changed.text, self.parsing)
                code = after.text
            self.sources[changed.path] = hash(changed)
            region = edited_region(before.text, code) if before is not None else ""
            if region or self.edits.get(changed.path, _NO_EDIT).text not in code:
                self.edits.pop(changed.path, None)
            if region:
                self.edits[changed.path] = ContextFile(changed.path, region)
        while len(self.files) > MAX_FILES:
            path, _ = self.files.popitem(last=False)
            self.edits.pop(path, None)
            touched.add(path)
        while len(self.edits) > _MAX_EDITS:
            touched.add(self.edits.popitem(last=False)[0])
        while len(self.sources) > _MAX_SOURCES:
            del self.sources[next(iter(self.sources))]
        if self._last is not None and not touched <= {self._last[0].path}:
            self._last = None

    def has(self, file: WorkspaceFile) -> bool:
        """Return whether a file was last sent as it is now. Of too many files, the oldest are unknown."""
        return self.sources.get(file.path) == hash(file)

    def choose(self, request: CompletionRequest, budget_tokens: int) -> tuple[ContextFile, ...]:
        """Return snippets of other files for a request, by its prefix, suffix, path and language; the most useful last.

        All have about `budget_tokens` tokens; similar code and recent edits get at most half of it.
        """
        document = DocumentWords(
            path=request.path,
            imports=self._imports(request.prefix[:_IMPORT_CHARACTERS], request.language),
            above=request.prefix[: request.prefix.rfind("\n") + 1],
            suffix=request.suffix,
            budget_tokens=budget_tokens,
        )
        if self._last is None or self._last[0] != document:
            self._last = document, self._choose(document, int(budget_tokens * _CHARACTERS_PER_TOKEN))
        return self._last[1]

    def _imports(self, head: str, language: str) -> Imports:
        """Return the imports in a document's head; the last result is cached."""
        if self._last_imports is None or self._last_imports[:2] != (head, language):
            found = Imports()
            with suppress(ParseLimitError):
                found = self.parsing(imports, head, language)
            self._last_imports = head, language, found
        return self._last_imports[2]

    def _choose(self, document: DocumentWords, budget: int) -> tuple[ContextFile, ...]:
        defined = self._definitions(document, budget)
        remaining = min(budget - sum(len(piece.text) for piece in defined), budget // 2)
        taken = {piece.path for piece in defined} | {document.path}
        return (*self._similar_and_edited(document, remaining, taken), *defined)

    def _definitions(self, document: DocumentWords, budget: int) -> list[ContextFile]:
        """Return one snippet for each file with the outlines that the document most likely needs."""
        scored: list[tuple[float, str, int, Definition]] = []
        for name, defining in self._definers(document.path, document.words).items():
            for path, index, definition in defining:
                score = document.score(name, path, len(defining))
                if score >= _MIN_SCORE:
                    scored.append((score, path, index, definition))
        scored.sort(key=lambda row: (-row[0], row[1], row[2]))
        chosen = _ChosenOutlines(budget)
        for _, path, index, definition in scored:
            chosen.add(path, index, definition.outline, definition.outline)
        chosen.budget -= chosen.budget // 2
        for path in self._related(document):
            for index, definition in enumerate(self.files[path].definitions):
                head = definition.outline.partition("\n")[0][:MAX_HEAD_CHARACTERS]
                chosen.add(path, index, definition.outline, head)
        return chosen.pieces()

    def _related(self, document: DocumentWords) -> list[str]:
        """Return the files that define words of the document or are imported by name, the best first.

        The document can use their other definitions too, except in languages that import each name separately.
        """
        scored = []
        for path, file in self.files.items():
            if document.names_only and not document.imports_all_of(path):
                continue
            words = sum(definition.name in document.words for definition in file.definitions)
            score = words + (IMPORTED_SCORE if document.imports_file(path) else 0)
            if score and path != document.path:
                scored.append((-score, path))
        return [path for _, path in sorted(scored)]

    def _definers(self, own: str, words: frozenset[str]) -> dict[str, list[tuple[str, int, Definition]]]:
        """Return the definitions in other files for each word of the document."""
        found: dict[str, list[tuple[str, int, Definition]]] = {}
        for path, file in self.files.items():
            if path == own:
                continue
            for index, definition in enumerate(file.definitions):
                if definition.name in words:
                    found.setdefault(definition.name, []).append((path, index, definition))
        return found

    def _similar_and_edited(self, document: DocumentWords, budget: int, taken: set[str]) -> list[ContextFile]:
        """Return similar snippets and recently edited regions of files without a chosen definition, the best last."""
        others = (s for path, file in self.files.items() if path not in taken for s in file.snippets)
        similar = [
            ContextFile(snippet.path, snippet.text_in(self.files[snippet.path].text))
            for snippet in most_similar(document.near, others, 2)
        ]
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
class _ChosenOutlines:
    """The chosen outlines by file, within a budget of characters. The file that was added first is the most useful.

    Attributes:
        budget: Characters remaining.
        chosen: The text shown for each outline, and the index of its definition in the file, by path and by outline.
    """

    budget: int
    chosen: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)

    def add(self, path: str, index: int, outline: str, text: str) -> None:
        """Add the text for an outline, unless it does not fit or the outline is present, perhaps by another name."""
        size = len(text) + 1 + (0 if path in self.chosen else len(path) + 4)
        if size > self.budget or not text or outline in self.chosen.get(path, {}):
            return
        self.budget -= size
        self.chosen.setdefault(path, {})[outline] = index, text

    def pieces(self) -> list[ContextFile]:
        """Return one snippet for each file, with definitions in the file's order; the most useful file is last."""
        return [
            ContextFile(path, "\n".join(text for _, text in sorted(texts.values())))
            for path, texts in reversed(self.chosen.items())
        ]


def edited_region(before: str, after: str) -> str:
    """Return the lines that an edit changed, with a margin; "" if only blanks changed or too many lines did."""
    old, new = before.splitlines(), after.splitlines()
    start, _, end = changed_span(old, new)
    changed = new[start:end]
    if not "".join(changed).strip() or len(changed) > _MAX_EDIT_LINES:
        return ""
    return "\n".join(new[max(0, start - _EDIT_MARGIN) : end + _EDIT_MARGIN])
