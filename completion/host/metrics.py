"""The host's Prometheus metrics: requests, tokens, times. They hold numbers only, never text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from completion.host.process.memory_account import HeldParts, MemoryAccount, memory_account
from completion.memory import MemoryPart
from completion.request import Statistics

_SECONDS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


class HostMetrics(Collector):
    """The metrics of one host, in a registry of their own.

    Attributes:
        held: Returns what the engine holds in memory; nothing before it is loaded.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        seconds = partial(Histogram, buckets=_SECONDS, registry=registry)
        ProcessCollector(registry=registry)
        self.held: Callable[[], HeldParts] = dict
        registry.register(self)
        self.requests = counter("draftline_requests", "Finished requests by kind and outcome", ["kind", "outcome"])
        self.queue_length = gauge("draftline_queue_length", "Requests that wait for the model")
        self.leases = gauge("draftline_leases", "Clients that keep the host alive")
        self.ready = gauge("draftline_ready", "1 when the model is loaded")
        self.client_events = counter("draftline_client_events", "Events that clients reported, by type", ["type"])
        self._first_text = seconds("draftline_first_text_seconds", "Time from receipt to first text")
        self._total = seconds("draftline_request_seconds", "Time from receipt to end of a completion")
        self._queue = seconds("draftline_queue_seconds", "Time spent waiting for the model")
        self.cancel = seconds(
            "draftline_cancel_seconds", "Time from the cancellation of a running completion or preparation to its end"
        )
        self._step = seconds(
            "draftline_step_seconds", "Longest step of each completion, over a part of its prompt or while decoding"
        )
        self._prompt_tokens = counter(
            "draftline_prompt_tokens", "Prompt tokens, by how the cache served them", ["served"]
        )
        self._generated = counter("draftline_generated_tokens", "Generated tokens")
        self._steps = counter("draftline_steps", "Decoding steps; several may share a forward pass")
        self._drafted = counter("draftline_drafted_tokens", "Tokens that drafters proposed")
        self._accepted = counter(
            "draftline_accepted_tokens", "Drafted tokens that were accepted, by drafter", ["drafter"]
        )
        self._grammar_rejections = counter("draftline_grammar_rejections", "Tokens that the grammar rejected")

    def count_completion(self, statistics: Statistics, *, queue_s: float, total_s: float) -> None:
        """Add a finished completion.

        Args:
            statistics: Counts and times of the engine.
            queue_s: Seconds from the receipt of the request until the model was free.
            total_s: Seconds from the receipt of the request to its end.
        """
        self._queue.observe(queue_s)
        self._total.observe(total_s)
        self._step.observe(statistics.longest_step_ms / 1000)
        if statistics.first_text_ms > 0:
            self._first_text.observe(queue_s + statistics.first_text_ms / 1000)
        self._prompt_tokens.labels("kept").inc(statistics.kept_tokens)
        self._prompt_tokens.labels("shifted").inc(statistics.shifted_tokens)
        self._prompt_tokens.labels("computed").inc(statistics.computed_tokens)
        self._generated.inc(statistics.generated_tokens)
        self._steps.inc(statistics.steps)
        self._drafted.inc(statistics.drafted_tokens)
        for drafter, tokens in statistics.accepted_by_drafter.items():
            self._accepted.labels(drafter).inc(tokens)
        self._grammar_rejections.inc(statistics.grammar_rejections)

    def memory(self) -> MemoryAccount:
        """Return where the memory of this process is. It takes about 20 ms, on any thread."""
        return memory_account(self.held)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Account for the memory at a scrape."""
        account = self.memory()
        yield _gauge("draftline_memory_bytes", "Resident memory of the host, by part", account.parts)
        yield _gauge("draftline_gpu_memory_bytes", "Memory of a GPU that the engine holds, by part", account.gpu)
        about = "Resident memory of the host's child processes, which parse"
        yield GaugeMetricFamily("draftline_child_memory_bytes", about, value=account.children)

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format. It takes about 20 ms, on any thread."""
        return generate_latest(self._registry)


def _gauge(name: str, about: str, parts: Mapping[MemoryPart, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, about, labels=["part"])
    for part, size in parts.items():
        gauge.add_metric([part], size)
    return gauge
