"""Causal models of the transformers library as `CausalModel`: reference in tests, fallback for other families."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from completion.cancellation import NEVER, CancelToken
from completion.errors import ModelDamagedError, ModelError, UnsupportedModelError
from completion.memory import Held
from completion.model.causal_model import KVCache, Logits, ModelShape, ScorePass
from completion.model.dense.attention import Sight
from completion.model.dense.held_tensors import held_by
from completion.model.dense.kv_cache import Store, TorchCache, indices, rotate
from completion.model.logits import DenseLogits, without_first
from drafting.arrays import FloatArray, IntArray

PREFILL_ROWS = 256
"""Maximum number of rows in one pass of a prefill; it bounds the memory of masks and scores."""

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_MOVABLE_ROTARY = frozenset({"default", "linear", "dynamic", "llama3", "yarn"})


class ComputedStore(Store):
    """Keys as transformers' attention layers rotated them, and values.

    A moved key is rotated from the key as it was computed rather than from an earlier rotation, so no error adds up.
    """

    __slots__ = ("_model",)

    def __init__(self, model: TransformersModel) -> None:
        kinds = dict.fromkeys(("keys", "computed_keys", "values"), (model.shape.head_dim, model.dtype))
        super().__init__(model.shape, torch.device("cpu"), kinds)
        self.tensors["positions"] = torch.zeros((1, 1, 0, 1), dtype=torch.int64)  # that keys were computed for
        self._model = model

    def move(self, sources: Tensor, targets: Tensor) -> None:
        """See `Store`.

        Raises:
            UnsupportedModelError: The family has no plain rotary positions. Nothing was moved.
        """
        _ = self._model.rotary_frequencies
        super().move(sources, targets)

    def turn(self, slots: Tensor) -> None:
        """See `Store`."""
        computed, by = self.tensors["computed_keys"][:, :, slots], slots - self.tensors["positions"][0, 0, slots, 0]
        self.tensors["keys"][:, :, slots] = rotated(computed, by, self._model.rotary_frequencies)

    def write(self, layer: int, slots: Tensor, positions: Tensor, plain: Tensor, rotated: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """See `Store`. There are no keys before rotation."""
        self.tensors["positions"][0, 0, :, 0].index_copy_(0, slots, positions)
        for name, rows in (("keys", rotated), ("computed_keys", rotated), ("values", v)):
            self.tensors[name][layer].index_copy_(1, slots, rows)


class TransformersCache(TorchCache):
    """Keys and values of one sequence, which transformers' attention layers write to through `update`."""

    def __init__(self, model: TransformersModel, capacity: int) -> None:
        super().__init__(model.shape, capacity, ComputedStore(model))
        self._sight = Sight.of_slots(torch.zeros(1, dtype=torch.int64), 0)

    def begin(self, sight: Sight) -> None:
        """Set where the next forward pass writes, and how many slots it reads."""
        self._sight = sight

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Store rows of one layer; return all keys and values that they may see.  # [1, kv_heads, rows, head_dim]."""
        self.store.write(layer, self._sight.slots, self._sight.positions, keys[0], keys[0], values[0])
        all_keys, all_values = self.store.read(layer, self._sight.span)
        return all_keys[None], all_values[None]

    def get_seq_length(self, _layer: int = 0) -> int:
        """Return the number of committed slots; transformers calls this method."""
        return self.length

    def key(self, layer: int, slot: int) -> Tensor:
        """Return the rotated key in a slot.  # [kv_heads, 1, head_dim]."""
        return self.store.tensors["keys"][layer, :, slot : slot + 1].clone()


class TransformersModel:
    """Scores rows of tokens with transformers' own modules."""

    joint_requests = 1

    def __init__(self, module: Any, threads: int | None = None) -> None:  # noqa: ANN401 -- transformers is untyped
        if threads is not None:
            torch.set_num_threads(threads)
        self._module = module
        self.dtype: torch.dtype = module.dtype
        self.device = "cpu"
        self.shape = _shape_of(module.config)

    @classmethod
    def load(
        cls, folder: Path, dtype: Literal["fp32", "bf16"] = "fp32", threads: int | None = None
    ) -> TransformersModel:
        """Read a folder of safetensors.

        Raises:
            ModelError: transformers cannot load it; the message has the reason.
            ModelDamagedError: It has other layers than its config.
            UnsupportedModelError: Its attention does not cache keys and values of one shape.
        """
        from huggingface_hub.errors import StrictDataclassError  # noqa: PLC0415 -- as below
        from transformers import AutoModelForCausalLM  # noqa: PLC0415 -- seconds of import
        from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

        disable_progress_bar()
        logging.getLogger("transformers").setLevel(logging.ERROR)
        try:
            module, report = AutoModelForCausalLM.from_pretrained(
                folder, dtype=_DTYPES[dtype], local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, StrictDataclassError) as error:
            raise ModelError(f"transformers cannot load the model in {folder}: {error}") from error
        try:
            _check_layers(folder, module.config.num_hidden_layers, report)
            model = cls(module.eval(), threads)
            model._first_layer_key(0)
        except (RuntimeError, AttributeError, TypeError, LookupError) as error:
            raise UnsupportedModelError(
                f"Not every layer of {module.config.model_type!r} models caches keys and values of one shape. "
                "Use another model."
            ) from error
        return model

    def held_weights(self) -> Held:
        """Return where the weights are."""
        return held_by(self._module.parameters())

    def new_cache(self, capacity: int) -> TransformersCache:
        """Return an empty cache of at most `capacity` slots; see `CausalModel.new_cache`."""
        return TransformersCache(self, capacity)

    @torch.inference_mode()
    def prefill(
        self,
        tokens: IntArray,
        slots: IntArray,
        cache: KVCache,
        logits_rows: Sequence[int] = (),
        cancel: CancelToken = NEVER,
    ) -> Logits:
        """Compute tokens into given slots; see `CausalModel.prefill`."""
        cache = TransformersCache.own(cache, int(slots[-1]) + 1)
        logits = []
        for start in range(0, len(tokens), PREFILL_ROWS):
            cancel.raise_if_cancelled()
            chunk = slots[start : start + PREFILL_ROWS]
            wanted = [row - start for row in logits_rows if start <= row < start + len(chunk)]
            sight = Sight.of_slots(indices(chunk, self.device), int(chunk[-1]) + 1)
            logits.append(
                self._forward(indices(tokens[start : start + PREFILL_ROWS], self.device), sight, cache, wanted)
            )
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        chunks = np.asarray(logits_rows, dtype=np.int64) // PREFILL_ROWS
        return DenseLogits(np.concatenate(logits)[np.argsort(np.argsort(chunks, kind="stable"))])

    @torch.inference_mode()
    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        cancel.raise_if_cancelled()
        return without_first(self._score(indices(tokens, self.device), parents, cache), skipped, len(tokens))

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """Compute trees one after another; see `CausalModel.score_together`."""
        return [self.score(each.tokens, each.parents, each.cache, skipped=each.skipped) for each in passes]

    @torch.inference_mode()
    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        cancel.raise_if_cancelled()
        embeddings = self._module.get_input_embeddings()(indices(tokens, self.device))
        mixed = (torch.from_numpy(weights)[:, :, None] * embeddings.float()).sum(dim=1).to(self.dtype)
        return self._score(mixed, parents, cache)

    def _score(self, inputs: Tensor, parents: IntArray, cache: KVCache) -> Logits:
        cache = TransformersCache.own(cache, cache.length + cache.kept + len(inputs))
        parents = cache.with_kept(parents)
        sight = Sight.of_tree(parents, cache.kept, cache.length, self.device)
        logits = self._forward(inputs, sight, cache, range(len(inputs)))
        cache.parents = parents
        return DenseLogits(logits)

    @cached_property
    def rotary_frequencies(self) -> Tensor:
        """Angle between neighbouring positions of each channel pair, in float64.  # [rotary_dim / 2].

        Raises:
            UnsupportedModelError: Keys of this family do not turn with their position in the plain way.
        """
        rotary = getattr(self._module.base_model, "rotary_emb", None)
        if rotary is None or getattr(rotary, "rope_type", None) not in _MOVABLE_ROTARY:
            raise UnsupportedModelError(self._immovable())
        frequencies: Tensor = rotary.inv_freq.double()
        first, later = (self._first_layer_key(position) for position in (0, 7))
        turned = rotated(first, torch.tensor([7]), frequencies)
        size = float(later.abs().max())
        if size == 0 or not torch.allclose(turned.float(), later.float(), rtol=0.02, atol=0.02 * size):
            raise UnsupportedModelError(self._immovable())
        return frequencies

    def _immovable(self) -> str:
        return (
            f"The cached keys of {self.shape.family!r} models cannot be moved to other positions. "
            "Use the cache mode 'exact' with this model."
        )

    @torch.inference_mode()
    def _first_layer_key(self, position: int) -> Tensor:
        """Return a token's key at a position in the first layer, where it depends on nothing else."""
        cache, slot = TransformersCache.own(self.new_cache(1), 1), torch.zeros(1, dtype=torch.int64)
        token = slot + self.shape.vocabulary_size // 2  # the first tokens are often padding with zero keys
        self._forward(token, replace(Sight.of_slots(slot, 1), positions=slot + position), cache, ())
        return cache.key(0, 0)

    def _forward(
        self, inputs: Tensor, sight: Sight, cache: TransformersCache, logits_rows: Sequence[int]
    ) -> FloatArray:
        """Run the module.  inputs: tokens # [rows], or embeddings # [rows, hidden]; → # [logits_rows, vocabulary]."""
        cache.begin(sight)
        output = self._module(
            **{"input_ids" if inputs.dim() == 1 else "inputs_embeds": inputs[None]},
            attention_mask=sight.mask(0).clamp(min=torch.finfo(self.dtype).min).to(self.dtype)[None, None],
            position_ids=sight.positions[None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=torch.tensor(list(logits_rows), dtype=torch.int64),
        )
        logits: FloatArray = output.logits[0].float().numpy()
        return logits


def rotated(keys: Tensor, by: Tensor, frequencies: Tensor) -> Tensor:
    """Turn channel pairs (i, i + rotary_dim/2) of keys by a number of positions ("RoFormer", equation 34).

    Args:
        keys: Rotated keys; channels after the rotary ones stay unchanged.  # [..., rows, head_dim]
        by: Numbers of positions, which may be negative.  # [rows]
        frequencies: Frequencies of the pairs, in float64.  # [rotary_dim / 2]
    """
    angles = by.double()[:, None] * frequencies
    turning, unrotated = keys.float().tensor_split([2 * len(frequencies)], dim=-1)
    return torch.cat((rotate(turning, angles.cos().float(), angles.sin().float()), unrotated), dim=-1).to(keys.dtype)


def _check_layers(folder: Path, layers: int, report: Mapping[str, Iterable[str]]) -> None:
    """Check that the files have the layers of the config. transformers would fill one with random numbers, or omit it.

    Raises:
        ModelDamagedError: They have more or fewer.
    """
    numbered = [(name, re.search(r"\.(\d+)\.", name)) for name in report["unexpected_keys"]]
    surplus = [name for name, number in numbered if number and int(number[1]) >= layers]
    missing = [name for name in report["missing_keys"] if not name.endswith(".bias")]  # which is zero then
    for verb, names in (("lacks", missing), ("has", surplus)):
        if names:
            raise ModelDamagedError(
                f"{folder} {verb} the tensor {min(names)}, but config.json says that there are {layers} layers. "
                "One of them is damaged or of another model: download the model again."
            )


def _shape_of(config: Any) -> ModelShape:  # noqa: ANN401 -- transformers' configs share no typed base
    heads = config.num_attention_heads
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    window = config.sliding_window if sliding else config.max_position_embeddings
    return ModelShape(
        family=config.model_type,
        vocabulary_size=config.vocab_size,
        layers=config.num_hidden_layers,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        max_positions=min(window, config.max_position_embeddings),
    )
