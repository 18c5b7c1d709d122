"""The decoder in torch: float32 for tests, bfloat16 wherever the int8 path does not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from completion.cancellation import NEVER, CancelToken
from completion.memory import Held
from completion.model.architecture import Activation, Architecture, read_architecture
from completion.model.causal_model import KVCache, Logits, ScorePass
from completion.model.dense.attention import PLAIN, Attention, Kernels, Sight
from completion.model.dense.held_tensors import held_by, tensors_in
from completion.model.dense.kv_cache import Angles, Int8Store, Store, TorchCache, indices
from completion.model.dense.torch_logits import TorchLogits
from completion.model.dense.weights import LayerWeights, Norm, Weights, read_weights
from completion.model.logits import RowSlice
from drafting.arrays import FloatArray, IntArray

_ACTIVATIONS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": torch.nn.functional.silu,
    "gelu_tanh": partial(torch.nn.functional.gelu, approximate="tanh"),
}

Part = tuple[int, Attention, Store]
"""Rows of one sequence in a pass: their number, their attention, and the sequence's keys and values."""


def load_dense(folder: Path, dtype: torch.dtype, threads: int | None) -> DenseTransformer:
    """Load a converted model with unquantised weights; see `transformer.load_transformer`."""
    if threads is not None:
        torch.set_num_threads(threads)
    architecture = read_architecture(folder)
    return DenseTransformer(architecture, read_weights(folder, architecture, dtype))


class DenseTransformer:
    """Scores rows of tokens on top of a cached past, whose keys and values may have 8 bits, a third of the memory."""

    joint_requests = 1

    def __init__(
        self, architecture: Architecture, weights: Weights, *, int8_cache: bool = False, kernels: Kernels = PLAIN
    ) -> None:
        self.architecture, self.weights = architecture, weights
        self._int8_cache, self.kernels = int8_cache, kernels
        self.shape = architecture.shape
        self.device = str(weights.final_norm.weight.device)
        self.angles = Angles.of(architecture, self.device)
        self._activation = _ACTIVATIONS[architecture.activation]

    def held_weights(self) -> Held:
        """Return where the weights are."""
        return held_by(tensors_in(self.weights))

    def new_cache(self, capacity: int) -> TorchCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return TorchCache(self.shape, capacity, self.store())

    def store(self) -> Store:
        """Return an empty store of keys and values."""
        dtype = self.weights.embeddings.dtype
        if not self._int8_cache:
            return self.kernels.exact_store(self.shape, dtype, self.angles)
        return Int8Store(
            self.shape, dtype, self.angles, torch.stack([self._key_bias(layer) for layer in self.weights.layers])
        )

    def _key_bias(self, layer: LayerWeights) -> torch.Tensor:
        """Return the bias of a layer's keys, 0 if they have none or are normalised.  # [kv_heads, 1, head_dim]."""
        groups, width = self.shape.kv_heads, self.shape.head_dim
        bias = layer.qkv.bias
        if bias is None or layer.key_norm is not None:
            bias = self.angles.cosines.new_zeros(2 * groups * width)
        return bias[-2 * groups * width : -groups * width].view(groups, 1, width)

    @torch.inference_mode()
    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> TorchLogits:
        """Compute tokens into given slots; see `CausalModel.prefill`."""
        cache = self.own(cache, int(slots[-1]) + 1)
        hidden, most = [], self.kernels.prefill_rows
        for start in range(0, len(tokens), most):
            chunk = indices(slots[start : start + most], self.device)
            inputs = self.embedded(indices(tokens[start : start + most], self.device))
            sight = Sight.of_slots(chunk, int(slots[: start + most][-1]) + 1)
            hidden.append(self.forward(inputs, sight, cache, cancel))
        hidden[-1][-1, 0].item()  # waits for a GPU: callers time a prompt's chunks, and cancel between two of them
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        return TorchLogits(self.logits(torch.cat(hidden)[list(logits_rows)]))

    @torch.inference_mode()
    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        inputs = self.embedded(indices(tokens, self.device))
        return self._score(inputs, [ScorePass(tokens, parents, cache, skipped)], cancel)[0]

    @torch.inference_mode()
    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """Compute several trees at once; see `CausalModel.score_together`."""
        tokens = np.concatenate([each.tokens for each in passes])
        return self._score(self.embedded(indices(tokens, self.device)), passes, NEVER)

    @torch.inference_mode()
    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        shares = torch.from_numpy(weights).to(self.device)[:, :, None]
        embeddings = self.embedded(indices(tokens, self.device))  # [rows, tokens, hidden]
        inputs = (shares * embeddings.float()).sum(dim=1).to(embeddings.dtype)
        return self._score(inputs, [ScorePass(tokens, parents, cache)], cancel)[0]

    def embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of tokens.  # [...] → # [..., hidden]."""
        embeddings, scale = self.weights.embeddings.rows(tokens), self.architecture.embedding_scale
        return embeddings if scale == 1.0 else embeddings * scale

    def _score(self, inputs: torch.Tensor, passes: Sequence[ScorePass], cancel: CancelToken) -> list[Logits]:
        """Compute trees whose inputs follow each other; return the logits of each.  inputs: # [rows, hidden]."""
        parts, owned = list[Part](), list[tuple[TorchCache, IntArray]]()
        for each in passes:
            rows = len(each.parents)
            cache = self.own(each.cache, each.cache.length + each.cache.kept + rows)
            parents = cache.with_kept(each.parents)
            sight = Sight.of_tree(parents, cache.kept, cache.length, self.device)
            parts.append((rows, self.kernels.attention(sight, self.architecture), cache.store))
            owned.append((cache, parents))
        logits = TorchLogits(self.logits(self._layers(inputs, parts, cancel)))
        for cache, parents in owned:
            cache.parents = parents
        ends = np.cumsum([rows for rows, *_ in parts]).tolist()
        firsts = [end - len(each.parents) + each.skipped for end, each in zip(ends, passes, strict=True)]
        return [RowSlice(logits, first, end - first) for first, end in zip(firsts, ends, strict=True)]

    def own(self, cache: KVCache, needed: int) -> TorchCache:
        """Return a cache of this model with at least `needed` slots; see `TreeCache.own`."""
        return TorchCache.own(cache, needed)

    def forward(self, x: torch.Tensor, sight: Sight, cache: TorchCache, cancel: CancelToken = NEVER) -> torch.Tensor:
        """Return hidden states after the last layer.  x: embeddings; # [rows, hidden] → # [rows, hidden].

        Raises:
            CancelledError: Before the next layer after `cancel`.
        """
        return self._layers(x, [(len(x), self.kernels.attention(sight, self.architecture), cache.store)], cancel)

    def _layers(self, x: torch.Tensor, parts: Sequence[Part], cancel: CancelToken) -> torch.Tensor:
        for index, layer in enumerate(self.weights.layers):
            cancel.raise_if_cancelled()
            h = self._norm(x, layer.attention_norm)
            out = layer.attention_out(self._attended(index, layer, h, parts))
            x = self._added(x, out, layer.attention_post_norm)
            h = layer.up(self._norm(x, layer.mlp_norm))  # [rows, intermediate, or twice that]
            x = self._added(x, layer.down(self._activated(h)), layer.mlp_post_norm)
        return x

    def _added(self, x: torch.Tensor, out: torch.Tensor, post_norm: Norm | None) -> torch.Tensor:
        if post_norm is not None:
            out = self._norm(out, post_norm)
        return torch.add(x, out, alpha=self.architecture.residual_scale)

    def _activated(self, up: torch.Tensor) -> torch.Tensor:
        if not self.architecture.gated:
            return self._activation(up)
        gate, up = up.chunk(2, dim=-1)
        return self._activation(gate) * up

    def _attended(self, index: int, layer: LayerWeights, x: torch.Tensor, parts: Sequence[Part]) -> torch.Tensor:
        """Write the keys and values of rows, and return what the rows take from those that they see.

        # [rows, hidden] → # [rows, heads · head_dim]
        """
        heads, groups = self.architecture.heads, self.shape.kv_heads
        folded = layer.qkv(x).view(len(x), heads + 2 * groups, -1).transpose(0, 1)
        q, k, v = folded.tensor_split((heads, heads + groups))  # [heads or kv_heads, rows, head_dim]
        if layer.query_norm is not None and layer.key_norm is not None:
            q, k = self._norm(q, layer.query_norm), self._norm(k, layer.key_norm)
        found, sizes = [], [rows for rows, _, _ in parts]
        for q_part, k_part, v_part, (_, attend, store) in zip(
            *(each.split(sizes, dim=1) for each in (q, k, v)), parts, strict=True
        ):
            found.append(attend(q_part, k_part, v_part, index, store).transpose(0, 1).reshape(q_part.shape[1], -1))
        return torch.cat(found)

    def _norm(self, x: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Compute x / √(mean(x²) + ε) · weight in float32, of centred x plus a bias if norms are centred.

        Source: "Root Mean Square Layer Normalization", equation 4; "Layer Normalization", equation 4.
        """
        wide, width, epsilon = x.to(norm.weight.dtype), norm.weight.shape, self.architecture.norm_epsilon
        if self.architecture.centred_norms:
            return torch.nn.functional.layer_norm(wide, width, norm.weight, norm.bias, epsilon).to(x.dtype)
        return torch.nn.functional.rms_norm(wide, width, norm.weight, epsilon).to(x.dtype)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token.  hidden: # [rows, hidden] → # [rows, vocabulary]."""
        return self.weights.head(self._norm(hidden, self.weights.final_norm))
