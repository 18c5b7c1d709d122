"""The decoding loop with a tiny real model: the output starts with forced bytes, and cancelling stops it."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.constraints import FREE, NO_TOKEN, Constraints
from completion.decoding.decoder import Decoder, log_sum
from completion.errors import CancelledError
from completion.model.logits import DenseLogits
from completion.prompt.healing import heal
from completion.request import Sampling

SOURCES = sorted((Path(__file__).parents[3] / "completion").rglob("*.py"))


def decoder_at(loaded, shown: str, forced: bytes, temperature: float = 0.0) -> Decoder:
    """Return a decoder after the last characters of `shown`, with an empty cache: its first step reads the prompt."""
    tokenizer = loaded.tokenizer
    constraints = Constraints(tokenizer, forced, stop_ids=tokenizer.stop_ids)
    return Decoder(
        model=loaded.model,
        session=KVSession(loaded.model, SessionSettings(capacity=512)),
        prompt=tokenizer.encode(shown[-120:]) or [0],
        constraints=constraints,
        drafter=None,
        forced_tokens=lambda data: tokenizer.encode(data.decode("utf-8", "ignore")),
        sampling=Sampling(temperature=temperature, seed=3),
        stop_ids=tokenizer.stop_ids,
        state=constraints.start,
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_at_200_random_cursors_the_output_starts_with_the_text_before_the_cursor(tiny_model, temperature):
    rng = random.Random(17)
    texts = [path.read_text(encoding="utf-8") for path in SOURCES]
    for _ in range(200):
        text = rng.choice(texts)
        healed = heal(text[: rng.randrange(len(text))])
        decoder = decoder_at(tiny_model, healed.shown, healed.forced, temperature)
        for _step in itertools.islice(decoder.steps(CancelToken()), len(healed.forced) + 1):
            if not decoder.state.forced:
                break
        assert tiny_model.tokenizer.decode(decoder.tokens).startswith(healed.forced)


def test_a_cancel_ends_decoding_before_the_next_step(tiny_model):
    cancel = CancelToken()
    decoder = decoder_at(tiny_model, "def add(first, second):\n    return ", b"")
    steps = decoder.steps(cancel)
    next(steps)
    written = len(decoder.tokens)
    cancel.cancel()
    with pytest.raises(CancelledError):
        next(steps)
    assert len(decoder.tokens) == written


def test_an_unlikely_text_before_the_cursor_does_not_lower_log_probabilities(tiny_model):
    """The best of n tokens that agree with the text before the cursor has at least probability 1/n."""
    tokenizer = tiny_model.tokenizer
    for shown, forced in (("value =", b" va"), ("import o", b"s"), ("x = (", b"((")):
        decoder = decoder_at(tiny_model, shown, forced)
        state = decoder.state
        step = next(decoder.steps(CancelToken()))
        allowed = tokenizer.tokens_with_prefix(state.forced)
        assert 0 >= step.log_probabilities[0] >= -math.log(len(allowed)) - 1e-6


def test_the_probabilities_of_the_candidates_sum_to_one():
    row = np.array([1.0, 2.0, 3.0, 9.0], dtype=np.float32)
    candidates = np.array([0, 2], dtype=np.int32)
    logits = DenseLogits(row[np.newaxis])
    among = [math.exp(row[token] - log_sum(logits, 0, candidates)) for token in (0, 2)]
    assert sum(among) == pytest.approx(1)
    assert math.exp(row[2] - log_sum(logits, 0, None)) < 0.01 < among[1]


def test_where_no_token_is_allowed_the_log_probability_is_minus_infinity(tiny_model):
    decoder = decoder_at(tiny_model, "x = ", b"")
    assert decoder._scored(DenseLogits(np.zeros((1, 4), dtype=np.float32)), 0, NO_TOKEN, FREE) == (-math.inf, None)


def test_a_greedy_step_copies_from_the_device_once(tiny_model, monkeypatch):
    copies, copy = [], torch.Tensor.cpu
    decoder = decoder_at(tiny_model, "def add(first, second):\n    return ", b"")
    steps = decoder.steps(CancelToken())
    next(steps)  # reads the prompt
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.shape) or copy(tensor))
    taken = list(itertools.islice(steps, 5))
    assert len(copies) == len(taken) == 5
    rows = tiny_model.model.shape.vocabulary_size
    assert all(width < rows for _, width in copies)
