"""Rotary position embedding with the common scalings: frequencies, and tables of cosines and sines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model.architecture import Architecture, RotaryScaling
from drafting.arrays import FloatArray, own_zeros


class RotaryTables:
    """Cosine and sine of every position's angles, angle[p, i] = p · frequency[i], computed as positions are used.

    Angles are float32 products, as in the models' training ("RoFormer", section 3.2.2). Where windowed layers have
    another embedding, its table follows that of the other layers: `Architecture.first_angles`. Memory, 8 MB for the
    default model, is taken as it is used.

    Attributes:
        cosines: Cosines; rows of positions that are not computed are 0.  # [max_positions or twice that, head_dim / 2]
        sines: Sines.  # the same
    """

    def __init__(self, architecture: Architecture, positions: int = 0) -> None:
        self._kinds = [kind for kind in (architecture.rotary, architecture.window_rotary) if kind is not None]
        self._architecture = architecture
        self._computed = 0
        shape = len(self._kinds) * architecture.max_positions, architecture.head_dim // 2
        self.cosines, self.sines = own_zeros(shape, np.float32), own_zeros(shape, np.float32)
        self.reach(positions)

    def reach(self, positions: int) -> None:
        """Compute the rows of the first positions.

        Raises:
            ModelDamagedError: A parameter of the scaling is missing or out of its range.
            UnsupportedModelError: The kind of scaling is unknown.
        """
        first, end = self._computed, min(positions, self._architecture.max_positions)
        for number, kind in enumerate(self._kinds if end > first else ()):
            start = number * self._architecture.max_positions
            rows = _table(kind, self._architecture, first, end)
            self.cosines[start + first : start + end], self.sines[start + first : start + end] = rows
        self._computed = max(first, end)


def _table(scaling: RotaryScaling, architecture: Architecture, first: int, end: int) -> tuple[FloatArray, FloatArray]:
    """Return cosines and sines of the positions first .. end-1.  # [positions, head_dim / 2] twice."""
    frequencies, scale = _frequencies(scaling, architecture.head_dim)
    angles = np.arange(first, end, dtype=np.float32)[:, None] * frequencies[None, :]
    return (np.cos(angles) * scale).astype(np.float32), (np.sin(angles) * scale).astype(np.float32)


def _frequencies(scaling: RotaryScaling, head_dim: int) -> tuple[FloatArray, np.float32]:
    """Return a frequency for each channel pair of a head, and a factor on cosines and sines.  # [head_dim / 2]."""
    if scaling.kind not in _SCALINGS:
        raise UnsupportedModelError(
            f"The rotary scaling {scaling.kind!r} is not supported; supported are {', '.join(_SCALINGS)}."
        )
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            plain = 1.0 / np.power(np.float32(scaling.theta), exponents, dtype=np.float32)
            scaled = _SCALINGS[scaling.kind](plain, scaling, head_dim)
        factor = np.float32(_attention_factor(scaling.parameters) if scaling.kind == "yarn" else 1.0)
    except (KeyError, ValueError, ArithmeticError):
        factor = np.float32(np.nan)
    if not np.isfinite(factor) or not np.isfinite(scaled).all():
        raise ModelDamagedError(
            f"The model's {scaling} lacks a number, or has one that no model has. Download it again."
        )
    return scaled, factor


def _unscaled(plain: FloatArray, _scaling: RotaryScaling, _head_dim: int) -> FloatArray:
    """Return unchanged frequencies. "dynamic" changes none within the trained length, which `max_positions` is."""
    return plain


def _linear(plain: FloatArray, scaling: RotaryScaling, _head_dim: int) -> FloatArray:
    """Divide positions by a factor ("Extending Context Window ... via Positional Interpolation", section 2)."""
    stretched: FloatArray = plain / np.float32(scaling.parameters["factor"])
    return stretched


def _llama3(plain: FloatArray, scaling: RotaryScaling, _head_dim: int) -> FloatArray:
    """Stretch long waves, keep short ones, and blend those between (Llama 3.1's published code)."""
    values = scaling.parameters
    original = values["original_max_position_embeddings"]
    low, high = values["low_freq_factor"], values["high_freq_factor"]
    waves_in_context = original * plain / (2 * math.pi)
    kept = np.clip((waves_in_context - low) / (high - low), 0.0, 1.0)
    blended: FloatArray = ((1 - kept) * plain / values["factor"] + kept * plain).astype(np.float32)
    return blended


def _yarn(plain: FloatArray, scaling: RotaryScaling, head_dim: int) -> FloatArray:
    """Keep channels that turn often, stretch those that turn rarely, with a ramp between ("YaRN", section 3.2)."""
    values = scaling.parameters
    original = values["original_max_position_embeddings"]

    def channel_of(turns: float) -> float:
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(scaling.theta))

    low = max(math.floor(channel_of(values.get("beta_fast", 32.0))), 0)
    high = min(math.ceil(channel_of(values.get("beta_slow", 1.0))), head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - low) / max(high - low, 0.001), 0.0, 1.0)
    blended: FloatArray = (plain / values["factor"] * ramp + plain * (1 - ramp)).astype(np.float32)
    return blended


def _attention_factor(values: Mapping[str, float]) -> float:
    """Return YaRN's temperature on the logits as a factor on cosine and sine.

    Source: "YaRN", section 3.3, with DeepSeek's mscale.
    """
    if "attention_factor" in values:
        return values["attention_factor"]

    def mscale(factor: float, weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    factor = values["factor"]
    if values.get("mscale") and values.get("mscale_all_dim"):
        return mscale(factor, values["mscale"]) / mscale(factor, values["mscale_all_dim"])
    return mscale(factor, 1.0)


_SCALINGS: dict[str, Callable[[FloatArray, RotaryScaling, int], FloatArray]] = {
    "default": _unscaled,
    "dynamic": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}
