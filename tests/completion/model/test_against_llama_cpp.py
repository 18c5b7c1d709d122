"""Tokenizers built from a GGUF vocabulary split text exactly as llama.cpp does."""

import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from completion.errors import UnsupportedModelError
from completion.model.store.gguf_file import GgufFile
from completion.model.store.gguf_tokenizer import tokenizer_json
from completion.model.tokenizer import CodeTokenizer
from tests.tiny_gguf import write_tiny_gguf

PIECES = (
    *(
        "def ",
        "self",
        "return",
        "the ",
        "__",
        "x1",
        "a",
        "B",
        "\n",
        "\n\n",
        "    ",
        "\t",
        " ",
        "  ",
        "\r\n",
        "\v",
        "\f",
    ),
    *("'s", "'LL", "12", "3456", "7", "٣", "½", "²", "Ⅷ", "!!", "((", "):", ".", "_", "<|fim_middle|>", "\x1f"),
    *("é", "e\u0301", "日本", "한", "ー", "。", "🙂", "ﬁ", "\u00a0", "\u2003", "\u200b", "\x85", "\u2028"),
)
SPLITTINGS = ("qwen2", "llama-bpe", "deepseek-coder", "smollm", "starcoder", "refact", "command-r", "gpt-2", "llama")


def some_texts():
    chooser = random.Random(0)
    texts = ["".join(chooser.choices(PIECES, k=chooser.randint(1, 40))) for _ in range(200)]
    return [*texts, Path(__file__).read_text(encoding="utf-8")]


def read_tokenizer(path):
    return CodeTokenizer(Tokenizer.from_str(tokenizer_json(GgufFile(path).field)))


@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_text_is_tokenized_as_in_llama_cpp(tmp_path, splitting):
    llama_cpp = pytest.importorskip("llama_cpp", reason="the extra `bench` is not installed")
    path = write_tiny_gguf(tmp_path / "tiny.gguf", tokenizer=splitting)
    theirs, ours = llama_cpp.Llama(str(path), vocab_only=True, verbose=False), read_tokenizer(path)
    for text in some_texts():
        assert ours.encode(text) == theirs.tokenize(text.encode(), add_bos=False, special=False), text


def test_an_unknown_way_of_splitting_is_refused_with_its_name(tmp_path):
    with pytest.raises(UnsupportedModelError, match="'guesswork'"):
        read_tokenizer(write_tiny_gguf(tmp_path / "tiny.gguf", tokenizer="guesswork"))
