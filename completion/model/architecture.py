"""Architecture of a decoder: its sizes, and the few ways in which families differ, read from its config.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError, UnsupportedModelError
from completion.model.causal_model import ModelShape
from completion.model.families import Family, family_of

MAX_POSITIONS = 32_768
"""Maximum number of positions of any model: more than a prompt ever has, since rotary tables need memory for each."""
Activation = Literal["silu", "gelu_tanh"]
_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}
_MAX_SIZE = 1 << 24
"""Maximum of any size: 64 times the largest vocabulary that exists. Products of two fit in 64 bits."""
_MAX_LAYERS = 1 << 12
"""Maximum number of layers, some of which are listed: 32 times that of the deepest model that exists."""
_LLAMA_DEFAULTS = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "rope_theta": 10_000.0}
_LAYER_TYPES = frozenset({"attention", "full_attention", "sliding_attention"})
_UNSUPPORTED = ("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Sizes and constants of a decoder with RoPE and grouped-query attention; the defaults are Llama's.

    Attributes:
        tied_head: Whether the head is the matrix of the embeddings.
        attention_scale: Factor on products of queries and keys.
        rotary: Rotary embedding of the layers that see all positions.
        window_rotary: Rotary embedding of windowed layers, None if it is the same.
        window: Number of last positions that a row of a windowed layer sees, its own included.
        centred_norms: Whether norms remove the mean and add a bias (LayerNorm), instead of RMSNorm.
        gated: Whether the MLP is down(activation(gate) · up), instead of down(activation(up)).
        residual_scale: Factor on the outputs of attention and MLP before they are added.
    """

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
    attention_scale: float
    rotary: RotaryScaling
    window_rotary: RotaryScaling | None = None
    window: int = 0
    windowed_layers: tuple[int, ...] = ()
    centred_norms: bool = False
    gated: bool = True
    activation: Activation = "silu"
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logits_scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers that kernels divide by, index with or allocate from, wherever they come from.

        Raises:
            ValueError: One of them is no number of its kind, or out of its range.
        """
        for name, kind in Architecture.__annotations__.items():
            value = getattr(self, name)
            if kind == "int" and name != "window":
                check_size(name, value, _MAX_LAYERS if name == "layers" else _MAX_SIZE)
            if kind == "float":
                if not isinstance(value, int | float) or not math.isfinite(value):
                    raise ValueError(f"{name} is {value!r}; it must be a finite number")
                object.__setattr__(self, name, float(value))  # kernels take no integer in its place
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads evenly")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}; rotary embeddings turn pairs of channels")
        if self.windowed_layers:
            check_size("sliding_window", self.window)
            if not set(self.windowed_layers) <= set(range(self.layers)):
                raise ValueError(f"of {self.layers} layers, these cannot have windows: {self.windowed_layers}")

    @property
    def shape(self) -> ModelShape:
        """The sizes that the engine needs."""
        return ModelShape(
            self.family, self.vocabulary_size, self.layers, self.kv_heads, self.head_dim, self.max_positions
        )

    @property
    def first_angles(self) -> list[int]:
        """Row of the rotary tables at which each layer's part starts; see `RotaryTables`.  # [layers]."""
        second = 0 if self.window_rotary is None else self.max_positions
        return [second if layer in self.windowed_layers else 0 for layer in range(self.layers)]

    def window_of(self, layer: int) -> int:
        """Return the number of last positions that a row of a layer sees: for most layers, all that there are."""
        return self.window if layer in self.windowed_layers else self.max_positions

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Architecture:
        """Return the architecture of the values of its `asdict`."""
        rotary = {name: RotaryScaling(**values[name]) for name in ("rotary", "window_rotary") if values[name]}
        return cls(**{**values, **rotary, "windowed_layers": tuple(values["windowed_layers"])})


def check_size(name: str, value: object, maximum: int = _MAX_SIZE) -> None:
    """Check a number of channels, layers or tokens.

    Raises:
        ValueError: It is no whole number, or no model has so few or many.
    """
    if type(value) is not int or not 1 <= value <= maximum:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from 1 to {maximum:,}")


def architecture_default(model_type: str, name: str) -> Any:  # noqa: ANN401  (values of many types)
    """Return what transformers takes for a value that a config lacks."""
    return {**_LLAMA_DEFAULTS, **family_of(model_type).defaults}[name]


def read_architecture(folder: Path) -> Architecture:
    """Read a model folder's config.

    Raises:
        ModelNotFoundError: The folder does not exist or has no config.
        ModelError: The config cannot be read.
        ModelDamagedError: The config is no JSON, lacks a size, or has one that no model can have.
        UnsupportedModelError: The family, its activation or its attention is not supported.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise ModelNotFoundError(f"The folder {folder} holds no config.json. Name a converted model's folder.")
    try:
        return architecture_of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}). Make it readable.") from error
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"  # the representation of an error of decoding has the whole file
        raise ModelDamagedError(f"{path} is damaged or incomplete ({why}). Download the model again.") from error


def architecture_of(given: Mapping[str, Any]) -> Architecture:
    """Translate the values of a config.json as transformers understands them.

    Raises:
        KeyError: A size is missing.
        ValueError: A number is out of its range.
        UnsupportedModelError: As in `read_architecture`.
    """
    family = family_of(str(given.get("model_type")))
    config = {**_LLAMA_DEFAULTS, **family.defaults, **given}
    _check_supported(config, family)
    hidden, heads, layers = config["hidden_size"], config["num_attention_heads"], config["num_hidden_layers"]
    check_size("num_hidden_layers", layers, _MAX_LAYERS)  # before they are listed
    head_dim = config.get("head_dim") or hidden // heads
    windowed = _windowed_layers(config, layers) if "sliding_window" in family.defaults else ()
    has_window_rotary = "rope_local_base_freq" in family.defaults
    return Architecture(
        family=config["model_type"],
        hidden_size=hidden,
        layers=layers,
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        intermediate_size=config.get("shared_intermediate_size") or config["intermediate_size"],
        vocabulary_size=config["vocab_size"],
        max_positions=min(config["max_position_embeddings"], MAX_POSITIONS),
        norm_epsilon=config.get("norm_epsilon", config["rms_norm_eps"]),
        tied_head=bool(config["tie_word_embeddings"]),
        attention_scale=config.get("attention_multiplier", config.get("query_pre_attn_scalar", head_dim) ** -0.5),
        rotary=_rotary_scaling(config, "full_attention"),
        window_rotary=_rotary_scaling(config, "sliding_attention") if has_window_rotary else None,
        window=config["sliding_window"] if windowed else 0,
        windowed_layers=windowed,
        centred_norms=family.centred_norms,
        gated=family.gated,
        activation=_activation(config),
        embedding_scale=hidden**0.5 if family.scales_embeddings else config.get("embedding_multiplier", 1.0),
        residual_scale=config.get("residual_multiplier", 1.0),
        logits_scale=1.0 / config.get("logits_scaling", 1.0),
    )


def _check_supported(config: Mapping[str, Any], family: Family) -> None:
    unusual = [option for option in _UNSUPPORTED if config.get(option)]
    unusual += [option for option, value in family.required.items() if config.get(option) != value]
    unusual += ["layer_types"] * (not _LAYER_TYPES.issuperset(config.get("layer_types") or ()))
    for option in unusual:
        raise UnsupportedModelError(f"{option} = {config.get(option)!r} is not supported. Use --backend transformers.")


def _activation(config: Mapping[str, Any]) -> Activation:
    name = config.get("hidden_activation") or config["hidden_act"]
    if name not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise UnsupportedModelError(
            f"The activation {name!r} is not supported; {known} are. Use --backend transformers."
        )
    return _ACTIVATIONS[name]


def _windowed_layers(config: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    """Return the indices of the layers with a sliding window."""
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return ()
    if kinds := config.get("layer_types"):
        return tuple(layer for layer, kind in enumerate(kinds) if kind == "sliding_attention")
    if pattern := config.get("sliding_window_pattern"):
        return tuple(layer for layer in range(layers) if (layer + 1) % pattern)
    return tuple(range(max(config.get("max_window_layers", 0), 0), layers))


def _rotary_scaling(config: Mapping[str, Any], layers: str) -> RotaryScaling:
    """Read either spelling: `rope_parameters` (transformers 5), or `rope_theta` with `rope_scaling`.

    `layers` is "full_attention" or "sliding_attention". They differ in Gemma 3 only.

    Raises:
        UnsupportedModelError: Only a part of a head's channels is rotated.
    """
    values = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    local = layers == "sliding_attention"
    theta = config["rope_local_base_freq" if local else "rope_theta"]
    values = dict(values[layers]) if layers in values else {} if local else values
    kind = values.pop("rope_type", None) or values.pop("type", None) or "default"
    theta = values.pop("rope_theta", None) or theta
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
    if numbers.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)) != 1.0:
        raise UnsupportedModelError("Partial rotary embeddings are not supported. Use --backend transformers.")
    if kind == "yarn":
        numbers.setdefault("original_max_position_embeddings", float(config["max_position_embeddings"]))
    return RotaryScaling(kind, float(theta), numbers)
