"""The life of a request, from the editor's text to the last event; `Completer.complete` reads top to bottom."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace

from completion.alternatives.further_suggestions import alternatives, ranked
from completion.alternatives.likeliest_line import likeliest_line
from completion.cache.kv_session import KVSession, KVSessions, SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.drafting_setup import keep_calibration, make_drafters
from completion.decoding.finishing import open_grammar
from completion.decoding.local_task import LocalTask
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.edits import NextEditRequest, NextEdits
from completion.errors import ParseLimitError
from completion.grammar.grammar import unload_grammars
from completion.model.loading import LoadedModel
from completion.next_edit.finder import next_edits
from completion.next_edit.gate import Gate
from completion.next_edit.judge import Judge
from completion.postprocess import Context, Dropped, DropReason
from completion.prompt.chat_template import ChatTemplate
from completion.prompt.fim_format import detect_format
from completion.prompt.line_endings import normalised, restored
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S, SHORT_BUDGET, PromptBudget, PromptPace
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import (
    CacheMode,
    Closing,
    CompletionEvent,
    CompletionRequest,
    ContextFile,
    Suggestion,
    WorkspaceUpdate,
)
from completion.stopping.mode import cursor_context
from completion.syntax.enclosing_literal import Literal, enclosing_literal
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.workspace.workspaces import BUDGET_BYTES, Workspaces
from drafting.session import Drafters
from drafting.verifier import MODEL

FIRST_STEP_TOKENS = 8
"""Maximum number of new tokens at a prompt's end that the first decoding step computes itself."""

_NEXT_EDIT = "\0next edit"  # end of the key of a document's second KV session


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of an engine.

    Attributes:
        budget: Maximum number of tokens of each part of a prompt.
        full_prompt_s: Maximum time for a prompt of which nothing is cached, in seconds. On a slower machine the budget
            shrinks.
        cold_prompt_s: Maximum time that a request waits for a prompt that is mostly uncached, in seconds. If the full
            prompt would take longer, the request gets a short one; `Engine.prepare` computes the full one.
        sessions: Bounds of the KV sessions.
        workspace_bytes: Maximum memory of all workspaces.
        max_nodes: Maximum number of nodes of a draft tree; each step decides how many are worth their time.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    full_prompt_s: float = math.inf
    cold_prompt_s: float = math.inf
    sessions: SessionSettings = field(default_factory=SessionSettings)
    workspace_bytes: int = BUDGET_BYTES
    max_nodes: int = 16


def product_settings(room_bytes: int = 0, workspace_bytes: int = 0) -> EngineSettings:
    """Return the settings of the engine host, which bounds prompts by the machine's measured speed.

    Args:
        room_bytes: Memory for the KV sessions of several users, no less than the default; 0 for one user.
        workspace_bytes: Memory for the workspaces, no less than the default.
    """
    sessions = SessionSettings(budget_bytes=max(room_bytes, SessionSettings().budget_bytes), shared=room_bytes > 0)
    return EngineSettings(
        full_prompt_s=FULL_PROMPT_S,
        cold_prompt_s=COLD_PROMPT_S,
        sessions=sessions,
        workspace_bytes=max(workspace_bytes, BUDGET_BYTES),
    )


class Completer(ABC):
    """Completes requests one at a time, on the caller's thread; a subclass says where the tokens come from."""

    def __init__(self, planner: PromptPlanner, workspaces: Workspaces, parsing: Parsing) -> None:
        self._planner = planner
        self._workspaces = workspaces
        self._parsing = parsing

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the suggestions for a request while they grow; the last event has `done`.

        Between two events, the engine may serve requests of other documents.

        Raises:
            CancelledError: After `cancel`, within one layer of a step or one chunk of the prompt.
            PromptTooLongError: The prompt does not fit the KV session.
            ConversationError: The model's chat template cannot lay out the conversation.
        """
        with closing(self._events(request, cancel)) as events:
            for event in events:
                yield event
                self._parsing.watch(cancel, request.document)

    def _events(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        if unwanted := self._unwanted_at(request, cancel):
            yield CompletionEvent((), done=True, dropped=unwanted)
            return
        record = RunRecord(time.perf_counter)
        task = self._start(request, cancel, record)
        first = task.first_attempt()
        try:
            for visible in task.stream(first, cancel):
                record.text_shown()
                yield CompletionEvent((restored(first.growing(visible), request),))
            chosen = likeliest_line(task, first, cancel)
            outcome = task.finish(chosen)
            if request.next_line and _has_ended_line(outcome, task.context):
                yield from self._on_next_line(request, cancel)
                return
            suggestions = [outcome] if isinstance(outcome, Suggestion) else []
            record.first_finished(task.grammar)
            if len(suggestions) < request.suggestions and (suggestions or request.invoked):
                yield _event(suggestions, request, record)
                with closing(alternatives(task, first, suggestions, cancel)) as further:
                    for alternative in further:
                        suggestions = ranked(suggestions, alternative)
                        yield _event(suggestions, request, record)
        finally:
            if first.stop is None:  # cancelled, or closed by the caller: its tokens leave the cache
                task.release()
        record.grammar_done(task.grammar)
        yield replace(
            _event(suggestions, request, record),
            done=True,
            stop_reason=chosen.stop.reason if chosen.stop else None,
            dropped=outcome.reason.value if isinstance(outcome, Dropped) and not suggestions else "",
        )

    def _on_next_line(self, request: CompletionRequest, cancel: CancelToken) -> Generator[CompletionEvent]:
        """Yield the suggestions for the line after the cursor's, with the line break before them."""
        line_break = restored(Suggestion("\n"), request).text
        below = replace(request, prefix=request.prefix + line_break, next_line=False)
        for event in self._events(below, cancel):
            yield replace(event, suggestions=tuple(_after(line_break, each) for each in event.suggestions))

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

    @abstractmethod
    def _start(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> Task:
        """Plan the prompt and open the grammar.

        Raises:
            CancelledError: Within one chunk of the prompt after `cancel`.
        """

    def _unwanted_at(self, request: CompletionRequest, cancel: CancelToken) -> str:
        """Return "in_comment" or "in_string" if the cursor is where the request wants no suggestion, "" otherwise.

        Raises:
            CancelledError: While the document is parsed.
        """
        if request.in_comments and request.in_strings:
            return ""
        self._parsing.watch(cancel, request.document)
        unwanted = {Literal.COMMENT: not request.in_comments, Literal.STRING: not request.in_strings}
        with suppress(ParseLimitError):
            found = self._parsing(enclosing_literal, request.prefix, request.suffix, request.language)
            return found.value if found and unwanted[found] else ""
        return ""

    def _with_snippets(self, request: CompletionRequest, budget_tokens: int) -> CompletionRequest:
        """Return the request with snippets of other files of its workspace, unless it has some or is a conversation."""
        if request.messages:
            return request
        snippets = self._workspaces.snippets(request, budget_tokens)
        return request if request.context else replace(request, context=snippets)


class Engine(Completer):
    """Completes requests with the local model."""

    def __init__(
        self,
        loaded: LoadedModel,
        settings: EngineSettings | None = None,
        drafters: Drafters | None = None,
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        settings = settings or EngineSettings()
        self._model = loaded.model
        self._tokenizer = loaded.tokenizer
        fim_format = detect_format(loaded.tokenizer.special, loaded.name)
        max_tokens = settings.sessions.max_prompt_tokens(loaded.model.shape.max_positions)
        chat = ChatTemplate(loaded.folder, loaded.tokenizer.special)
        planner = PromptPlanner(loaded.tokenizer, fim_format, settings.budget, max_tokens, parsing, chat)
        self._max_nodes = settings.max_nodes
        self._judge, self._gate = Judge(loaded.model, loaded.tokenizer, planner), Gate.shipped()
        self._pace = PromptPace(settings.budget, settings.full_prompt_s)
        self._cold_prompt_s = settings.cold_prompt_s
        self._sessions = KVSessions(loaded.model, settings.sessions, self._pace.note)
        self._drafters = drafters or make_drafters(loaded, settings.max_nodes)
        self._digest = loaded.digest
        super().__init__(
            planner, Workspaces(self._drafters, loaded.tokenizer, settings.workspace_bytes, parsing), parsing
        )

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Compute the cache for a request that may follow, make it exact, and load the grammar of its language.

        Raises:
            CancelledError: What is computed until then stays in the cache.
        """
        self._parsing.watch(cancel, request.document)
        planned, prompt, session = self._plan(request)
        open_grammar(planned, prompt.healed, self._parsing)
        session.prepare(prompt, request.cache, cancel)
        session.refresh(cancel)

    def snippets(self, request: CompletionRequest, cancel: CancelToken) -> tuple[ContextFile, ...]:
        """Return the snippets of a request's prompt, for an engine that has no workspaces of its own.

        Raises:
            CancelledError: While the document is parsed.
        """
        self._parsing.watch(cancel, request.document)
        budget = self._sessions.open(request.document).budget or self._pace.budget()
        return self._with_snippets(normalised(request), budget.context_tokens).context

    def next_edits(self, request: NextEditRequest, cancel: CancelToken) -> NextEdits:
        """Return what the user's last edits imply for the rest of the document; nothing if it cannot be parsed.

        The judgement has a KV session of its own, so it leaves the cache of the document's completions as it is.

        Raises:
            CancelledError: Within one layer of a pass after `cancel`.
        """
        own = request.document + _NEXT_EDIT  # a bound that is exceeded here refuses no completion its grammar
        self._parsing.watch(cancel, own)
        session = self._sessions.open(own, in_background=True)
        with suppress(ParseLimitError):
            return NextEdits(next_edits(request, self._judge, self._gate, session, self._parsing, cancel))
        return NextEdits()

    def forget(self, closing: Closing) -> None:
        """Free the memory of documents and workspaces that no client uses any more, and of their grammars."""
        for document in closing.documents:
            self._sessions.close(document)
            self._sessions.close(document + _NEXT_EDIT)
        for workspace in closing.workspaces:
            self._workspaces.close(workspace)
        unload_grammars(self._sessions.languages())

    def close(self) -> None:
        """Save how often each kind of guess was right, and end the parser's process."""
        self._parsing.close()
        keep_calibration(self._drafters, self._digest)

    def _start(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> LocalTask:
        """Plan the prompt, compute what the cache lacks of it, and open the grammar.

        Raises:
            CancelledError: Within one chunk of the prompt after `cancel`.
        """
        self._parsing.watch(cancel, request.document)
        planned, prompt, session = self._plan(request)
        if self._is_cold(prompt, planned.cache, session):
            prompt = self._planner.plan(replace(planned, context=(), outline=False), SHORT_BUDGET)
        room = session.capacity - len(prompt.tokens) - self._max_nodes
        planned = replace(planned, max_tokens=min(planned.max_tokens, room))
        context = cursor_context(planned, self._parsing)
        plan = session.prepare(prompt, planned.cache, cancel, FIRST_STEP_TOKENS)
        record.prompt_ready(prompt, plan, session.longest_chunk_ms)
        grammar = open_grammar(planned, prompt.healed, self._parsing)
        return LocalTask(
            self._tokenizer, planned, context, prompt, grammar, record, self._model, session, self._drafters
        )

    def _plan(self, request: CompletionRequest) -> tuple[CompletionRequest, Prompt, KVSession]:
        """Return the request with plain line feeds and snippets, its prompt, and the document's KV session.

        A session keeps its prompt budget while it holds tokens, because another budget would shift what is cached. It
        gets a smaller one if the memory has no room for such prompts of all documents in which somebody types.
        """
        session = self._sessions.open(request.document)
        session.language = request.language
        if session.budget is None or not session.tokens:
            session.budget = self._pace.budget()
        planned, prompt = self._laid_out(request, session.budget)
        if not session.tokens and len(prompt.tokens) > (most_tokens := self._sessions.tokens_each()):
            session.budget = self._pace.budget(most_tokens)
            planned, prompt = self._laid_out(request, session.budget)
        return planned, prompt, session

    def _laid_out(self, request: CompletionRequest, budget: PromptBudget) -> tuple[CompletionRequest, Prompt]:
        planned = self._with_snippets(normalised(request), budget.context_tokens)
        return planned, self._planner.plan(planned, budget)

    def _is_cold(self, prompt: Prompt, cache_mode: CacheMode, session: KVSession) -> bool:
        """Return whether a prompt is mostly uncached, and computing it takes longer than a request may wait.

        Only the mode PIE gets short prompts, because growing from one to the full prompt leaves the cache inexact.
        """
        if cache_mode is not CacheMode.PIE or self._pace.seconds(len(prompt.tokens)) <= self._cold_prompt_s:
            return False
        computed = session.plan(prompt, cache_mode).computed
        return 2 * computed > len(prompt.tokens) and self._pace.seconds(computed) > self._cold_prompt_s


def _has_ended_line(outcome: Suggestion | Dropped, context: Context) -> bool:
    """Return whether an attempt with the cursor at the end of a line that has text adds nothing to the line."""
    is_empty = isinstance(outcome, Dropped) and outcome.reason is DropReason.EMPTY
    return is_empty and bool(context.line_before.strip()) and not context.line_after


def _after(line_break: str, below: Suggestion) -> Suggestion:
    """Return a suggestion for the next line as one for the end of this line."""
    ends = tuple((len(line_break) + end, log_probability) for end, log_probability in below.ends)
    return replace(below, text=line_break + below.text, ends=ends, pieces=((MODEL, line_break), *below.pieces))


def _event(suggestions: Sequence[Suggestion], request: CompletionRequest, record: RunRecord) -> CompletionEvent:
    """Return an event of complete suggestions with the document's own line ends."""
    finished = tuple(restored(each, request) for each in suggestions)
    return CompletionEvent(finished, statistics=record.statistics(), whole=len(finished))
