"""Counts and times of one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from completion.cache.kv_plan import CachePlan
from completion.decoding.decoder import Step
from completion.grammar.constraint import GrammarConstraint, Off
from completion.prompt.planner import Prompt
from completion.request import Statistics


class RunRecord:
    """Collects the `Statistics` of a request, from the moment when the engine receives it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = self._step_started = clock()
        self._statistics = Statistics()
        self._by_drafter: Counter[str] = Counter()

    def elapsed_ms(self) -> float:
        """Return the time since the engine received the request, in milliseconds."""
        return 1e3 * (self._clock() - self._started)

    def prompt_ready(self, prompt: Prompt, plan: CachePlan, longest_chunk_ms: float) -> None:
        """Record that the cache contains the prompt, and the time of its slowest chunk."""
        self._step_started = self._clock()
        self._statistics = replace(
            self._statistics,
            prompt_tokens=len(prompt.tokens),
            kept_tokens=plan.kept,
            shifted_tokens=plan.shifted,
            computed_tokens=plan.computed,
            longest_step_ms=longest_chunk_ms,
            prompt_ms=self.elapsed_ms(),
        )

    def text_shown(self) -> None:
        """Record the time at which the client gets its first text; later calls do nothing."""
        if not self._statistics.first_text_ms:
            self._statistics = replace(self._statistics, first_text_ms=self.elapsed_ms())

    def first_finished(self, grammar: GrammarConstraint | Off) -> None:
        """Record that the first suggestion is complete or dropped."""
        self.text_shown()
        self.grammar_done(grammar)

    def resumed(self) -> None:
        """Record that the next step begins now: between two steps, the engine may have served other requests."""
        self._step_started = self._clock()

    def count(self, step: Step) -> None:
        """Count a finished decoding step."""
        self._by_drafter.update(step.drafters[:-1])
        before, now = self._statistics, self._clock()
        step_ms, self._step_started = 1e3 * (now - self._step_started), now
        self._statistics = replace(
            before,
            longest_step_ms=max(before.longest_step_ms, step_ms),
            steps=before.steps + 1,
            generated_tokens=before.generated_tokens + len(step.tokens),
            drafted_tokens=before.drafted_tokens + step.drafted,
            accepted_tokens=before.accepted_tokens + len(step.tokens) - 1,
            drafting_ms=before.drafting_ms + step.drafting_ms,
        )

    def grammar_done(self, grammar: GrammarConstraint | Off) -> None:
        """Copy the grammar's counts and times."""
        self._statistics = replace(
            self._statistics,
            grammar_checks=grammar.counters.checks,
            grammar_rejections=grammar.counters.rejections,
            grammar_ms=grammar.counters.elapsed_ms,
            grammar_off_reason=grammar.reason if isinstance(grammar, Off) else grammar.off_reason or "",
        )

    def statistics(self) -> Statistics:
        """Return all counts and times so far."""
        total = self.elapsed_ms()
        decode_ms = total - self._statistics.prompt_ms
        by_drafter = dict(self._by_drafter)
        return replace(self._statistics, total_ms=total, decode_ms=decode_ms, accepted_by_drafter=by_drafter)
