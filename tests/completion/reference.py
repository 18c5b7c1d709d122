"""The oracle of decoding tests: plain decoding, one token a step."""

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
    """Continue a prompt on a cache of its own.

    Args:
        model: The model.
        tokenizer: The model's tokenizer.
        prompt: Tokens of the prompt, at least one.
        sampling: Parameters of drawing a token; the noise depends on the seed and a token's absolute position.
        max_tokens: Maximum number of tokens to draw.
        forced: Bytes that the output must start with (token healing).
        cancel: Checked before every step.

    Yields:
        Token ids, each as soon as it is drawn; a stop token is the last one.

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
