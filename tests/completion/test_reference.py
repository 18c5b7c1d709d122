"""The oracle decodes like transformers, reproduces samples by their seed, and can be cancelled."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from completion.cancellation import CancelToken
from completion.errors import CancelledError
from completion.model.dense.transformers_model import TransformersModel
from completion.model.tokenizer import CodeTokenizer
from completion.request import Sampling
from tests.completion.reference import decode_plainly

TOKENS = 24


@pytest.fixture(scope="module")
def model(tiny_qwen2):
    return TransformersModel.load(tiny_qwen2)


@pytest.fixture(scope="module")
def tokenizer(tiny_qwen2):
    return CodeTokenizer.from_folder(tiny_qwen2)


def decode(model, tokenizer, text="def add(first, second):\n", sampling=Sampling(), **options):  # noqa: B008
    options = {"max_tokens": TOKENS} | options
    return list(decode_plainly(model, tokenizer, tokenizer.encode(text), sampling=sampling, **options))


def test_greedy_decoding_takes_the_best_token_of_transformers(model, tokenizer, tiny_qwen2):
    module = AutoModelForCausalLM.from_pretrained(tiny_qwen2, dtype=torch.float32)
    tokens = tokenizer.encode("def add(first, second):\n")
    with torch.inference_mode():
        for token in decode(model, tokenizer):
            assert token == int(module(torch.tensor([tokens])).logits[0, -1].argmax())
            tokens.append(token)


def test_a_seed_reproduces_a_sample_and_another_seed_does_not(model, tokenizer):
    first, again, other = (decode(model, tokenizer, sampling=Sampling(1.0, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_nothing_follows_a_stop_token(model, tokenizer):
    ended = [decode(model, tokenizer, sampling=Sampling(2.0, seed=seed), max_tokens=200) for seed in range(5)]
    assert any(len(tokens) < 200 for tokens in ended)
    for tokens in ended:
        assert not tokenizer.stop_ids & set(tokens[:-1])
        assert len(tokens) == 200 or tokens[-1] in tokenizer.stop_ids


@pytest.mark.parametrize("forced", [b"    return", b"self.i", "é".encode(), b"\n\n"])
def test_the_output_starts_with_the_forced_bytes(model, tokenizer, forced):
    assert tokenizer.decode(decode(model, tokenizer, forced=forced)).startswith(forced)


def test_cancelling_ends_decoding_before_the_next_step(model, tokenizer):
    cancel = CancelToken()
    stream = decode_plainly(
        model, tokenizer, tokenizer.encode("x"), sampling=Sampling(), max_tokens=TOKENS, cancel=cancel
    )
    next(stream)
    cancel.cancel()
    with pytest.raises(CancelledError):
        next(stream)


def test_a_prompt_of_one_token_is_enough(model, tokenizer):
    tokens = decode_plainly(model, tokenizer, [tokenizer.special["<|fim_middle|>"]], sampling=Sampling(), max_tokens=3)
    assert 1 <= len(list(tokens)) <= 3


def test_the_noise_depends_on_the_absolute_position(model, tokenizer):
    """A sampled token is the same if the tokens before it are part of the prompt."""
    sampling, prompt = Sampling(1.0, seed=5), tokenizer.encode("class Stack:\n")
    tokens = decode(model, tokenizer, "class Stack:\n", sampling, max_tokens=8)
    resumed = decode_plainly(model, tokenizer, [*prompt, *tokens[:4]], sampling=sampling, max_tokens=4)
    np.testing.assert_array_equal(list(resumed), tokens[4:8])
