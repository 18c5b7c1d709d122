"""A trained head as a drafter: it guesses the model's next state from the last one and from the token after it.

The state is what the model's output head reads. A guessed state goes through the rows of that head for frequent tokens
only, and with its token serves the next guess. Sources: "Hydra: Sequentially-Dependent Draft Heads for Medusa Decoding"
(a head that reads the drafted token), "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty" (the error
of states and tokens), "FR-Spec" and "VocabTrim" (frequent tokens).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.two_models.listening import chain
from benchmarks.two_models.speed import CHAIN
from benchmarks.two_models.written import Answers, Written
from completion.model.causal_model import KVCache
from completion.model.int8.packed_weights import PackedWeights
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.tokenizer import CodeTokenizer
from drafting.arrays import FloatArray, IntArray
from drafting.sources.token_recycling import COMMON_FILE

WIDTH = 896
"""Width of the head's gated layers."""


class States:
    """The states that a model computes, and its embeddings."""

    def __init__(self, weights: PackedWeights, threads: int) -> None:
        self.model, self.weights, self.threads = QuantizedTransformer(weights, threads), weights, threads

    def after(self, tokens: Sequence[int] | IntArray, cache: KVCache) -> FloatArray:
        """Score at most MAX_ROWS tokens after a cached past, and return their states.  # [tokens, hidden]."""
        self.model.score(*chain([int(token) for token in tokens]), cache)
        x = self.model._buffers.x[: len(tokens)]  # noqa: SLF001 - nothing in the product reads states
        epsilon = self.weights.architecture.norm_epsilon
        normal: FloatArray = x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + epsilon)
        return normal * self.weights.sections["final.attention_norm"]

    def embeddings(self, tokens: IntArray) -> FloatArray:
        """Return embeddings of tokens, which are also their rows of the output head.  # [tokens, hidden]."""
        return self.model._embedded(tokens)  # noqa: SLF001

    @property
    def parameters_of_layer(self) -> int:
        """Number of weights of a layer of the model."""
        sizes = self.model._sizes  # noqa: SLF001
        return sizes.hidden * (sizes.qkv + sizes.attention + sizes.up + sizes.intermediate)


class Head(nn.Module):
    """Two gated layers from a state and an embedding to the next state, and the output head's rows of frequent tokens.

    Attributes:
        tokens: Token of each row.  # [rows]
        rows: # [rows, hidden]
        mean: Mean of the model's states.  # [hidden]
        deviation: Their standard deviation.  # [hidden]
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, states: States, tokens: IntArray) -> None:
        super().__init__()
        self.tokens, self.rows = tokens, torch.from_numpy(states.embeddings(tokens))
        self.embedding_scale, hidden = float(self.rows.std()), self.rows.shape[1]
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("deviation", torch.ones(hidden))
        self.first, self.down = nn.Linear(2 * hidden, 2 * WIDTH), nn.Linear(WIDTH, hidden)
        self.second, self.last = nn.Linear(hidden, 2 * WIDTH), nn.Linear(WIDTH, hidden)

    @property
    def parameters_read(self) -> int:
        """Number of weights that a guess reads."""
        return self.rows.numel() + sum(each.numel() for each in self.parameters())

    def forward(self, state: Tensor, embedding: Tensor) -> Tensor:
        """Return the next state; both are as `normal` returns them.  # [states, hidden]."""
        x: Tensor = self.down(_gated(self.first(torch.cat([state, embedding / self.embedding_scale], dim=1))))
        return x.add(self.last(_gated(self.second(functional.rms_norm(x, x.shape[1:])))))

    def normal(self, states: Tensor) -> Tensor:
        """Return states with mean 0 and deviation 1 in each column."""
        return (states - self.mean) / self.deviation

    def logits(self, state: Tensor, rows: Tensor) -> Tensor:
        """Return the logits of rows of the output head.  # [states, rows]."""
        return (state * self.deviation + self.mean) @ rows.T

    @torch.inference_mode()
    def read(self, states: States, text: Written) -> Answers:
        """Read a text: a chain from each token on, as long as it is right.

        Before a step, the model's state is that of the token before the last one, which it has just written.
        """
        text.cache.truncate(len(text.prompt) - 2)
        known, wanted = np.array([text.prompt[-2], *text.inputs], np.int32), np.array(text.tokens)
        state = self.normal(torch.from_numpy(states.after(known, text.cache)[:-1]))
        embeddings = torch.from_numpy(states.embeddings(known[1:]))
        agrees, sure = np.zeros((len(wanted), CHAIN), np.bool_), np.ones((len(wanted), CHAIN), np.float32)
        for step in range(min(CHAIN, len(wanted))):
            count = len(wanted) - step
            state = self(state[:count], embeddings[step:])
            probabilities, best = torch.softmax(self.logits(state, self.rows), dim=1).max(dim=1)
            agrees[:count, step] = self.tokens[best.numpy()] == wanted[step:]
            sure[:count, step] = probabilities.numpy()
        return agrees, sure


def _gated(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, dim=1)
    return functional.silu(gate) * up


def frequent_tokens(tokenizer: CodeTokenizer) -> IntArray:
    """Return the tokens of drafting/data/common_tokens.npz, all of another vocabulary than the file's.  # [tokens]."""
    with resources.files("drafting").joinpath("data", COMMON_FILE).open("rb") as file, np.load(file) as arrays:
        if str(arrays["vocabulary"]) != tokenizer.digest:
            return np.arange(tokenizer.vocabulary_size, dtype=np.int32)
        found = np.unique(np.concatenate([arrays["tokens"].ravel(), arrays["after"].ravel()]))
    return found[found >= 0]
