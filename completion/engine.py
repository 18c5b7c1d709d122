"""The request's life, from question to last event, as an algorithm that reads top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from completion.alternatives.further_suggestions import alternatives, in_order
from completion.cache.kv_session import KVSession, KVSessions, SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.drafting_setup import keep_calibration, make_drafters
from completion.decoding.finishing import open_grammar
from completion.decoding.run_record import RunRecord
from completion.decoding.task import Task
from completion.model.loading import LoadedModel
from completion.postprocess import Dropped
from completion.prompt.fim_format import detect_format
from completion.prompt.line_endings import normalised, restored
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S, SHORT_BUDGET, PromptBudget, PromptPace
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import (
    CacheMode,
    Closing,
    CompletionEvent,
    CompletionRequest,
    Suggestion,
    WorkspaceUpdate,
)
from completion.stopping.mode import cursor_context
from completion.syntax.parser_process import IN_PROCESS, Parsing
from completion.workspace.workspaces import BUDGET_BYTES, Workspaces
from drafting.session import Drafters

FIRST_STEP_TOKENS = 8
"""Number of new tokens at a prompt's end that the first decoding step computes itself."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What can be set for an engine.

    Attributes:
        budget: Tokens for each part of a prompt, where the machine is fast enough for them.
        full_prompt_s: A prompt of which nothing is cached may take so long; on slower machines budgets shrink.
        cold_prompt_s: Where hardly anything of a prompt is cached and computing it would take longer, a short one
            around the cursor answers first; `Engine.prepare` brings the full one.
        sessions: Bounds of the key-value sessions.
        workspaces_bytes: Memory of all workspaces' context and drafts.
        max_nodes: The largest draft tree; what pays is decided step by step.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    full_prompt_s: float = math.inf
    cold_prompt_s: float = math.inf
    sessions: SessionSettings = field(default_factory=SessionSettings)
    workspaces_bytes: int = BUDGET_BYTES
    max_nodes: int = 16


def product_settings() -> EngineSettings:
    """Return the settings of the engine in the real host, which bounds prompts by the machine's measured pace."""
    return EngineSettings(full_prompt_s=FULL_PROMPT_S, cold_prompt_s=COLD_PROMPT_S)


class Engine:
    """Completes requests with one model, one request at a time, on the thread that iterates."""

    def __init__(
        self,
        loaded: LoadedModel,
        settings: EngineSettings | None = None,
        drafters: Drafters | None = None,
        clock: Callable[[], float] = time.perf_counter,
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        settings = settings or EngineSettings()
        self._model = loaded.model
        self._tokenizer = loaded.tokenizer
        fim_format = detect_format(loaded.tokenizer.special, loaded.name)
        most_tokens = settings.sessions.longest_prompt(loaded.model.shape.max_positions)
        self._planner = PromptPlanner(loaded.tokenizer, fim_format, settings.budget, most_tokens, parsing)
        self._parsing = parsing
        self._pace = PromptPace(settings.budget, settings.full_prompt_s)
        self._cold_prompt_s = settings.cold_prompt_s
        self._sessions = KVSessions(loaded.model, settings.sessions, self._pace.note)
        self._drafters = drafters or make_drafters(loaded, settings.max_nodes)
        self._digest = loaded.digest
        self._workspaces = Workspaces(self._drafters, loaded.tokenizer, settings.workspaces_bytes, parsing)
        self._clock = clock

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Iterator[CompletionEvent]:
        """Stream the suggestions for a request: the text only grows, the last event has `done`.

        Raises:
            CancelledError: Within one step or one chunk of the prompt after `cancel`.
            PromptTooLongError: The prompt does not fit the session.
        """
        record = RunRecord(self._clock)
        task = self._begin(request, cancel, record)
        first = task.first()
        try:
            for text in task.stream(first, cancel):
                record.text_shown()
                yield CompletionEvent((restored(first.growing(text), request),))
            outcome = task.finish(first)
            suggestions = [outcome] if isinstance(outcome, Suggestion) else []
            record.first_done(task.grammar)
            if len(suggestions) < request.suggestions and (suggestions or request.invoked):
                yield _whole(suggestions, request, record)
                with closing(alternatives(task, first, suggestions, cancel)) as others:
                    for alternative in others:
                        suggestions = in_order(suggestions, alternative)
                        yield _whole(suggestions, request, record)
        finally:
            if first.stop is None:  # cancelled, or closed by the caller
                task.session.truncate(len(task.prompt.tokens) - 1)
        record.grammar_done(task.grammar)
        yield replace(
            _whole(suggestions, request, record),
            done=True,
            stop_reason=first.stop.reason if first.stop else None,
            dropped=outcome.reason.value if isinstance(outcome, Dropped) and not suggestions else "",
        )

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Make the document's cache ready and exact for a request that may follow, and its language's grammar loaded.

        Raises:
            CancelledError: What was computed until then stays.
        """
        self._parsing.watch(cancel, request.document)
        planned, prompt, session = self._plan(request)
        open_grammar(planned, prompt.healed, self._parsing)
        session.prepare(prompt, request.cache, cancel)
        session.refresh(cancel)

    def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Bring the drafters' index of a workspace, and what the model may see of it, up to date."""
        self._parsing.watch(CancelToken())
        self._workspaces.update(update)

    def forget(self, closing: Closing) -> None:
        """Give back the memory of documents and workspaces that nobody uses any more."""
        for document in closing.documents:
            self._sessions.close(document)
        for workspace in closing.workspaces:
            self._workspaces.close(workspace)

    def close(self) -> None:
        """Write down how far the drafters' guesses can be trusted, and end the parser's process."""
        self._parsing.close()
        keep_calibration(self._drafters, self._digest)

    def _begin(self, request: CompletionRequest, cancel: CancelToken, record: RunRecord) -> Task:
        """Plan the prompt, bring the document's cache up to date for it, and open the grammar.

        Raises:
            CancelledError: Within one chunk of the prompt after `cancel`.
        """
        self._parsing.watch(cancel, request.document)
        planned, prompt, session = self._plan(request)
        if self._is_cold(prompt, planned.cache, session):
            prompt = self._planner.plan(replace(planned, context=(), outline=False), SHORT_BUDGET)
        context = cursor_context(planned, self._parsing)
        plan = session.prepare(prompt, planned.cache, cancel, FIRST_STEP_TOKENS)
        record.prompt_ready(prompt, plan, session.longest_chunk_ms)
        grammar = open_grammar(planned, prompt.healed, self._parsing)
        return Task(self._model, self._tokenizer, self._drafters, planned, context, prompt, session, grammar, record)

    def _plan(self, request: CompletionRequest) -> tuple[CompletionRequest, Prompt, KVSession]:
        """Return the request with plain line feeds and context, its prompt, and the document's cache.

        A session keeps its budget while it holds tokens: another budget would shift what is cached.
        """
        session = self._sessions.open(request.document)
        if session.budget is None or not session.tokens:
            session.budget = self._pace.budget()
        planned = self._with_context(normalised(request), session.budget.context_tokens)
        return planned, self._planner.plan(planned, session.budget), session

    def _is_cold(self, prompt: Prompt, mode: CacheMode, session: KVSession) -> bool:
        """Whether too little of a prompt is cached for somebody to wait for the rest.

        Growing from a short prompt to the full one leaves the cache inexact, so only PIE's users get short ones.
        """
        if mode is not CacheMode.PIE or self._pace.seconds(len(prompt.tokens)) <= self._cold_prompt_s:
            return False
        computed = session.plan(prompt, mode).computed
        return 2 * computed > len(prompt.tokens) and self._pace.seconds(computed) > self._cold_prompt_s

    def _with_context(self, request: CompletionRequest, budget_tokens: int) -> CompletionRequest:
        """The request with pieces of other files of its workspace, if it brings none itself."""
        chosen = self._workspaces.context(request, budget_tokens)
        return request if request.context else replace(request, context=chosen)


def _whole(suggestions: Sequence[Suggestion], request: CompletionRequest, record: RunRecord) -> CompletionEvent:
    """An event of complete suggestions, with line ends as the document has them."""
    finished = tuple(restored(each, request) for each in suggestions)
    return CompletionEvent(finished, statistics=record.statistics(), whole=len(finished))
