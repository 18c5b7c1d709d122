"""The life of a request, from the editor's text to the last event; `Completer.complete` reads top to bottom."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from completion.alternatives.further_suggestions import alternatives, ranked
from completion.alternatives.likeliest_line import likeliest_line
from completion.cancellation import CancelToken
from completion.decoding.attempt import Attempt
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.ending.context import Context
from completion.ending.decision import forget_texts
from completion.ending.rule import DropReason
from completion.grammar.grammar import Grammars
from completion.memory import Held, MemoryPart
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.line_endings import normalised, restored
from completion.prompt.pace import SHORT_BUDGET, PromptBudget
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import WARM_UP, Closing, CompletionEvent, CompletionRequest, Suggestion, WorkspaceUpdate
from completion.syntax.brackets import Literal, enclosing_literal
from completion.syntax.embedded import embedded
from completion.syntax.parsing import Parsing
from completion.workspace.workspaces import Workspaces
from drafting.verifier import MODEL

_REPLACED = {DropReason.REPEATS_FOLLOWING, DropReason.UNSAFE}
"""Reasons to drop a text for which the next likely branch that passes is shown, also without a manual request."""

_LINE_ENDINGS = {DropReason.EMPTY: "\n", DropReason.LAST_COMMA: ",\n"}
"""By what became of the text at a line's end, what is before the next line, after which the comma is not the last."""


class Completer(ABC):
    """Completes requests one at a time, on the caller's thread; a subclass says where the tokens come from.

    Attributes:
        grammars: The grammars of its documents.
    """

    def __init__(
        self, planner: PromptPlanner, tokenizer: CodeTokenizer, workspaces: Workspaces, parsing: Parsing
    ) -> None:
        self.grammars = Grammars()
        self._planner = planner
        self._tokenizer = tokenizer
        self._workspaces = workspaces
        self._parsing = parsing

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the suggestions for a request while they grow; the last event has `done`.

        Between two events, the engine may serve requests of other documents.

        Raises:
            CancelledError: After `cancel`, within one layer of a step or one chunk of the prompt; of requests that run
                together, after the pass that they share, or the prompt of another.
            PromptTooLongError: The prompt does not fit the KV session.
            ConversationError: The model's chat template cannot lay out the conversation.
        """
        with closing(self._events(request, cancel, RunRecord(time.perf_counter))) as events:
            for event in events:
                yield event
                self._parsing.watch(cancel, request.document)

    def _events(
        self, request: CompletionRequest, cancel: CancelToken, record: RunRecord, *, below: bool = True
    ) -> Generator[CompletionEvent]:
        if unwanted := self._unwanted_at(request):
            yield CompletionEvent((), done=True, dropped=unwanted)
            return
        task = self._start(request, cancel, record)
        first = task.first_attempt()
        try:
            for visible in task.stream(first, cancel):
                if visible:
                    record.text_shown()
                yield _growing(first, visible, request)
            chosen = likeliest_line(task, first, cancel)
            outcome = task.finish(chosen)
            is_wanted = below and (request.next_line or request.invoked)
            if is_wanted and (ending := _line_ending(outcome, task.context)):
                yield from self._on_next_line(request, ending, cancel, record)
                return
            suggestions = [outcome] if isinstance(outcome, Suggestion) else []
            record.text_shown()
            is_replaced = isinstance(outcome, DropReason) and outcome in _REPLACED
            if len(suggestions) < request.suggestions and (suggestions or request.invoked or is_replaced):
                if suggestions:
                    yield _event(suggestions, request, task)
                with closing(alternatives(task, first, suggestions, cancel)) as further:
                    for alternative in further:
                        suggestions = ranked(suggestions, alternative)
                        yield _event(suggestions, request, task)
        finally:
            if first.stop is None:  # cancelled, or closed by the caller: its tokens leave the cache
                task.release()
        yield replace(
            _event(suggestions, request, task),
            done=True,
            stop_reason=chosen.stop.reason if chosen.stop else None,
            dropped=outcome.value if isinstance(outcome, DropReason) and not suggestions else "",
        )

    def _on_next_line(
        self, request: CompletionRequest, ending: str, cancel: CancelToken, record: RunRecord
    ) -> Generator[CompletionEvent]:
        """Yield the suggestions for the line after the cursor's, with what ends that line before them.

        A manual request that gets none there gets the alternatives of its own line.
        """
        above = restored(Suggestion(ending), request)
        below = replace(request, prefix=request.prefix + above.text, names=(), next_line=False)
        for event in self._events(below, cancel, record, below=False):
            if event.done and not event.suggestions and request.invoked:
                yield from self._events(request, cancel, record, below=False)
                return
            suggestions = tuple(joined(above, each) for each in event.suggestions)
            yield replace(event, suggestions=suggestions, greedy=event.greedy and above.text + event.greedy)

    def update_workspace(self, update: WorkspaceUpdate, cancel: CancelToken) -> Generator[None]:
        """Update the drafters' index of a workspace, and the files that its snippets come from, piece by piece.

        Between two pieces, the engine may serve requests.

        Raises:
            CancelledError: Within one piece after `cancel`.
        """
        self._parsing.watch(cancel)
        for _ in self._workspaces.update(update):
            yield
            cancel.raise_if_cancelled()
            self._parsing.watch(cancel)

    def held(self) -> Mapping[MemoryPart, Held]:
        """Return what the engine holds in memory, by part. May be called on any thread, while a request runs."""
        return {
            MemoryPart.WORKSPACES: Held(object_bytes=self._workspaces.files_bytes),
            MemoryPart.GRAMMARS: Held(object_bytes=self.grammars.size_bytes),
        }

    def forget(self, closing: Closing) -> None:
        """Free the memory of documents and workspaces that no client uses any more, and of their grammars.

        With the last document, what this process has kept of texts goes, too; the parser's keeps the last ones.
        """
        for workspace in closing.workspaces:
            self._workspaces.close(workspace)
        languages = self._close_documents((*closing.documents, WARM_UP))
        self.grammars.keep(languages)
        if not languages:
            self._workspaces.close("")  # what drafters learned outside of workspaces
            self._planner.forget_texts()
            self._tokenizer.forget_texts()
            forget_texts()

    @abstractmethod
    def _close_documents(self, documents: Iterable[str]) -> set[str]:
        """Forget documents; return the languages of the others, empty if there are none."""

    @abstractmethod
    def _start(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> Task:
        """Plan the prompt and open the grammar.

        Raises:
            CancelledError: Within one chunk of the prompt after `cancel`.
        """

    def _unwanted_at(self, request: CompletionRequest) -> str:
        """Return "in_comment" or "in_string" if the cursor is where the request wants no suggestion, "" otherwise."""
        if request.in_comments and request.in_strings:
            return ""
        unwanted = {Literal.COMMENT: not request.in_comments, Literal.STRING: not request.in_strings}
        inside = embedded(request)
        found = enclosing_literal(inside.prefix, inside.language)
        return found.value if found and unwanted[found] else ""

    def _laid_out(self, request: CompletionRequest, budget: PromptBudget) -> tuple[CompletionRequest, Prompt]:
        """Return the request with plain line feeds and snippets, and its prompt."""
        planned = self._with_snippets(normalised(request), budget.context_tokens)
        return planned, self._planner.plan(planned, budget)

    def _tokens_with(self, request: CompletionRequest, budget: PromptBudget) -> int:
        """Return the length of a request's prompt."""
        return len(self._laid_out(request, budget)[1].tokens)

    @staticmethod
    def _inside(planned: CompletionRequest, prompt: Prompt) -> CompletionRequest:
        """Return the request in the language at the cursor; in the document's where the healed run is of both."""
        inside = embedded(planned)
        return inside if inside.prefix.endswith(prompt.healed.run) else planned

    def _shortened(self, planned: CompletionRequest) -> Prompt:
        """Return a prompt that is computed quickly, for a request that would wait too long for its own."""
        return self._planner.plan(replace(planned, context=(), outline=False), SHORT_BUDGET)

    def _with_snippets(self, request: CompletionRequest, budget_tokens: int) -> CompletionRequest:
        """Return the request with snippets of other files of its workspace, unless it has some or is a conversation.

        Its workspace is used in either case, so that it is not the one that is closed to free memory.
        """
        if request.messages:
            self._workspaces.use(request.workspace)
            return request
        snippets = self._workspaces.snippets(request, budget_tokens)
        return request if request.context else replace(request, context=snippets)


def _growing(attempt: Attempt, visible: str, request: CompletionRequest) -> CompletionEvent:
    """Return an event of a first suggestion of which this much is visible."""
    suggestions = (restored(attempt.growing(visible), request),) if visible else ()
    return CompletionEvent(suggestions, greedy=attempt.output.whole() if request.tells_greedy else "")


def _line_ending(outcome: Suggestion | DropReason, context: Context) -> str:
    """Return what ends the cursor's line if an attempt at the end of a line with text adds nothing to it; "" if not."""
    if isinstance(outcome, Suggestion) or not context.line_before.strip() or context.line_after:
        return ""
    return _LINE_ENDINGS.get(outcome, "")


def joined(start: Suggestion, more: Suggestion) -> Suggestion:
    """Return a suggestion that goes on with another one; a start without tokens is certain."""
    known = start.ends[-1][1] if start.ends else 0.0
    later = tuple((len(start.text) + end, known + log_probability) for end, log_probability in more.ends)
    return replace(
        more,
        text=start.text + more.text,
        ends=start.ends + later if start.ends or not start.token_log_probabilities else (),
        replace_after=start.replace_after + more.replace_after,
        log_probability=start.log_probability + more.log_probability,
        token_log_probabilities=start.token_log_probabilities + more.token_log_probabilities,
        pieces=((MODEL, start.text), *more.pieces) if start.text else more.pieces,
        line=more.line and len(start.text) + more.line,
    )


def _event(suggestions: Sequence[Suggestion], request: CompletionRequest, task: Task) -> CompletionEvent:
    """Return an event of complete suggestions with the document's own line ends."""
    finished = tuple(restored(each, request) for each in suggestions)
    return CompletionEvent(finished, statistics=task.record.statistics(task.grammar), whole=len(finished))
