"""The decoder in torch: float32 for tests, bfloat16 wherever the int8 path does not run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from completion.errors import ModelError
from completion.model.architecture import Architecture, read_architecture
from completion.model.causal_model import KVCache
from completion.model.dense.kv_cache import TorchCache, rotate
from completion.model.dense.torch_logits import TorchLogits
from completion.model.draft_rows import tree_layout
from completion.model.rotary import rotary_tables
from completion.model.weights import Weights, read_weights
from drafting.arrays import FloatArray, IntArray

PREFILL_ROWS = 256
"""Maximum number of rows in one pass of a prefill; it bounds the memory of masks and scores."""


def load_dense(folder: Path, dtype: torch.dtype, threads: int | None, device: str = "cpu") -> DenseTransformer:
    """Load a converted model with unquantised weights; see `transformer.load_transformer`."""
    if threads is not None:
        torch.set_num_threads(threads)
    architecture = read_architecture(folder)
    return DenseTransformer(architecture, read_weights(folder, architecture, dtype, device))


@dataclass(frozen=True, slots=True)
class Rows:
    """Input of one forward pass.

    Attributes:
        inputs: Embeddings.  # [rows, hidden]
        slots: Slots that receive keys and values.  # [rows]
        positions: Rotary positions.  # [rows]
        mask: Added to attention scores: 0 for a slot that the row sees, −∞ for others.  # [rows, span]
    """

    inputs: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor


class DenseTransformer:
    """Scores rows of tokens on top of a cached past."""

    def __init__(self, architecture: Architecture, weights: Weights) -> None:
        self.architecture, self.weights = architecture, weights
        self.shape = architecture.shape
        self.device = str(weights.embeddings.device)
        tables = rotary_tables(architecture, architecture.max_positions)
        self._cosines, self._sines = (torch.from_numpy(table).to(self.device) for table in tables)

    def new_cache(self, capacity: int) -> TorchCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return TorchCache(self.shape, capacity, self.weights.embeddings.dtype, self._cosines, self._sines)

    @torch.inference_mode()
    def prefill(
        self, tokens: IntArray, slots: IntArray, cache: KVCache, logits_rows: Sequence[int] = ()
    ) -> TorchLogits:
        """Compute tokens into given slots; see `CausalModel.prefill`."""
        cache = self.own(cache, int(slots[-1]) + 1)
        hidden = []
        for start in range(0, len(tokens), PREFILL_ROWS):
            chunk = slots[start : start + PREFILL_ROWS]
            visible = np.arange(int(chunk[-1]) + 1) <= chunk[:, None]
            inputs = self._embedded(tokens[start : start + PREFILL_ROWS])
            hidden.append(self.forward(self._rows(inputs, chunk, chunk, visible), cache))
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        return TorchLogits(self.logits(torch.cat(hidden)[list(logits_rows)]))

    @torch.inference_mode()
    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache) -> TorchLogits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        return self._score(self._embedded(tokens), parents, cache)

    @torch.inference_mode()
    def superpose(self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache) -> TorchLogits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        shares = torch.from_numpy(weights).to(self.device)[:, :, None]
        embeddings = self._embedded(tokens)  # [rows, tokens, hidden]
        return self._score((shares * embeddings.float()).sum(dim=1).to(embeddings.dtype), parents, cache)

    def _embedded(self, tokens: IntArray) -> torch.Tensor:
        return self.weights.embeddings[torch.from_numpy(tokens.astype(np.int64)).to(self.device)]

    def _score(self, inputs: torch.Tensor, parents: IntArray, cache: KVCache) -> TorchLogits:
        cache = self.own(cache, cache.length + cache.kept + len(inputs))
        parents = cache.with_kept(parents)
        slots, positions, visible = tree_layout(parents, cache.kept, cache.length)
        hidden = self.forward(self._rows(inputs, slots, positions, visible), cache)
        cache.parents = parents
        return TorchLogits(self.logits(hidden))

    def own(self, cache: KVCache, needed: int) -> TorchCache:
        """Return a cache of this kind with at least `needed` slots allocated.

        Raises:
            ModelError: The cache is of another kind, or its capacity is smaller.
        """
        if not isinstance(cache, TorchCache):
            raise ModelError(
                f"A cache of type {type(cache).__name__} belongs to another model. Make one with new_cache."
            )
        cache.reserve(needed)
        return cache

    def _rows(self, inputs: torch.Tensor, slots: IntArray, positions: IntArray, visible: np.ndarray) -> Rows:
        mask = torch.zeros(visible.shape).masked_fill_(torch.from_numpy(~visible), -math.inf)
        indices = [torch.from_numpy(array.astype(np.int64)).to(self.device) for array in (slots, positions)]
        return Rows(inputs, indices[0], indices[1], mask.to(self.device))

    def forward(self, rows: Rows, cache: TorchCache) -> torch.Tensor:
        """Return hidden states after the last layer.  # [rows, hidden]."""
        x = rows.inputs
        for index, layer in enumerate(self.weights.layers):
            h = self._norm(x, layer.attention_norm)
            qkv = layer.qkv(h)  # [rows, (heads + 2 kv_heads) · head_dim]
            x = x + layer.attention_out(self._attention(index, qkv, rows, cache))
            gate, up = layer.gate_up(self._norm(x, layer.mlp_norm)).chunk(2, dim=-1)  # [rows, intermediate] twice
            x = x + layer.down(torch.nn.functional.silu(gate) * up)
        return x

    def _attention(self, index: int, qkv: torch.Tensor, rows: Rows, cache: TorchCache) -> torch.Tensor:
        """Compute softmax(q kᵀ / √d + mask) v.  # [rows, heads · head_dim].

        The query heads that share a KV head are folded into its rows.
        """
        heads, groups, width = self.architecture.heads, self.shape.kv_heads, self.shape.head_dim
        count, span = rows.mask.shape
        cosines, sines = self._cosines[rows.positions], self._sines[rows.positions]  # [rows, head_dim / 2]
        folded = qkv.view(count, heads + 2 * groups, width).transpose(0, 1)
        q, k, v = folded.tensor_split((heads, heads + groups))  # [heads or kv_heads, rows, head_dim]
        cache.write(index, rows.slots, k, rotate(k, cosines, sines), v)
        q = rotate(q, cosines, sines).reshape(groups, -1, width)  # [kv_heads, heads/kv_heads · rows, head_dim]
        scores = (q @ cache.keys[index, :, :span].mT).float() / math.sqrt(width)
        scores = scores.view(groups, -1, count, span) + rows.mask
        weights = scores.softmax(-1).to(qkv.dtype).view(groups, -1, span)
        out = weights @ cache.values[index, :, :span]  # [kv_heads, heads/kv_heads · rows, head_dim]
        return out.view(heads, count, width).transpose(0, 1).reshape(count, -1)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute x / √(mean(x²) + ε) · weight ("Root Mean Square Layer Normalization", equation 4), in float32."""
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.architecture.norm_epsilon)
        return weight * (wide * scale).to(x.dtype)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token.  hidden: # [rows, hidden] → # [rows, vocabulary]."""
        return torch.nn.functional.linear(self._norm(hidden, self.weights.final_norm), self.weights.head)
