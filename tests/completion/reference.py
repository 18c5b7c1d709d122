"""The oracle: plain decoding, one token a step, that every faster way of decoding must agree with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from completion.cancellation import CancelToken
from completion.model.causal_model import CausalModel
from completion.model.sampling import draw
from completion.model.tokenizer import CodeTokenizer
from completion.request import Sampling


def decode_plainly(
    model: CausalModel,
    tokenizer: CodeTokenizer,
    prompt: Sequence[int],
    *,
    sampling: Sampling,
    max_tokens: int,
    forced: bytes = b"",
    cancel: CancelToken | None = None,
) -> Iterator[int]:
    """Continue a prompt and give each token as soon as it is drawn.

    Args:
        model: Scores one token a step, on a cache of its own.
        tokenizer: Says which tokens end a text, and which agree with forced bytes.
        prompt: At least one token.
        sampling: Temperature 0 is greedy; noise is keyed by the seed and a token's absolute position.
        max_tokens: At most so many are drawn.
        forced: Bytes that the output must start with (token healing).
        cancel: Looked at before every step.

    Yields:
        Token ids; a stop token is the last one.

    Raises:
        CancelledError: Between two steps.
    """
    cancel = cancel or CancelToken()
    cache = model.new_cache(len(prompt) + max_tokens)
    if len(prompt) > 1:
        model.prefill(np.array(prompt[:-1], dtype=np.int32), np.arange(len(prompt) - 1, dtype=np.int32), cache)
    token: int | None = prompt[-1]
    root = np.array([-1], dtype=np.int32)
    for position in range(len(prompt), len(prompt) + max_tokens):
        cancel.raise_if_cancelled()
        logits = model.score(np.array([token], dtype=np.int32), root, cache)
        cache.commit([0])
        candidates = tokenizer.tokens_with_prefix(forced) if forced else None
        token = draw(logits.row(0), sampling, position, candidates)
        if token is None:  # the vocabulary cannot spell the forced bytes
            return
        yield token
        if token in tokenizer.stop_ids:
            return
        forced = forced[len(tokenizer.token_bytes(token)) :]
