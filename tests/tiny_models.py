"""Small real models with random weights and a real tokenizer, which tests can write in a moment."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from completion.model.store.gguf_tokenizer import QWEN2_SPLIT

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, LAYERS = 64, 4, 2, 16, 128, 2
MAX_POSITIONS = 4096
VOCABULARY_SIZE = 704  # rows of the embedding: a few more than the tokenizer has tokens, as in real models

SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)

STACK = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("pop from an empty stack")
        return self.items.pop()
"""

CORPUS = (
    '''
def add(first, second):
    """Return the sum of first and second."""
    return first + second

'''
    + STACK
    + """
for index, value in enumerate(values):
    if value is None or index > 10:
        continue
    print(f"{index}: {value}")

import json
from pathlib import Path

with open(path, "r", encoding="utf-8") as file:
    data = json.load(file)

function greet(name) {
    const message = `Hello, ${name}!`;
    console.log(message);
    return message.length > 0 ? true : false;
}

export const total = items.filter((item) => item.price !== undefined).map((item) => item.price * 2);

if err != nil {
    return nil, fmt.Errorf("cannot read %s: %w", path, err)
}

public static void main(String[] args) {
    for (int i = 0; i < args.length; i++) {
        System.out.println(args[i]);
    }
}
"""
)


def write_tiny_model(folder: Path, family: str = "qwen2", *, seed: int = 0, head_dim: int = HEAD_DIM) -> Path:
    """Write config.json, tokenizer.json and model.safetensors of a 2-layer model.

    Args:
        folder: New folder.
        family: "qwen2" (biases on q, k, v; untied head) or "llama" (no biases; tied head).
        seed: Seed of the random weights.
        head_dim: Channels of a head; the int8 path needs 32.
    """
    folder.mkdir(parents=True)
    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(
        json.dumps(tiny_config(tokenizer, family) | {"head_dim": head_dim}), encoding="utf-8"
    )
    weights = _weights(family, seed, head_dim)
    for name in {"model.embed_tokens.weight", "lm_head.weight"} & weights.keys():
        weights[name][tokenizer.get_vocab_size() :] *= (
            0.01  # rows without a token never have the best logit, as in real models
        )
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tiny_tokenizer() -> Tokenizer:
    """Return a byte-level BPE tokenizer of about 600 tokens that splits like Qwen's, with its special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    # As in Qwen's own file, the fill-in-the-middle tokens are added but not "special".
    tokenizer.add_tokens([AddedToken(text, special="fim" not in text, normalized=False) for text in SPECIALS])
    return tokenizer


def tiny_config(tokenizer: Tokenizer, family: str) -> dict[str, object]:
    """Return the config.json of a tiny model."""
    return {
        "architectures": [{"qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM"}[family]],
        "model_type": family,
        "dtype": "bfloat16",
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": family == "llama",
        "bos_token_id": tokenizer.token_to_id("<|endoftext|>"),
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
    }


def _weights(family: str, seed: int, head_dim: int) -> dict[str, torch.Tensor]:
    """Return random weights, large enough that the best token stands out from the next."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(*shape, generator=generator)).to(torch.bfloat16)

    def norm() -> torch.Tensor:
        return (1.0 + 0.1 * torch.randn(HIDDEN, generator=generator)).to(torch.bfloat16)

    wide, narrow = HEADS * head_dim, KV_HEADS * head_dim
    weights = {"model.embed_tokens.weight": normal(VOCABULARY_SIZE, HIDDEN, scale=0.5), "model.norm.weight": norm()}
    if family == "qwen2":
        weights["lm_head.weight"] = normal(VOCABULARY_SIZE, HIDDEN, scale=0.5)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        weights[f"{prefix}.input_layernorm.weight"] = norm()
        weights[f"{prefix}.post_attention_layernorm.weight"] = norm()
        for name, rows in (("q_proj", wide), ("k_proj", narrow), ("v_proj", narrow)):
            weights[f"{prefix}.self_attn.{name}.weight"] = normal(rows, HIDDEN, scale=HIDDEN**-0.5)
            if family == "qwen2":
                weights[f"{prefix}.self_attn.{name}.bias"] = normal(rows, scale=0.5)
        weights[f"{prefix}.self_attn.o_proj.weight"] = normal(HIDDEN, wide, scale=wide**-0.5)
        for name, rows, columns in (
            ("gate_proj", INTERMEDIATE, HIDDEN),
            ("up_proj", INTERMEDIATE, HIDDEN),
            ("down_proj", HIDDEN, INTERMEDIATE),
        ):
            weights[f"{prefix}.mlp.{name}.weight"] = normal(rows, columns, scale=columns**-0.5)
    return weights
