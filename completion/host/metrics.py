"""The host's Prometheus metrics, requests, tokens, times and where its memory is: numbers only, never text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from completion.memory import Held, MemoryPart, Span, mapped_spans, resident_bytes
from completion.request import Statistics
from drafting.compiled import code_span

_COMPILERS = ("llvmlite", "numba")
_GRAMMARS = "tree_sitter"  # start of the names of packages with grammars
_RUNNABLE = "r-xp"


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Where the memory is, in bytes.

    Attributes:
        parts: Resident memory of this process by part. OTHER is the rest: Python, its libraries and small buffers.
        gpu: Memory of a GPU by part, of what the engine holds there; empty without a GPU.
        children: Resident memory of the child processes: the parser's.
    """

    parts: Mapping[MemoryPart, int]
    gpu: Mapping[MemoryPart, int]
    children: int

    @property
    def resident(self) -> int:
        """Resident size of this process: the sum of its parts."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, object]:
        """Return the account as JSON values."""
        return {"parts": dict(self.parts), "gpu": dict(self.gpu), "children": self.children, "resident": self.resident}


def memory_account(held: Callable[[], Mapping[MemoryPart, Held]]) -> MemoryAccount:
    """Return the account of this process, which takes about 20 ms. May be called on any thread."""
    found = {part: Held() for part in MemoryPart} | dict(held())
    mapped = list(_mapped())
    for part in (MemoryPart.GRAMMARS, MemoryPart.CODE):
        found[part] += Held(tuple(span for kind, span in mapped if kind is part))
    parts = {part: resident_bytes(each.spans) + each.object_bytes for part, each in found.items()}
    process = psutil.Process()
    parts[MemoryPart.OTHER] = max(process.memory_info().rss - sum(parts.values()), 0)
    gpu = {part: each.gpu_bytes for part, each in found.items() if each.gpu_bytes}
    return MemoryAccount(parts, gpu, sum(map(_resident, process.children(recursive=True))))


def _mapped() -> Iterator[tuple[MemoryPart, Span]]:
    """Yield the libraries of grammars and of the compiler, the image of machine code, and code of no file."""
    if (image := code_span()) is not None:
        yield MemoryPart.CODE, image
    for span, access, file in mapped_spans():
        names = PurePath(file).parts
        if any(name.startswith(_GRAMMARS) for name in names):
            yield MemoryPart.GRAMMARS, span
        elif any(name in _COMPILERS for name in names) or (access == _RUNNABLE and not file):
            yield MemoryPart.CODE, span


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it has ended meanwhile
        return 0


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
        self.held: Callable[[], Mapping[MemoryPart, Held]] = dict
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
        """Add a finished completion, with the seconds from its receipt until the model was free and to its end."""
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
