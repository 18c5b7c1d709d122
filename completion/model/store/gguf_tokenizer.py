"""Builds a `tokenizer.json` of the tokenizers library from the vocabulary in a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from completion.errors import ModelDamagedError, UnsupportedModelError

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED = 1, 2, 3, 4, 5  # GGUF's token types

_USE_SAFETENSORS = "Give a folder of safetensors with its own tokenizer.json instead."

_SPACE = "\u2581"  # the space in sentencepiece vocabularies

# Regular expressions that the models' own tokenizers split text with, by GGUF's name for them.
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = QWEN2_SPLIT.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_SPLITS: dict[str, tuple[str, ...]] = {
    "qwen2": (QWEN2_SPLIT,),
    "llama-bpe": (_LLAMA3,),
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
}
_GPT2_WITH_DIGITS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
_GPT2 = frozenset({"gpt-2"})


def tokenizer_json(field: Callable[..., Any]) -> str:
    """Return the text of `tokenizer.json`.

    Args:
        field: Returns the value of a GGUF field by name, or a default if one is passed.

    Raises:
        ModelDamagedError: The tokens, their types and merges do not belong together.
        UnsupportedModelError: The kind of vocabulary, or its way of splitting text, is unknown.
    """
    try:
        return str(_tokenizer(field).to_str())
    except Exception as error:
        if type(error) not in {Exception, TypeError, ValueError, IndexError, KeyError}:
            raise  # the tokenizers library raises the first of these classes itself
        raise ModelDamagedError(
            f"The vocabulary in the GGUF file is damaged ({error}). Download the file again."
        ) from error


def _tokenizer(field: Callable[..., Any]) -> Tokenizer:
    kind = field("tokenizer.ggml.model")
    tokens: list[str] = field("tokenizer.ggml.tokens")
    types: list[int] = field("tokenizer.ggml.token_type")  # without them, control tokens would be text
    while types[-1] == _UNUSED:  # rows of the embedding without a token
        types.pop()
    tokens = tokens[: len(types)]
    if kind == "gpt2":
        merges = [tuple(merge.split(" ", 1)) for merge in field("tokenizer.ggml.merges")]
        tokenizer = _byte_level(tokens, merges, str(field("tokenizer.ggml.pre", "unnamed")))
    elif kind == "llama":
        tokenizer = _sentencepiece(tokens, types, field("tokenizer.ggml.scores")[: len(types)])
    else:
        raise UnsupportedModelError(
            f"The GGUF file has a tokenizer of kind {kind!r}; known are gpt2 and llama. {_USE_SAFETENSORS}"
        )
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, types, strict=True) if _is_special(k)]
    )
    return tokenizer


def _is_special(kind: int) -> bool:
    return kind in {_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED}


def _byte_level(tokens: list[str], merges: list[Any], pre: str) -> Tokenizer:
    """Build a tokenizer in which every character of a token is one byte."""
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(_splitters(pre))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _splitters(pre: str) -> list[Any]:
    if pre in _GPT2:
        return [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if pre in _GPT2_WITH_DIGITS:
        return [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if pre not in _SPLITS:
        known = ", ".join(sorted(_GPT2 | _GPT2_WITH_DIGITS | _SPLITS.keys()))
        raise UnsupportedModelError(
            f"The GGUF file splits text in the way called {pre!r}; known are {known}. {_USE_SAFETENSORS}"
        )
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in _SPLITS[pre]]
    return [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def _sentencepiece(tokens: list[str], types: list[int], scores: list[float]) -> Tokenizer:
    """Build a tokenizer of text pieces with a byte fallback, as in Llama and CodeLlama."""
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pieces = {t: s for t, k, s in zip(tokens, types, scores, strict=True) if k == _NORMAL}
    unknown = next((token for token, kind in zip(tokens, types, strict=True) if kind == _UNKNOWN), None)
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=_merges(pieces), unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _merges(pieces: dict[str, float]) -> list[tuple[str, str]]:
    """Return merges in the order in which sentencepiece makes them: the join with the best score first."""
    ranked: Iterable[tuple[float, str]] = ((score, piece) for piece, score in pieces.items())
    return [
        (piece[:cut], piece[cut:])
        for _, piece in sorted(ranked, key=lambda entry: -entry[0])
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
