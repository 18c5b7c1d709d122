"""Estimates with 95 % confidence intervals for shares, differences, medians and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % confidence interval.

    Attributes:
        count: Number of observations.
    """

    value: float
    low: float
    high: float
    count: int


def share(successes: int, count: int) -> Estimate:
    """Estimate a proportion with Wilson's score interval ("Probable inference, the law of succession", 1927)."""
    if count == 0:
        return Estimate(0.0, 0.0, 1.0, 0)
    p = successes / count
    centre = (p + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(p * (1 - p) / count + _Z**2 / (4 * count**2))
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), count)


def difference(before: Estimate, after: Estimate) -> Estimate:
    """Estimate after − before for two independent estimates, from their values and intervals.

    For proportions this is Newcombe's method 10 ("Interval estimation for the difference", 1998). Zou and Donner
    ("Construction of confidence limits about effect measures", 2008) extend it to other estimates.
    """
    value = after.value - before.value
    low = value - math.hypot(after.value - after.low, before.high - before.value)
    high = value + math.hypot(after.high - after.value, before.value - before.low)
    return Estimate(value, low, high, before.count + after.count)


def median(values: Sequence[float]) -> Estimate:
    """Estimate the median; its interval is between order statistics (binomial, normal approximation)."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    ordered = sorted(values)
    half = _Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - half), math.ceil(count / 2 + half)
    return Estimate(quantile(ordered, 0.5), ordered[max(0, low)], ordered[min(count - 1, high)], count)


def mean(values: Sequence[float]) -> Estimate:
    """Estimate the mean with the interval of the normal approximation."""
    count = len(values)
    if count == 0:
        return Estimate(0.0, 0.0, 0.0, 0)
    value = math.fsum(values) / count
    variance = math.fsum((one - value) ** 2 for one in values) / max(1, count - 1)
    half = _Z * math.sqrt(variance / count)
    return Estimate(value, value - half, value + half, count)


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """Return a quantile of values in ascending order, interpolated linearly; 0 for no values."""
    if not ordered:
        return 0.0
    at = fraction * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
