"""What benchmarks.typing reads of the engine's own metrics: whether cancelled work ran on."""

from __future__ import annotations

from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

_STEP, _CANCEL, _QUEUE = "draftline_step_seconds", "draftline_cancel_seconds", "draftline_queue_seconds"


async def stale_requests(socket_path: Path) -> int:
    """Requests that still ran one step after a newer one had cancelled them, or that waited longer than a step for one.

    A step is the longest forward pass of the run, of a piece of a prompt or of decoding, as the engine timed them.
    """
    transport = httpx.AsyncHTTPTransport(uds=str(socket_path))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        text = (await client.get("/metrics")).raise_for_status().text
    step_s = longest(text, _STEP)
    print(
        f"longest step under {1e3 * step_s:.0f} ms; " + ", ".join(_sentence(text, name) for name in (_CANCEL, _QUEUE))
    )
    return above(text, _CANCEL, step_s) + above(text, _QUEUE, step_s)


def longest(text: str, name: str) -> float:
    """The bucket, by its upper edge in seconds, that the longest observation fell into."""
    buckets = _buckets(text, name)
    total = buckets[-1][1]
    return next((edge for edge, count in buckets if count == total), 0.0)


def above(text: str, name: str, seconds: float) -> int:
    """How many observations were longer."""
    buckets = _buckets(text, name)
    return int(buckets[-1][1] - max((count for edge, count in buckets if edge <= seconds), default=0.0))


def _sentence(text: str, name: str) -> str:
    count = _buckets(text, name)[-1][1]
    return f"{name.split('_')[1]}: {count:.0f}, the longest under {1e3 * longest(text, name):.0f} ms"


def _buckets(text: str, name: str) -> list[tuple[float, float]]:
    """Upper edge and cumulative count of a histogram."""
    family = next(family for family in text_string_to_metric_families(text) if family.name == name)
    return [(float(one.labels["le"]), one.value) for one in family.samples if one.name.endswith("_bucket")]
