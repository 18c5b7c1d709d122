"""Counts and times of one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from completion.cache.kv_plan import CachePlan
from completion.decoding.decoder import Step
from completion.grammar.constraint import GrammarConstraint
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
        """Record that the cache contains the prompt, and the time of its slowest chunk.

        Of a request's prompts, the last one's tokens count; decoding begins after the first one.
        """
        self._step_started = self._clock()
        self._statistics = replace(
            self._statistics,
            prompt_tokens=len(prompt.tokens),
            kept_tokens=plan.kept,
            shifted_tokens=plan.shifted,
            computed_tokens=plan.computed,
            longest_step_ms=max(self._statistics.longest_step_ms, longest_chunk_ms),
            prompt_ms=self._statistics.prompt_ms or self.elapsed_ms(),
        )

    def text_shown(self) -> None:
        """Record the time of the first text, or of the news that there is none; later calls do nothing."""
        if not self._statistics.first_text_ms:
            self._statistics = replace(self._statistics, first_text_ms=self.elapsed_ms())

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

    def statistics(self, grammar: GrammarConstraint) -> Statistics:
        """Return all counts and times so far, with those of the request's grammar."""
        total = self.elapsed_ms()
        return replace(
            self._statistics,
            accepted_by_drafter=dict(self._by_drafter),
            grammar_checks=grammar.counters.checks,
            grammar_rejections=grammar.counters.rejections,
            grammar_off_reason=grammar.off_reason or "",
            grammar_ms=grammar.counters.elapsed_ms,
            decode_ms=total - self._statistics.prompt_ms,
            total_ms=total,
        )
