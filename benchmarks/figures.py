"""Figures of the last line of a benchmark. What no sample tells is None, which JSON prints as null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value below which a share of the samples is, interpolated linearly between two; None without any."""
    return float(np.quantile(values, share)) if len(values) else None


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Return the ratio, None if a value is missing or the denominator is 0."""
    return numerator / denominator if numerator is not None and denominator else None


def rounded(value: float | None, digits: int) -> float | None:
    """Return a figure with so many digits after the point."""
    return None if value is None else round(value, digits)
