"""Metrics of the engine that benchmarks.typing reads: requests that ran on after they were cancelled."""

from __future__ import annotations

from pathlib import Path

import httpcore
from prometheus_client.parser import text_string_to_metric_families

_STEP, _CANCEL, _QUEUE = "draftline_step_seconds", "draftline_cancel_seconds", "draftline_queue_seconds"


async def stale_requests(socket_path: Path) -> int:
    """Count the requests that ran for longer than a step after their cancellation or that waited longer for another.

    A step is the longest forward pass of the run, of prefill or of decoding, in the times of the engine.
    """
    async with httpcore.AsyncConnectionPool(uds=str(socket_path)) as pool:
        text = (await pool.request("GET", "http://engine/metrics")).content.decode()
    step_s = longest(text, _STEP)
    print(
        f"longest step under {1e3 * step_s:.0f} ms; " + ", ".join(_sentence(text, name) for name in (_CANCEL, _QUEUE))
    )
    return above(text, _CANCEL, step_s) + above(text, _QUEUE, step_s)


def longest(text: str, name: str) -> float:
    """Return the upper edge of the bucket of the longest observation, in seconds."""
    buckets = _buckets(text, name)
    total = buckets[-1][1]
    return next((edge for edge, count in buckets if count == total), 0.0)


def above(text: str, name: str, seconds: float) -> int:
    """Return the number of longer observations."""
    buckets = _buckets(text, name)
    return int(buckets[-1][1] - max((count for edge, count in buckets if edge <= seconds), default=0.0))


def _sentence(text: str, name: str) -> str:
    count = _buckets(text, name)[-1][1]
    return f"{name.split('_')[1]}: {count:.0f}, the longest under {1e3 * longest(text, name):.0f} ms"


def _buckets(text: str, name: str) -> list[tuple[float, float]]:
    """Return the upper edges and cumulative counts of a histogram."""
    family = next(family for family in text_string_to_metric_families(text) if family.name == name)
    return [(float(one.labels["le"]), one.value) for one in family.samples if one.name.endswith("_bucket")]
