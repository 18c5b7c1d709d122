"""How each model family writes fill-in-the-middle: its special tokens, its stops, and the layout it does best in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from completion.errors import UnsupportedModelError
from completion.request import Layout


@dataclass(frozen=True, slots=True)
class FimFormat:
    """The special tokens of a family, as text.

    Attributes:
        name: The family, for messages.
        prefix: Opens the text before the cursor.
        suffix: Opens the text after the cursor.
        middle: Asks for the text at the cursor.
        repository: Opens the repository's name; "" if the family has none.
        file_separator: Opens a file's path; "" if the family has none.
        begin: Must stand first in every prompt; "" if nothing must.
        layout: The order that was measured best (`python -m benchmarks.quality` measures it again).
    """

    name: str
    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    file_separator: str = ""
    begin: str = ""
    layout: Layout = Layout.PREFIX_FIRST

    def required(self) -> tuple[str, ...]:
        """Every special token that the tokenizer must have for this format."""
        named = (self.prefix, self.suffix, self.middle, self.repository, self.file_separator, self.begin)
        return tuple(token for token in named if token)


FORMATS: tuple[FimFormat, ...] = (
    FimFormat(
        "Qwen2.5-Coder",
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        "<|repo_name|>",
        "<|file_sep|>",
        layout=Layout.SUFFIX_FIRST,
    ),
    FimFormat("StarCoder2", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
    FimFormat("StarCoder, Granite", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimFormat("CodeGemma, CodeQwen", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    FimFormat("DeepSeek-Coder", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", begin="<｜begin▁of▁sentence｜>"),
    FimFormat("CodeLlama", "▁<PRE>", "▁<SUF>", "▁<MID>", begin="<s>"),
)
"""Known formats; the first whose tokens the tokenizer has is used, so richer ones stand before poorer ones."""


def detect_format(special_tokens: Mapping[str, int], model: str) -> FimFormat:
    """The format that a tokenizer's own special tokens allow.

    Args:
        special_tokens: The tokenizer's special tokens with their ids.
        model: The model's name, for the message.

    Raises:
        UnsupportedModelError: None of the known formats fits; a guess would give nonsense.
    """
    for fim_format in FORMATS:
        if all(token in special_tokens for token in fim_format.required()):
            return fim_format
    known = ", ".join(fim_format.name for fim_format in FORMATS)
    raise UnsupportedModelError(
        f"{model} has no fill-in-the-middle tokens that draftline knows (known: {known}). "
        "Choose a code model that was trained to fill in the middle, such as Qwen2.5-Coder."
    )
