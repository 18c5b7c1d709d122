"""Prompts with a model's markers in every order that clients write, and texts that only mention markers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.host.dialects.marked_prompt import marked_request
from completion.prompt.fim_format import FORMATS
from completion.request import CompletionRequest, ContextFile, Layout

PRE, SUF, MID, REPO, SEP = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"
HEADER = f"{REPO}shop\n{SEP}a/cart.py\nCART = []\n{SEP}b.py\n\nx\n\n{SEP}src/main.py\n"
CONTEXT = (ContextFile("a/cart.py", "CART = []"), ContextFile("b.py", "\nx\n"))
IN_SHOP = CompletionRequest("P", "S", path="src/main.py", repository="shop", context=CONTEXT)
TEXTS = st.text(st.sampled_from("ab <|>[]\n\tfim_▁é"), max_size=30)


@pytest.mark.parametrize(
    "prompt",
    [
        f"{PRE}P{SUF}S{MID}",
        f"{PRE}{SUF}S{MID}P",
        f"{SUF}S{PRE}P{MID}",
        f"\n {PRE}P{SUF}S{MID}\n",
        "<fim_prefix>P<fim_suffix>S<fim_middle>",
        "<｜fim▁begin｜>P<｜fim▁hole｜>S<｜fim▁end｜>",
        "<｜begin▁of▁sentence｜><｜fim▁begin｜>P<｜fim▁hole｜>S<｜fim▁end｜>",
        "<PRE> P <SUF>S <MID>",
        "<|code_prefix|>P<|code_suffix|>S<|code_middle|>",
        "[SUFFIX]S[PREFIX]P",
    ],
)
def test_every_order_and_family_is_read_as_prefix_and_suffix(prompt):
    assert marked_request(prompt) == CompletionRequest("P", "S")


@pytest.mark.parametrize("order", ["{PRE}{P}{SUF}{S}{MID}", "{PRE}{SUF}{S}{MID}{P}", "{SUF}{S}{PRE}{P}{MID}"])
@pytest.mark.parametrize("family", [each for each in FORMATS if each.middle and each.name != "CodeLlama"])
@given(prefix=TEXTS, suffix=TEXTS)
def test_parts_come_back_as_they_were_written(order, family, prefix, suffix):
    markers = {"PRE": family.prefix, "SUF": family.suffix, "MID": family.middle}
    assert marked_request(order.format(P=prefix, S=suffix, **markers)) == CompletionRequest(prefix, suffix)


@pytest.mark.parametrize("order", [f"{PRE}P{SUF}S{MID}", f"{PRE}{SUF}S{MID}P", f"{SUF}S{PRE}P{MID}"])
def test_a_header_gives_repository_files_and_path(order):
    assert marked_request(HEADER + order) == IN_SHOP


def test_twinnys_headers_with_a_separator_only():
    prompt = f"{SEP}/* Some context */\n\n{SEP}{PRE}P{SUF}S{MID}"
    assert marked_request(prompt) == CompletionRequest("P", "S", context=(ContextFile("/* Some context */", ""),))


def test_a_header_without_a_suffix_continues_its_last_file():
    request = marked_request(HEADER + "def f():\n")
    assert request == replace(IN_SHOP, prefix="def f():\n", suffix="", layout=Layout.PREFIX_ONLY)
    assert request.language == "python"


def test_a_path_decides_on_the_language_and_the_engine_on_the_layout():
    request = marked_request(f"{SEP}lib/a.rs\n{SUF}S{PRE}P{MID}")
    assert (request.prefix, request.suffix, request.language, request.path) == ("P", "S", "rust", "lib/a.rs")
    assert request.layout is None


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "x = 1",
        f"text {PRE}P{SUF}S{MID}",
        f"{PRE}P{SUF}S",
        f"{PRE}P{MID}",
        f"{SUF}S{PRE}P",
        f"{MID}",
        "FORMATS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>']\n",
        "see [SUFFIX]S[PREFIX]P",
        "<PRE>P",
    ],
)
def test_other_prompts_are_a_prefix_as_a_whole(prompt):
    assert marked_request(prompt) == CompletionRequest(prompt, layout=Layout.PREFIX_ONLY)


def test_markers_within_a_part_stay_its_text():
    document = f'MARKERS = ["{PRE}", "{MID}"]\n'
    assert marked_request(f"{PRE}{document}{SUF}S{MID}") == CompletionRequest(document, "S")
    assert marked_request(f"{PRE}P{SUF}{document}{MID}") == CompletionRequest("P", document)
