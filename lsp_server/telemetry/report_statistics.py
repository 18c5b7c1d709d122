"""How sure a share, a difference or a median is: 95 % intervals that hold for small numbers too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that it lies in with 95 % confidence; `count` is how many cases it rests on."""

    value: float
    low: float
    high: float
    count: int


def share(successes: int, count: int) -> Estimate:
    """A proportion with Wilson's score interval ("Probable inference, the law of succession", 1927)."""
    if count == 0:
        return Estimate(0.0, 0.0, 1.0, 0)
    p = successes / count
    centre = (p + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(p * (1 - p) / count + _Z**2 / (4 * count**2))
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), count)


def difference(before: Estimate, after: Estimate) -> Estimate:
    """After − before for two independent figures, from the distances between each and the ends of its interval.

    For proportions it is Newcombe's method 10 ("Interval estimation for the difference", 1998), for others the same
    after Zou and Donner ("Construction of confidence limits about effect measures", 2008).
    """
    value = after.value - before.value
    low = value - math.hypot(after.value - after.low, before.high - before.value)
    high = value + math.hypot(after.high - after.value, before.value - before.low)
    return Estimate(value, low, high, before.count + after.count)


def median(values: Sequence[float]) -> Estimate:
    """The median, with the order statistics that enclose it (binomial, normal approximation)."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    ordered = sorted(values)
    half = _Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - half), math.ceil(count / 2 + half)
    return Estimate(quantile(ordered, 0.5), ordered[max(0, low)], ordered[min(count - 1, high)], count)


def mean(values: Sequence[float]) -> Estimate:
    """The mean, with its normal interval."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    value = math.fsum(values) / count
    variance = math.fsum((one - value) ** 2 for one in values) / max(1, count - 1)
    half = _Z * math.sqrt(variance / count)
    return Estimate(value, value - half, value + half, count)


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """A quantile of values in ascending order, between neighbours by their distance."""
    if not ordered:
        return 0.0
    at = fraction * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
