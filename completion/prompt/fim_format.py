"""Fill-in-the-middle formats of the model families: their special tokens and their best layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from completion.errors import UnsupportedModelError
from completion.request import Layout


@dataclass(frozen=True, slots=True)
class FimFormat:
    """The special tokens of a model family, as text.

    Attributes:
        name: Name of the family, for messages.
        middle: Token before the text at the cursor, which the model generates; "" if the family has none.
        repository: Token before the repository's name; "" if the family has none.
        file_separator: Token before a file's path; "" if the family has none.
        begin: First token of every prompt; "" if the family has none.
        layout: Layout with the best measured quality (`python -m benchmarks.quality` measures it), or else the one that
            the family was trained with.
        named: Part of the names of the family's models, by which they are told from another family with the same
            tokens; "" if the tokens tell.
    """

    name: str
    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    file_separator: str = ""
    begin: str = ""
    layout: Layout = Layout.PREFIX_FIRST
    named: str = ""

    def required(self) -> tuple[str, ...]:
        """Return the special tokens that a tokenizer must have for this format."""
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
    FimFormat(  # published example: other files, each after <filename>, then suffix, prefix
        "Mellum",
        "<fim_prefix>",
        "<fim_suffix>",
        "<fim_middle>",
        file_separator="<filename>",
        layout=Layout.SUFFIX_BEFORE_PREFIX,
        named="mellum",
    ),
    FimFormat("StarCoder2", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
    FimFormat("StarCoder, Granite", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FimFormat("CodeGemma", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", begin="<bos>"),
    FimFormat("Granite 4, CodeQwen", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    FimFormat(  # "Seed-Coder: Let the Code Model Curate Data for Itself", section on FIM: suffix, prefix, middle
        "Seed-Coder, Zeta 2", "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", layout=Layout.SUFFIX_BEFORE_PREFIX
    ),
    FimFormat("DeepSeek-Coder", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", begin="<｜begin▁of▁sentence｜>"),
    FimFormat("CodeLlama", "▁<PRE>", "▁<SUF>", "▁<MID>", begin="<s>"),
    FimFormat("Codestral", "[PREFIX]", "[SUFFIX]", "", begin="<s>", layout=Layout.SUFFIX_BEFORE_PREFIX),
)
"""Known formats. The first whose tokens the tokenizer has is used, so formats with more tokens come first.

Zeta 1 is a Qwen2.5-Coder and has its tokens.
"""


def detect_format(special_tokens: Mapping[str, int], model: str) -> FimFormat:
    """Return the first format whose tokens a tokenizer has, and whose name the model's has.

    Raises:
        UnsupportedModelError: The tokenizer has the tokens of no known format.
    """
    for fim_format in FORMATS:
        has_tokens = all(token in special_tokens for token in fim_format.required())
        if has_tokens and fim_format.named in model.lower():
            return fim_format
    known = ", ".join(fim_format.name for fim_format in FORMATS)
    raise UnsupportedModelError(
        f"{model} has no fill-in-the-middle tokens that draftline knows (known: {known}). "
        "Choose a code model that was trained to fill in the middle, such as Qwen2.5-Coder."
    )
