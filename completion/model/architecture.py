"""Architecture of a decoder of the Qwen2 and Llama families: sizes, norms, rotary scaling, read from its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from completion.errors import ModelNotFoundError, UnsupportedModelError
from completion.model.causal_model import ModelShape

FAMILIES = ("qwen2", "llama")
"""transformers' `model_type`s that share one forward pass."""


@dataclass(frozen=True, slots=True)
class RotaryScaling:
    """Base of the rotary embedding, and how it is stretched beyond the trained length.

    Attributes:
        kind: "default", "linear", "dynamic", "llama3" or "yarn".
        theta: Base of the frequencies.
        parameters: Parameters of the kind, by their names in the model's config.
    """

    kind: str
    theta: float
    parameters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes and constants of a decoder with RMSNorm, RoPE, grouped-query attention and a gated MLP."""

    family: str
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocabulary_size: int
    max_positions: int
    norm_epsilon: float
    tied_head: bool
    rotary: RotaryScaling

    @property
    def shape(self) -> ModelShape:
        """The sizes that the engine needs."""
        return ModelShape(
            self.family, self.vocabulary_size, self.layers, self.kv_heads, self.head_dim, self.max_positions
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Architecture:
        """Return the architecture that `to_json` wrote."""
        return cls(**{**values, "rotary": RotaryScaling(**values["rotary"])})


def read_architecture(folder: Path) -> Architecture:
    """Read a model folder's config through transformers.

    Raises:
        ModelNotFoundError: The folder does not exist or has no config.
        UnsupportedModelError: The family, its activation or its attention is not supported.
    """
    from transformers import AutoConfig  # noqa: PLC0415  (a second of import that packed weights save)

    if not (folder / "config.json").is_file():  # transformers would take the folder for a name on the hub
        raise ModelNotFoundError(f"The folder {folder} holds no config.json. Name a converted model's folder.")
    return architecture_of(AutoConfig.from_pretrained(folder, local_files_only=True))


def architecture_of(config: Any) -> Architecture:  # noqa: ANN401  (transformers' configs share no typed base)
    """Translate a transformers config.

    Raises:
        UnsupportedModelError: As in `read_architecture`.
    """
    _check_supported(config)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Architecture(
        family=config.model_type,
        hidden_size=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        intermediate_size=config.intermediate_size,
        vocabulary_size=config.vocab_size,
        max_positions=config.max_position_embeddings,
        norm_epsilon=config.rms_norm_eps,
        tied_head=bool(config.tie_word_embeddings),
        rotary=_rotary_scaling(config),
    )


def _check_supported(config: Any) -> None:  # noqa: ANN401
    if config.model_type not in FAMILIES:
        raise UnsupportedModelError(
            f"The model family {config.model_type!r} has no built-in forward pass (built in: {', '.join(FAMILIES)})."
            " Use --backend transformers for it."
        )
    if config.hidden_act not in {"silu", "swish"}:
        raise UnsupportedModelError(
            f"The activation {config.hidden_act!r} is not supported; only SiLU is. Use --backend transformers."
        )
    if getattr(config, "use_sliding_window", False):
        raise UnsupportedModelError("Sliding-window attention is not supported. Use --backend transformers.")


def _rotary_scaling(config: Any) -> RotaryScaling:  # noqa: ANN401
    """Read either spelling: `rope_parameters` (transformers 5), or `rope_theta` with `rope_scaling`."""
    values = dict(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {})
    kind = values.pop("rope_type", None) or values.pop("type", None) or "default"
    theta = values.pop("rope_theta", None) or getattr(config, "rope_theta", None) or 10000.0
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
    if kind == "yarn":
        numbers.setdefault("original_max_position_embeddings", float(config.max_position_embeddings))
    return RotaryScaling(kind, float(theta), numbers)
