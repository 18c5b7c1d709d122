"""Builds the engine's request for a position in a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath

from completion.instruct import edit_request
from completion.language_ids import ending_of
from completion.request import CompletionRequest, Layout
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.text_lines import Place
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.settings.table import Settings
from lsp_server.wire.document_uri import path_of

MAX_PREFIX_CHARACTERS = 200_000
"""Maximum length of the prefix in code points: longer than a local model's prompt. The engine cuts it to its budget."""
MAX_SUFFIX_CHARACTERS = 100_000
"""Maximum length of the suffix in code points, with the same reason."""


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """Builds requests from the open documents and workspace folders.

    Attributes:
        may_share: Returns whether the text of a file, by its URI, may go to the model server beside a local model.
    """

    documents: DocumentStore
    folders: WorkspaceFolders
    may_share: Callable[[str], bool] = lambda _uri: False

    def build(
        self, document: Document, place: Place, settings: Settings, *, suggestions: int = 1, invoked: bool = False
    ) -> CompletionRequest:
        """Return the engine's request for a completion at a position."""
        before = document.lines.before(place, MAX_PREFIX_CHARACTERS)
        above = self.documents.text_above(document, MAX_PREFIX_CHARACTERS - len(before))
        path, repository, workspace = self._where(document)
        return CompletionRequest(
            prefix=above + before,
            suffix=document.lines.after(place, MAX_SUFFIX_CHARACTERS),
            language=document.language,
            path=path,
            repository=repository,
            document=document.uri,
            workspace=workspace,
            history=document.edits.history(place.line, document.lines),
            deleted_here=document.edits.has_deleted(place.line),
            names=document.names_at(place) if settings.known_names else (),
            mode=settings.mode,
            suggestions=suggestions,
            alternatives=settings.alternatives,
            max_tokens=settings.max_tokens,
            max_lines=0 if invoked else settings.automatic_lines,
            time_budget_ms=settings.time_budget_ms,
            layout=settings.layout if isinstance(settings.layout, Layout) else None,
            cache=settings.cache,
            grammar=settings.grammar,
            drafting=settings.drafting,
            invoked=invoked,
            in_comments=invoked or settings.in_comments,
            in_strings=invoked or settings.in_strings,
            remote=self.may_share(document.home),
            tells_greedy=True,
        )

    def build_edit(self, document: Document, code: str, instruction: str, settings: Settings) -> CompletionRequest:
        """Return the engine's request for an edited code of a document."""
        _, _, workspace = self._where(document)
        request = edit_request(code, instruction, document.language)
        may_share = self.may_share(document.home)
        return replace(request, workspace=workspace, drafting=settings.drafting, remote=may_share)

    def path_of(self, document: Document) -> str:
        """Return a document's path in the workspace folder."""
        return self._where(document)[0]

    def _where(self, document: Document) -> tuple[str, str, str]:
        """Return a document's path in the workspace folder, the folder's name, and its key.

        The path of a notebook or of an unsaved document ends as those of its language do.
        """
        uri = document.home
        path, ending = path_of(uri), ending_of(document.language)
        if path is None:
            name = PurePath(PurePath(uri.rpartition(":")[2].partition("#")[0]).name)
            return str(name.with_suffix(ending)) if ending and name.name else name.name, "", ""
        folder = self.folders.home_of(path)
        own = path.relative_to(folder.path)
        return (own.with_suffix(ending) if document.notebook and ending else own).as_posix(), folder.name, folder.uri
