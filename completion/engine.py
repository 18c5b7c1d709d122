"""The request's life, from question to last event, as an algorithm that reads top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from completion import mode
from completion.cancellation import CancelToken
from completion.constraints import Constraints
from completion.decoding import NO_TOKEN, Decoder, Step
from completion.drafting_setup import make_drafters, save_learned
from completion.fim_format import detect_format
from completion.finishing import collect, finish, open_grammar
from completion.grammar.constraint import GrammarConstraint, Off
from completion.kv_session import KVSession, KVSessions, SessionSettings
from completion.line_endings import normalised, restored
from completion.model.loading import LoadedModel
from completion.output_text import OutputText
from completion.postprocess import Context, Dropped, stable_prefix
from completion.prompt import Prompt, PromptBudget, PromptPlanner
from completion.request import (
    CompletionEvent,
    CompletionRequest,
    GrammarMode,
    Mode,
    StopReason,
    Suggestion,
    WorkspaceUpdate,
)
from completion.run_record import RunRecord
from completion.stopping import Stop, StopRules
from completion.workspace_context import WorkspaceFiles
from drafting.session import Drafters, DraftingSession


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What can be set for an engine.

    Attributes:
        budget: Tokens for each part of a prompt.
        sessions: Bounds of the key-value sessions.
        max_nodes: The largest draft tree; what pays is decided step by step.
    """

    budget: PromptBudget = field(default_factory=PromptBudget)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    max_nodes: int = 16


class Engine:
    """Completes requests with one model, one request at a time, on the thread that iterates."""

    def __init__(
        self,
        loaded: LoadedModel,
        settings: EngineSettings | None = None,
        drafters: Drafters | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        settings = settings or EngineSettings()
        self._model = loaded.model
        self._tokenizer = loaded.tokenizer
        fim_format = detect_format(loaded.tokenizer.special, loaded.name)
        self._planner = PromptPlanner(loaded.tokenizer, fim_format, settings.budget)
        self._sessions = KVSessions(loaded.model, settings.sessions)
        self._drafters = drafters or make_drafters(loaded, settings.max_nodes)
        self._digest = loaded.digest
        self._workspaces: dict[str, WorkspaceFiles] = {}
        self._context_tokens = settings.budget.context_tokens
        self._clock = clock

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Iterator[CompletionEvent]:
        """Stream the suggestions for a request: the text only grows, the last event has `done`.

        Raises:
            CancelledError: Within one step or one chunk of the prompt after `cancel`.
            PromptTooLongError: The prompt does not fit the session.
        """
        record = RunRecord(self._clock)
        asked = self._with_context(normalised(request))
        context = _cursor_context(asked)
        prompt = self._planner.plan(asked)
        session = self._sessions.open(request.document)
        record.prompt_ready(prompt, session.prepare(prompt, request.cache, cancel))
        grammar = open_grammar(asked, prompt.forced)
        output, rules = OutputText(len(prompt.forced)), StopRules(asked, context)
        shown = ""
        stop: Stop | None = None
        try:
            for step in self._decoder(asked, context, prompt, session, grammar).steps(cancel):
                record.count(step)
                stop = self._extend(output, step, rules) or rules.time_end(output, record.elapsed_ms())
                if stop is not None:
                    break
                visible = stable_prefix(output.growing(), context) if asked.filters else output.growing()
                if len(visible) > len(shown):
                    shown = visible
                    record.text_shown()
                    yield CompletionEvent((restored(Suggestion(shown), request),))
        finally:
            if stop is None:  # cancelled, or closed by the caller
                session.truncate(len(prompt.tokens) - 1)
        if stop is not None:
            left = finish(collect(output, stop, record), stop.reason, asked, context, grammar)
            record.text_shown()
            record.grammar_done(grammar)
            dropped = left.reason.value if isinstance(left, Dropped) else ""
            shown_last = () if isinstance(left, Dropped) else (restored(left, request),)
            yield CompletionEvent(shown_last, True, stop.reason, dropped, record.statistics())  # noqa: FBT003

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Make the document's cache ready and exact for a request that may follow.

        Raises:
            CancelledError: What was computed until then stays.
        """
        prompt = self._planner.plan(self._with_context(normalised(request)))
        session = self._sessions.open(request.document)
        session.prepare(prompt, request.cache, cancel)
        session.refresh(cancel)

    def update_workspace(self, update: WorkspaceUpdate) -> None:
        """Bring the drafters' index of a workspace, and what the model may see of it, up to date."""
        self._workspaces.setdefault(update.workspace, WorkspaceFiles()).update(update)
        index = self._drafters.workspace(update.workspace)
        for path in update.removed:
            index.remove(path)
        for file in update.changed:
            index.update(file.path, self._tokenizer.encode(file.text), is_open=file.open)

    def close(self) -> None:
        """Write down what the drafters learned."""
        save_learned(self._drafters, self._digest)

    def _with_context(self, request: CompletionRequest) -> CompletionRequest:
        """The request with pieces of other files, if it brings none itself and its workspace is known."""
        files = self._workspaces.get(request.workspace)
        if files is None or request.context:
            return request
        return replace(request, context=files.choose(request, self._context_tokens))

    def _decoder(
        self,
        request: CompletionRequest,
        context: Context,
        prompt: Prompt,
        session: KVSession,
        grammar: GrammarConstraint | Off,
    ) -> Decoder:
        ends = self._tokenizer.stop_ids
        return Decoder(
            model=self._model,
            session=session,
            prompt=prompt.tokens,
            constraints=Constraints(
                self._tokenizer,
                prompt.forced,
                grammar if isinstance(grammar, GrammarConstraint) else None,
                ends,
                grammar_binds=request.grammar is GrammarMode.STRICT,
            ),
            drafter=self._drafting(request, context, prompt),
            forced_tokens=lambda data: self._tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=request.sampling,
            ends=ends,
        )

    def _drafting(self, request: CompletionRequest, context: Context, prompt: Prompt) -> DraftingSession | None:
        if not request.drafting:
            return None
        single_line = context.mode is Mode.LINE
        return self._drafters.session(
            prompt.tokens, request.workspace, tail=prompt.before_cursor, single_line=single_line
        )

    def _extend(self, output: OutputText, step: Step, rules: StopRules) -> Stop | None:
        """Add a step's tokens to the text, one by one: where it ends must not depend on how they came."""
        for token, drafter in zip(step.tokens, step.drafters, strict=True):
            if token == NO_TOKEN or token in self._tokenizer.stop_ids:
                reason = StopReason.GRAMMAR if token == NO_TOKEN else StopReason.STOP_TOKEN
                return Stop(len(output.whole()), reason)
            output.extend(self._tokenizer.token_bytes(token), drafter)
            stop = rules.text_end(output.whole()) or rules.size_end(output)
            if stop is not None:
                return stop
        return None


def _cursor_context(request: CompletionRequest) -> Context:
    """What stop rules and filters see; decides between a line and a block."""
    wanted = request.mode
    if wanted is Mode.AUTO:
        wanted = mode.decide(request.prefix, request.suffix, request.language)
    return Context.of(request.prefix, request.suffix, request.language, wanted, invoked=request.invoked)
