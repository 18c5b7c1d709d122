"""The request's life, from question to last event, as an algorithm that reads top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from completion.cancellation import CancelToken
from completion.constraints import Constraints
from completion.decoding import Decoder, Step
from completion.fim_format import detect_format
from completion.kv_plan import CachePlan
from completion.kv_session import KVSession, KVSessions, SessionSettings
from completion.line_endings import normalised, restored
from completion.model.loading import LoadedModel
from completion.output_text import OutputText
from completion.prompt import Prompt, PromptBudget, PromptPlanner
from completion.request import CompletionEvent, CompletionRequest, Mode, Statistics, StopReason, Suggestion
from completion.stopping import Stop, StopRules


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What can be set for an engine."""

    budget: PromptBudget = field(default_factory=PromptBudget)
    sessions: SessionSettings = field(default_factory=SessionSettings)


class Engine:
    """Completes requests with one model, one request at a time, on the thread that iterates."""

    def __init__(
        self, loaded: LoadedModel, settings: EngineSettings, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._model = loaded.model
        self._tokenizer = loaded.tokenizer
        self._planner = PromptPlanner(
            loaded.tokenizer, detect_format(loaded.tokenizer.special, loaded.name), settings.budget
        )
        self._sessions = KVSessions(loaded.model, settings.sessions)
        self._clock = clock

    def complete(self, request: CompletionRequest, cancel: CancelToken) -> Iterator[CompletionEvent]:
        """Stream the suggestions for a request: the text only grows, the last event has `done`.

        Raises:
            CancelledError: Within one step or one chunk of the prompt after `cancel`.
            PromptTooLongError: The prompt does not fit the session.
        """
        run = _Run(self._clock)
        asked = normalised(request)
        prompt = self._planner.plan(asked)
        session = self._sessions.open(request.document)
        plan = session.prepare(prompt, request.cache, cancel)
        run.prompt_done(prompt, plan)
        output = OutputText(len(prompt.forced))
        rules = StopRules(asked, Mode.LINE if request.mode is Mode.AUTO else request.mode)
        shown = ""
        stop: Stop | None = None
        for step in self._decoder(asked, prompt, session).steps(cancel):
            self._collect(step, output, run)
            stop = self._find_stop(rules, output, run)
            if stop is not None:
                break
            if len(output.growing()) > len(shown):
                shown = output.growing()
                run.text_shown()
                yield CompletionEvent((restored(Suggestion(shown), request),))
        yield self._finish(request, output, stop or Stop(len(output.whole()), StopReason.STOP_TOKEN), run)

    def prepare(self, request: CompletionRequest, cancel: CancelToken) -> None:
        """Bring the document's cache up to date for a request that may follow.

        Raises:
            CancelledError: What was computed until then stays.
        """
        prompt = self._planner.plan(normalised(request))
        self._sessions.open(request.document).prepare(prompt, request.cache, cancel)

    def close(self) -> None:
        """Write down what was learned."""

    def _decoder(self, request: CompletionRequest, prompt: Prompt, session: KVSession) -> Decoder:
        ends = self._tokenizer.stop_ids
        return Decoder(
            model=self._model,
            session=session,
            prompt=prompt.tokens,
            constraints=Constraints(self._tokenizer, prompt.forced, None, ends),
            drafting=None,
            forced_tokens=lambda data: self._tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=request.sampling,
            ends=ends,
        )

    def _collect(self, step: Step, output: OutputText, run: _Run) -> None:
        """Add a step's tokens to the text and the figures."""
        for token, drafter, log_probability in zip(step.tokens, step.drafters, step.log_probabilities, strict=True):
            if token in self._tokenizer.stop_ids or token < 0:
                run.stopped = StopReason.STOP_TOKEN if token >= 0 else StopReason.GRAMMAR
                break
            output.extend(self._tokenizer.token_bytes(token), drafter)
            run.log_probabilities.append(log_probability)
        run.count(step)

    def _find_stop(self, rules: StopRules, output: OutputText, run: _Run) -> Stop | None:
        whole = output.whole()
        if (stop := rules.text_end(whole)) is not None:
            return stop
        if run.stopped is not None:
            return Stop(len(whole), run.stopped)
        bound = rules.size_end(len(run.log_probabilities), output.size_bytes, run.elapsed_ms())
        return Stop(len(whole), bound) if bound is not None else None

    def _finish(self, request: CompletionRequest, output: OutputText, stop: Stop, run: _Run) -> CompletionEvent:
        text = output.whole()[: stop.length]
        log_probabilities = tuple(run.log_probabilities[: output.tokens_within(stop.length)])
        suggestion = Suggestion(
            text=text,
            log_probability=sum(log_probabilities),
            token_log_probabilities=log_probabilities,
            pieces=output.pieces(stop.length),
        )
        run.text_shown()
        return CompletionEvent(
            (restored(suggestion, request),) if text else (),
            done=True,
            stop_reason=stop.reason,
            dropped="" if text else "empty",
            statistics=run.statistics(),
        )


class _Run:
    """The clock and the counters of one request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self._statistics = Statistics()
        self.log_probabilities: list[float] = []
        self.stopped: StopReason | None = None

    def elapsed_ms(self) -> float:
        return 1e3 * (self._clock() - self._started)

    def prompt_done(self, prompt: Prompt, plan: CachePlan) -> None:
        self._statistics = replace(
            self._statistics,
            prompt_tokens=len(prompt.tokens),
            kept_tokens=plan.kept,
            shifted_tokens=plan.shifted,
            computed_tokens=plan.computed,
            prompt_ms=self.elapsed_ms(),
        )

    def text_shown(self) -> None:
        if not self._statistics.first_text_ms:
            self._statistics = replace(self._statistics, first_text_ms=self.elapsed_ms())

    def count(self, step: Step) -> None:
        before = self._statistics
        by_drafter = dict(before.accepted_by_drafter)
        for drafter in step.drafters[:-1]:
            by_drafter[drafter] = by_drafter.get(drafter, 0) + 1
        self._statistics = replace(
            before,
            steps=before.steps + 1,
            generated_tokens=before.generated_tokens + len(step.tokens),
            drafted_tokens=before.drafted_tokens + step.drafted,
            accepted_tokens=before.accepted_tokens + len(step.tokens) - 1,
            accepted_by_drafter=by_drafter,
            drafting_ms=before.drafting_ms + step.drafting_ms,
            grammar_ms=before.grammar_ms + step.constraint_ms,
        )

    def statistics(self) -> Statistics:
        total = self.elapsed_ms()
        return replace(self._statistics, total_ms=total, decode_ms=total - self._statistics.prompt_ms)
