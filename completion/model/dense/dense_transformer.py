"""The decoder in torch: float32 for tests, bfloat16 wherever the int8 path does not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from completion.cancellation import NEVER, CancelToken
from completion.model.architecture import Activation, Architecture, read_architecture
from completion.model.causal_model import KVCache
from completion.model.dense.kv_cache import Angles, ExactStore, Int8Store, Store, TorchCache, rotate
from completion.model.dense.torch_logits import TorchLogits
from completion.model.dense.weights import LayerWeights, Norm, Weights, read_weights
from completion.model.draft_rows import tree_layout
from completion.model.rotary import rotary_tables
from drafting.arrays import FloatArray, IntArray

_ACTIVATIONS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": torch.nn.functional.silu,
    "gelu_tanh": partial(torch.nn.functional.gelu, approximate="tanh"),
}
PREFILL_ROWS = 256
"""Maximum number of rows in one pass of a prefill; it bounds the memory of masks and scores."""


def load_dense(folder: Path, dtype: torch.dtype, threads: int | None) -> DenseTransformer:
    """Load a converted model with unquantised weights; see `transformer.load_transformer`."""
    if threads is not None:
        torch.set_num_threads(threads)
    architecture = read_architecture(folder)
    return DenseTransformer(architecture, read_weights(folder, architecture, dtype))


@dataclass(frozen=True, slots=True)
class Rows:
    """Input of one forward pass.

    Attributes:
        inputs: Embeddings.  # [rows, hidden]
        slots: Slots that receive keys and values.  # [rows]
        positions: Rotary positions.  # [rows]
        mask: Added to attention scores: 0 for a slot that the row sees, −∞ for others.  # [rows, span]
        near_mask: The same for windowed layers.  # [rows, span]
    """

    inputs: torch.Tensor
    slots: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    near_mask: torch.Tensor


def masked(visible: torch.Tensor, architecture: Architecture) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the masks of `Rows` for what each row sees.

    The slots that a row sees have ascending positions without gaps, so a window's slots are the last of them.

    Args:
        visible: Which slots each row sees.  # bool [rows, span]
        architecture: Tells the window.
    """
    zeros = torch.zeros(visible.shape, device=visible.device)
    mask = zeros.masked_fill(~visible, -math.inf)
    if not architecture.windowed_layers or architecture.window >= visible.shape[1]:
        return mask, mask
    seen = visible.cumsum(dim=1)
    return mask, mask.masked_fill(seen <= seen[:, -1:] - architecture.window, -math.inf)


class DenseTransformer:
    """Scores rows of tokens on top of a cached past.

    Args:
        architecture: Sizes and constants.
        weights: All weights.
        int8_cache: Whether keys and values are stored in 8 bits, in about a third of the memory.
    """

    def __init__(self, architecture: Architecture, weights: Weights, *, int8_cache: bool = False) -> None:
        self.architecture, self.weights = architecture, weights
        self._int8_cache = int8_cache
        self.shape = architecture.shape
        self.device = str(weights.final_norm.weight.device)
        cosines, sines = (torch.from_numpy(table).to(self.device) for table in rotary_tables(architecture))
        self.angles = Angles(cosines, sines, tuple(architecture.first_angles))
        self._windowed = frozenset(architecture.windowed_layers)
        self._activation = _ACTIVATIONS[architecture.activation]

    def new_cache(self, capacity: int) -> TorchCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return TorchCache(self.shape, capacity, self.store())

    def store(self) -> Store:
        """Return an empty store of keys and values."""
        dtype = self.weights.embeddings.dtype
        if not self._int8_cache:
            return ExactStore(self.shape, dtype, self.angles)
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
        cache = TorchCache.own(cache, int(slots[-1]) + 1)
        hidden = []
        for start in range(0, len(tokens), PREFILL_ROWS):
            chunk = slots[start : start + PREFILL_ROWS]
            visible = np.arange(int(chunk[-1]) + 1) <= chunk[:, None]
            inputs = self.embedded(self._indices(tokens[start : start + PREFILL_ROWS]))
            hidden.append(self.forward(self._rows(inputs, chunk, chunk, visible), cache, cancel))
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        return TorchLogits(self.logits(torch.cat(hidden)[list(logits_rows)]))

    @torch.inference_mode()
    def score(self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER) -> TorchLogits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        return self._score(self.embedded(self._indices(tokens)), parents, cache, cancel)

    @torch.inference_mode()
    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> TorchLogits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        shares = torch.from_numpy(weights).to(self.device)[:, :, None]
        embeddings = self.embedded(self._indices(tokens))  # [rows, tokens, hidden]
        return self._score((shares * embeddings.float()).sum(dim=1).to(embeddings.dtype), parents, cache, cancel)

    def embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of tokens.  # [...] → # [..., hidden]."""
        embeddings, scale = self.weights.embeddings.rows(tokens), self.architecture.embedding_scale
        return embeddings if scale == 1.0 else embeddings * scale

    def _indices(self, values: IntArray) -> torch.Tensor:
        return torch.from_numpy(values.astype(np.int64)).to(self.device)

    def _score(self, inputs: torch.Tensor, parents: IntArray, cache: KVCache, cancel: CancelToken) -> TorchLogits:
        cache = TorchCache.own(cache, cache.length + cache.kept + len(inputs))
        parents = cache.with_kept(parents)
        slots, positions, visible = tree_layout(parents, cache.kept, cache.length)
        hidden = self.forward(self._rows(inputs, slots, positions, visible), cache, cancel)
        cache.parents = parents
        return TorchLogits(self.logits(hidden))

    def _rows(self, inputs: torch.Tensor, slots: IntArray, positions: IntArray, visible: np.ndarray) -> Rows:
        masks = masked(torch.from_numpy(visible), self.architecture)
        return Rows(
            inputs, self._indices(slots), self._indices(positions), masks[0].to(self.device), masks[1].to(self.device)
        )

    def forward(self, rows: Rows, cache: TorchCache, cancel: CancelToken = NEVER) -> torch.Tensor:
        """Return hidden states after the last layer.  # [rows, hidden].

        Raises:
            CancelledError: Before the next layer after `cancel`.
        """
        x = rows.inputs
        for index, layer in enumerate(self.weights.layers):
            cancel.raise_if_cancelled()
            h = self._norm(x, layer.attention_norm)
            x = self._added(
                x, layer.attention_out(self._attention(index, layer, h, rows, cache)), layer.attention_post_norm
            )
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

    def _attention(
        self, index: int, layer: LayerWeights, x: torch.Tensor, rows: Rows, cache: TorchCache
    ) -> torch.Tensor:
        """Compute softmax(scale · q kᵀ + mask) v.  # [rows, heads · head_dim].

        The query heads that share a KV head are folded into its rows.
        """
        heads, groups, width = self.architecture.heads, self.shape.kv_heads, self.shape.head_dim
        mask = rows.near_mask if index in self._windowed else rows.mask
        count, span = mask.shape
        cosines, sines = self.angles.of_layer(index, rows.positions)  # [rows, head_dim / 2]
        folded = layer.qkv(x).view(count, heads + 2 * groups, width).transpose(0, 1)
        q, k, v = folded.tensor_split((heads, heads + groups))  # [heads or kv_heads, rows, head_dim]
        if layer.query_norm is not None and layer.key_norm is not None:
            q, k = self._norm(q, layer.query_norm), self._norm(k, layer.key_norm)
        cache.store.write(index, rows.slots, rows.positions, k, rotate(k, cosines, sines), v)
        keys, values = cache.store.read(index, span)
        q = rotate(q, cosines, sines).reshape(groups, -1, width)  # [kv_heads, heads/kv_heads · rows, head_dim]
        scores = (q @ keys.mT).float() * self.architecture.attention_scale
        scores = scores.view(groups, -1, count, span) + mask
        weights = scores.softmax(-1).to(x.dtype).view(groups, -1, span)
        out = weights @ values  # [kv_heads, heads/kv_heads · rows, head_dim]
        return out.view(heads, count, width).transpose(0, 1).reshape(count, -1)

    def _norm(self, x: torch.Tensor, norm: Norm) -> torch.Tensor:
        """Compute x / √(mean(x²) + ε) · weight in float32, of centred x plus a bias if norms are centred.

        Source: "Root Mean Square Layer Normalization", equation 4; "Layer Normalization", equation 4.
        """
        wide = x.float()
        if self.architecture.centred_norms:
            wide = wide - wide.mean(-1, keepdim=True)
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.architecture.norm_epsilon)
        result = (norm.weight * (wide * scale).to(norm.weight.dtype)).to(x.dtype)
        return result if norm.bias is None else result + norm.bias

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token.  hidden: # [rows, hidden] → # [rows, vocabulary]."""
        return self.weights.head(self._norm(hidden, self.weights.final_norm))
