"""Parameters of drawing tokens as clients of other servers name them: defaults, and values with a meaning there."""

from __future__ import annotations

from completion.host.dialects.schema import SMALLEST_TOP_P
from completion.request import Sampling


def sampling_of(
    temperature: float | None, top_p: float | None = None, min_p: float | None = None, seed: int | None = None
) -> Sampling:
    """Return the parameters of drawing a token for those of a client, of which it may leave out each.

    Args:
        temperature: 0 by default: greedy decoding is best for code.
        top_p: 0 stands for the smallest nucleus, the likeliest token.
        min_p: 0 by default.
        seed: A negative one stands for any seed, which is 0 here.
    """
    if top_p is not None and top_p >= 0:
        top_p = max(SMALLEST_TOP_P, top_p)
    return Sampling(temperature or 0.0, 1.0 if top_p is None else top_p, min_p or 0.0, max(0, seed or 0))
