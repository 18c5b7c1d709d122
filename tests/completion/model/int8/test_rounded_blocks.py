"""Models that do not come from a GGUF file are rounded to blocks, by how large the inputs of their columns are."""

import shutil
from collections import defaultdict

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

from completion.errors import ModelDamagedError
from completion.model.int8 import calibration
from completion.model.int8.kernel_arguments import MAX_ROWS
from completion.model.int8.kernels.block_kinds import KINDS
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.tokenizer import CodeTokenizer
from completion.model.transformer import has_int8_instructions, load_transformer
from tests.completion.model.conftest import SIZES, with_tokenizer
from tests.completion.model.rows import rows_of, slots, tokens

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@pytest.fixture(scope="module")
def packed_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


@pytest.fixture
def folder(tiny, tmp_path):
    return with_tokenizer(shutil.copytree(tiny[0], tmp_path / "model"))


@pytest.fixture
def wide(tmp_path):
    """A model whose widths are multiples of 256, in nine layers."""
    torch.manual_seed(0)
    sizes = SIZES | {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 9}
    Qwen2ForCausalLM(Qwen2Config(**sizes)).save_pretrained(tmp_path / "wide")
    return with_tokenizer(tmp_path / "wide")


def test_in_every_family_logits_are_close_to_float32(folder, packed_folder):
    model = QuantizedTransformer(load_packed(folder, packed_folder, "q4"), 2)
    dense, ids = load_transformer(folder, "fp32"), tokens(70)
    ours = rows_of(model.prefill(ids, slots(70), model.new_cache(128), range(70)), 70)
    expected = rows_of(dense.prefill(ids, slots(70), dense.new_cache(128), range(70)), 70)
    assert (
        np.abs(ours - expected).mean() < 0.5 * np.abs(expected).mean()
    )  # chaotic: plain rounding to Q5_0 gives up to 0.53


def test_in_every_family_importance_is_the_mean_square_of_what_matrices_multiply(tiny, folder, packed_folder):
    tokenizer, module = CodeTokenizer.from_folder(folder), tiny[1]
    found = calibration.importance_of(load_packed(folder, packed_folder), tokenizer, 1)
    squares = defaultdict(list)

    def note(name):
        return lambda _module, inputs: squares[name].append(inputs[0][0].double().square())

    hooks = [
        each.register_forward_pre_hook(note(name))
        for name, each in module.named_modules()
        if isinstance(each, torch.nn.Linear)
    ]
    ids = torch.tensor(tokenizer.encode(calibration.text()))
    with torch.no_grad():
        for part in torch.tensor_split(ids, -(-len(ids) // MAX_ROWS)):
            module(part[None])
    for hook in hooks:
        hook.remove()
    assert squares.keys() <= found.keys()
    for name, parts in squares.items():
        expected = torch.cat(parts).mean(dim=0)
        np.testing.assert_allclose(found[name], (expected / expected.mean()).clamp(min=0.01), rtol=0.2, atol=0.05)


def test_widths_of_whole_units_have_four_bits_and_six_where_rounding_costs_most(wide, packed_folder):
    sections = load_packed(wide, packed_folder, "q4").sections

    def kinds(name):
        return [KINDS[number].name for number in sections[f"{name}.strips"][:, 1]]

    assert set(kinds("0.up")) == set(kinds("0.attention_out")) == {"Q4_K"}
    assert set(kinds("final.qkv")) == {"Q6_K"}
    downs = [kinds(f"{layer}.down")[0] for layer in range(9)]
    assert downs == ["Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q6_K", "Q6_K"]
    assert kinds("0.qkv")[-1] == "Q6_K"
    assert kinds("1.qkv") == ["Q4_K"] * len(kinds("1.qkv"))


def test_a_head_that_is_not_in_the_files_is_the_embeddings_with_the_bits_of_a_head(wide, packed_folder):
    weights = load_file(wide / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, wide / "model.safetensors", {"format": "pt"})
    found = load_packed(wide, packed_folder, "q4").sections["final.qkv.strips"][:, 1]
    assert {KINDS[number].name for number in found} == {"Q6_K"}


def test_nothing_but_the_packed_form_stays(wide, packed_folder):
    files = {file.name for file in load_packed(wide, packed_folder, "q4").folder.iterdir()}
    assert files == {"weights.bin", "index.json"}


def test_a_column_whose_inputs_are_large_loses_less(wide, tmp_path, packed_folder):
    """A norm's weight of 30 makes one column of the next matrices count 900 times as much as others."""
    other = shutil.copytree(wide, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    weights["model.layers.0.input_layernorm.weight"][7] = 30
    save_file(weights, other / "model.safetensors", {"format": "pt"})
    importance = [
        calibration.importance_of(load_packed(each, packed_folder), CodeTokenizer.from_folder(each), 1)
        for each in (wide, other)
    ]
    name = "model.layers.0.self_attn.q_proj"
    assert importance[1][name][7] / np.median(importance[1][name]) > 300
    assert importance[0][name][7] / np.median(importance[0][name]) < 10


def test_a_model_without_a_tokenizer_says_so(tiny_qwen, tmp_path):
    with pytest.raises(ModelDamagedError, match="The tokenizer in"):
        load_packed(tiny_qwen[0], tmp_path, "q4")


def test_progress_is_reported(wide, tmp_path):
    sentences = []
    load_packed(wide, tmp_path, "q4", progress=lambda sentence, fraction: sentences.append((sentence, fraction)))
    assert list(dict.fromkeys(sentence for sentence, _ in sentences)) == [
        "Packing the weights",
        "Measuring what rounding costs",
    ]
    assert all(0 <= fraction <= 1 for _, fraction in sentences)
