"""Causal models of the transformers library as `CausalModel`: reference in tests, fallback for other families."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from completion.cancellation import NEVER, CancelToken
from completion.errors import ModelDamagedError, ModelError, UnsupportedModelError
from completion.memory import Held
from completion.model.causal_model import KVCache, Logits, ModelShape, ScorePass
from completion.model.dense.held_tensors import held_by
from completion.model.dense.transformers_cache import TransformersCache, rotated
from completion.model.draft_rows import tree_layout
from completion.model.logits import DenseLogits, without_first
from drafting.arrays import FloatArray, IntArray

PREFILL_ROWS = 256
"""Maximum number of rows in one pass of a prefill; it bounds the memory of masks and scores."""

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_MOVABLE_ROTARY = frozenset({"default", "linear", "dynamic", "llama3", "yarn"})


@dataclass(frozen=True, slots=True)
class _Rows:
    """Input of one forward pass.

    Attributes:
        tokens: Token ids.  # [rows]
        slots: Slots that receive keys and values.  # [rows]
        positions: Rotary positions.  # [rows]
        visible: Which slots each row sees.  # [rows, span]
    """

    tokens: IntArray
    slots: IntArray
    positions: IntArray
    visible: npt.NDArray[np.bool_]


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
        self._frequencies: torch.Tensor | None = None

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
        _check_layers(folder, module.config.num_hidden_layers, report)
        model = cls(module.eval(), threads)
        try:
            model._first_layer_key(0)
        except RuntimeError as error:
            raise UnsupportedModelError(
                f"The attention of {model.shape.family!r} models does not cache keys and values of one shape. "
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
            visible = np.arange(int(chunk[-1]) + 1) <= chunk[:, None]
            wanted = [row - start for row in logits_rows if start <= row < start + len(chunk)]
            rows = _Rows(tokens[start : start + PREFILL_ROWS], chunk, chunk, visible)
            logits.append(self._forward(rows, cache, wanted))
        cache.settle(max(cache.length, int(slots[-1]) + 1))
        chunks = np.asarray(logits_rows, dtype=np.int64) // PREFILL_ROWS
        return DenseLogits(np.concatenate(logits)[np.argsort(np.argsort(chunks, kind="stable"))])

    @torch.inference_mode()
    def score(
        self, tokens: IntArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER, skipped: int = 0
    ) -> Logits:
        """Compute a draft tree on top of the past; see `CausalModel.score`."""
        cancel.raise_if_cancelled()
        return without_first(self._score(tokens, None, parents, cache), skipped, len(tokens))

    def score_together(self, passes: Sequence[ScorePass]) -> Sequence[Logits]:
        """Compute trees one after another; see `CausalModel.score_together`."""
        return [self.score(each.tokens, each.parents, each.cache, skipped=each.skipped) for each in passes]

    @torch.inference_mode()
    def superpose(
        self, tokens: IntArray, weights: FloatArray, parents: IntArray, cache: KVCache, cancel: CancelToken = NEVER
    ) -> Logits:
        """Compute rows of weighted sums of embeddings; see `CausalModel.superpose`."""
        cancel.raise_if_cancelled()
        embeddings = self._module.get_input_embeddings()(torch.from_numpy(tokens.astype(np.int64)))
        mixed = (torch.from_numpy(weights)[:, :, None] * embeddings.float()).sum(dim=1).to(self.dtype)
        return self._score(tokens[:, 0], mixed, parents, cache)

    def _score(self, tokens: IntArray, inputs: torch.Tensor | None, parents: IntArray, cache: KVCache) -> Logits:
        cache = TransformersCache.own(cache, cache.length + cache.kept + len(tokens))
        parents = cache.with_kept(parents)
        slots, positions, visible = tree_layout(parents, cache.kept, cache.length)
        logits = self._forward(_Rows(tokens, slots, positions, visible), cache, range(len(tokens)), inputs)
        cache.parents = parents
        return DenseLogits(logits)

    def rotary_frequencies(self) -> torch.Tensor:
        """Return the angle between neighbouring positions of each channel pair, in float64.  # [rotary_dim / 2].

        Raises:
            UnsupportedModelError: Keys of this family do not turn with their position in the plain way.
        """
        if self._frequencies is None:
            self._frequencies = self._checked_frequencies()
        return self._frequencies

    def _checked_frequencies(self) -> torch.Tensor:
        """Return the module's frequencies if they explain how a key differs between positions."""
        rotary = getattr(self._module.base_model, "rotary_emb", None)
        if rotary is None or getattr(rotary, "rope_type", None) not in _MOVABLE_ROTARY:
            raise UnsupportedModelError(self._immovable())
        frequencies: torch.Tensor = rotary.inv_freq.double()
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
    def _first_layer_key(self, position: int) -> torch.Tensor:
        """Return a token's key at a position in the first layer, where it depends on nothing else."""
        cache = TransformersCache.own(self.new_cache(1), 1)
        slot = np.zeros(1, dtype=np.int32)
        token = slot + self.shape.vocabulary_size // 2  # the first tokens are often padding with zero keys
        self._forward(_Rows(token, slot, slot + position, np.ones((1, 1), dtype=np.bool_)), cache, ())
        return cache.key(0, 0)

    def _forward(
        self, rows: _Rows, cache: TransformersCache, logits_rows: Sequence[int], inputs: torch.Tensor | None = None
    ) -> np.ndarray:
        """Run the module, with `inputs` in place of token embeddings if given.  # [logits_rows, vocabulary]."""
        arrays = (rows.tokens, rows.positions, rows.slots)
        ids, at, where = (torch.from_numpy(array.astype(np.int64)) for array in arrays)
        mask = torch.zeros(rows.visible.shape, dtype=self.dtype)
        mask.masked_fill_(torch.from_numpy(~rows.visible), torch.finfo(self.dtype).min)
        cache.begin(where, at, rows.visible.shape[1])
        output = self._module(
            **({"input_ids": ids[None]} if inputs is None else {"inputs_embeds": inputs[None]}),
            attention_mask=mask[None, None],
            position_ids=at[None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=torch.tensor(list(logits_rows), dtype=torch.int64),
        )
        logits: np.ndarray = output.logits[0].float().numpy()
        return logits


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
