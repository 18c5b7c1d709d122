"""Each family's tokens are recognised, and a prompt has the order that the family was trained with."""

import pytest
from tokenizers import AddedToken

from completion.errors import UnsupportedModelError
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.fim_format import FORMATS, detect_format
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import PromptPlanner
from completion.request import CompletionRequest
from tests.tiny_models import tiny_tokenizer

STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
BARS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
SEED = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<[begin▁of▁sentence]>", "<[end▁of▁sentence]>")
CASES = [
    ("qwen3-coder", (*BARS, "<|repo_name|>", "<|file_sep|>"), "<|fim_prefix|><|fim_suffix|>S<|fim_middle|>P"),
    ("granite-3.3-2b-base", (*STARCODER, "<filename>"), "<fim_prefix>P<fim_suffix>S<fim_middle>"),
    ("granite-4.0-1b-base", BARS, "<|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>"),
    ("starcoder2-3b", (*STARCODER, "<repo_name>", "<file_sep>"), "<fim_prefix>P<fim_suffix>S<fim_middle>"),
    ("Mellum-4b-base", (*STARCODER, "<filename>"), "<fim_suffix>S<fim_prefix>P<fim_middle>"),
    ("codegemma-2b", (*BARS, "<bos>", "<eos>"), "<bos><|fim_prefix|>P<|fim_suffix|>S<|fim_middle|>"),
    ("Seed-Coder-8B-Base", SEED, "<[fim-suffix]>S<[fim-prefix]>P<[fim-middle]>"),
    ("zeta-2", SEED, "<[fim-suffix]>S<[fim-prefix]>P<[fim-middle]>"),
    ("Codestral-22B-v0.1", ("<s>", "</s>", "[PREFIX]", "[SUFFIX]", "[MIDDLE]"), "<s>[SUFFIX]S[PREFIX]P"),
    (
        "deepseek-coder-1.3b-base",
        ("<｜begin▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
        "<｜begin▁of▁sentence｜><｜fim▁begin｜>P<｜fim▁hole｜>S<｜fim▁end｜>",
    ),
]


@pytest.mark.parametrize(("name", "special", "expected"), CASES, ids=[name for name, *_ in CASES])
def test_a_family_gets_its_own_order_and_stops_on_its_own_tokens(name, special, expected):
    model = tiny_tokenizer()
    model.add_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer = CodeTokenizer(model)
    known = {token: tokenizer.special[token] for token in special}
    planner = PromptPlanner(tokenizer, detect_format(known, name))
    prompt = planner.plan(CompletionRequest("P", "S", "python", healing=False), PromptBudget())
    assert model.decode(list(prompt.tokens), skip_special_tokens=False) == expected
    assert set(known.values()) <= tokenizer.stop_ids


def test_a_tokenizer_without_fim_tokens_is_an_error():
    with pytest.raises(UnsupportedModelError, match="Seed-Coder"):
        detect_format({"<s>": 1}, "some-chat-model")


def test_formats_have_names_of_their_own():
    assert len({each.name for each in FORMATS}) == len(FORMATS)
