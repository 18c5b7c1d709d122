"""An edit of a selection by an instruction: what the model is asked, and the text that replaces the selection."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from completion.errors import DraftlineError, PromptTooLongError
from completion.instruct import edited_code, fence_of
from completion.request import CompletionRequest, StopReason
from lsp_server.documents.documents import Document, DocumentStore
from lsp_server.documents.text_lines import Place
from lsp_server.empty_reason import EmptyReason
from lsp_server.messages import EditMessage
from lsp_server.suggesting.generation import CompletionSource
from lsp_server.suggesting.request_policy import RequestPolicy

TOO_LONG = "The edited text does not fit the model's context. Select fewer lines, or ask for less."
ENGINE_ENDED = "The engine ended before the edit was complete. Try again."
_BLANKS = " \t\n"
_INDENTATION = re.compile(r"^[ \t]*(?=\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """The text that replaces the selection, or the sentence that says why there is none."""

    text: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    r"""The code of a selection as the model sees it, and what is taken off it.

    Attributes:
        code: The lines without the indentation that all of them share and without the last line end; lines end at \n.
        indentation: That indentation.
        above: Blank lines before the code, which a model would leave out.
        below: The last line end, "" if the selection has none, and the blank lines after it.
        line_end: The selection's line end, the document's if it has none.
    """

    code: str
    indentation: str
    above: str
    below: str
    line_end: str

    @classmethod
    def of(cls, text: str, line_end: str = "\n") -> Selection:
        """Return the selection with a text, in a document with a line end.

        Of a text that is all blank, only the last line end is taken off.
        """
        plain = re.sub(r"\r\n?", "\n", text)
        first, last = len(plain) - len(plain.lstrip(_BLANKS)), len(plain.rstrip(_BLANKS))
        start = plain.rfind("\n", 0, first) + 1 if last else 0
        end = plain.find("\n", last) if last else len(plain.removesuffix("\n"))
        end = len(plain) if end < 0 else end
        code = plain[start:end]
        shared = os.path.commonprefix(_INDENTATION.findall(code))  # noqa: RUF071 -- characters are meant, not folders
        if "\n" in text:
            line_end = "\r\n" if "\r\n" in text else "\n"
        return cls(re.sub(f"(?m)^{shared}", "", code), shared, plain[:start], plain[end:], line_end)

    def restored(self, code: str, *, is_whole: bool = True) -> str:
        """Return an edited code with what was taken off; what is below it only if it is whole."""
        indented = _INDENTATION.sub(lambda found: self.indentation + found[0], code)
        return (self.above + indented + (self.below if is_whole else "")).replace("\n", self.line_end)


@dataclass(frozen=True, slots=True)
class SelectionEditor:
    """Edits selections of open documents.

    Attributes:
        source: Returns the engine, None while it is not ready.
        build_request: Returns the engine's request for a document, a code and an instruction.
        on_text: Called with an edit's id and its text so far, whenever that grows.
    """

    documents: DocumentStore
    policy: RequestPolicy
    source: Callable[[], CompletionSource | None]
    build_request: Callable[[Document, str, str], CompletionRequest]
    on_text: Callable[[str, str], None]

    async def edit(self, wanted: EditMessage) -> EditOutcome:
        """Return the edited text. Cancelling the task cancels the generation, and so does a change of the document."""
        document = self.documents.get(wanted.uri)
        if document is None:
            return EditOutcome(reason=EmptyReason.NOT_OPEN.sentence)
        await self.policy.consult(document)
        start, end = (document.place(each) for each in (wanted.start, wanted.end))
        refusal = self.policy.refusal(document, start)
        source = self.source()
        if refusal is None and document.version != wanted.version:
            refusal = EmptyReason.OUTDATED
        if refusal is not None or source is None:
            return EditOutcome(reason=(refusal or EmptyReason.NOT_READY).sentence)
        try:
            return await self._generate(source, document, (start, end), wanted)
        except DraftlineError as error:
            return EditOutcome(reason=TOO_LONG if error.code == PromptTooLongError.code else str(error))

    async def _generate(
        self, source: CompletionSource, document: Document, range_: tuple[Place, Place], wanted: EditMessage
    ) -> EditOutcome:
        selection = Selection.of(document.lines.between(*range_), document.line_end)
        request = self.build_request(document, selection.code, wanted.instruction)
        fence, code, is_whole, stop = fence_of(selection.code, document.language), "", False, None
        async with aclosing(source.complete(request)) as events:
            async for event in events:
                if document.version != wanted.version:
                    return EditOutcome(reason=EmptyReason.OUTDATED.sentence)
                before, stop = code, event.stop_reason
                code, is_whole = edited_code(event.suggestions[0].text if event.suggestions else "", fence)
                if is_whole or event.done:
                    break
                if len(code) > len(before):
                    self.on_text(wanted.id, selection.restored(code, is_whole=False))
        if is_whole or stop is StopReason.STOP_TOKEN:
            return EditOutcome(selection.restored(code))
        return EditOutcome(reason=TOO_LONG if stop else ENGINE_ENDED)
