"""Weights that are not those of the config are an error on every path, which names the tensor and both shapes."""

import json
import shutil

import gguf
import numpy as np
import pytest

from completion.errors import ModelDamagedError, ModelError
from completion.model.architecture import read_architecture
from completion.model.dense.transformers_model import TransformersModel
from completion.model.int8.packed_weights import load_packed
from completion.model.store.converted_models import GGUF_NAME
from completion.model.store.tensor_shapes import check_shapes, checked_tensors
from completion.model.transformer import has_int8_instructions, load_transformer
from tests.completion.model.int8.test_quantized import in_blocks, written
from tests.tiny_gguf import write_record

DEEPER = {"num_hidden_layers": 5, "layer_types": None}
FLATTER = {"num_hidden_layers": 2, "layer_types": None}
MISMATCHES = [
    (
        {"vocab_size": 400},
        r"model\.embed_tokens\.weight .* the shape \(384, 128\), but config.json implies \(400, 128\)",
    ),
    ({"vocab_size": 300}, r"\(384, 128\), but config.json implies \(300, 128\)"),
    ({"num_key_value_heads": 4}, r"layers\.0\.self_attn\.k_proj\.weight .* \(64, 128\), .* implies \(128, 128\)"),
    ({"intermediate_size": 640}, r"layers\.0\.mlp\.gate_proj\.weight .* \(320, 128\), .* implies \(640, 128\)"),
    ({"hidden_size": 256, "head_dim": 32}, r"\(384, 128\), but config.json implies \(384, 256\)"),
    (DEEPER, r"lacks the tensor model\.layers\.3\.input_layernorm\.weight"),
    (FLATTER, r"has the tensor model\.layers\.2\.input_layernorm\.weight, .* there are 2 layers"),
]


def with_config(folder, target, values):
    shutil.copytree(folder, target, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | values))
    return target


def test_every_family_has_the_shapes_of_its_config(tiny):
    architecture = read_architecture(tiny[0])
    tensors = checked_tensors(tiny[0], architecture)
    for name, shape in tensors.shapes.items():
        with pytest.raises(ModelDamagedError, match=name.replace(".", r"\.")):
            check_shapes(tensors.shapes | {name: (*shape[:-1], shape[-1] + 1)}, architecture, tiny[0])


@pytest.mark.parametrize(("values", "named"), MISMATCHES)
@pytest.mark.parametrize("backend", ["int8", "q4", "fp32"])
def test_a_config_of_another_model_is_named_instead_of_run(tiny_qwen, tmp_path, backend, values, named):
    if backend != "fp32" and not has_int8_instructions():
        pytest.skip("this processor lacks AVX2")
    source = in_blocks(tiny_qwen[0], tmp_path / "blocks") if backend == "q4" else tiny_qwen[0]
    folder = with_config(source, tmp_path / "model", values)
    with pytest.raises(ModelDamagedError, match=named):
        load_transformer(folder, "fp32") if backend == "fp32" else load_packed(folder, tmp_path, backend)


@pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")
def test_a_gguf_file_of_another_model_is_named(tiny_qwen, tmp_path):
    folder = in_blocks(tiny_qwen[0], tmp_path / "blocks")
    writer = gguf.GGUFWriter(folder / GGUF_NAME, "qwen2")
    writer.add_tensor("token_embd.weight", np.zeros((96, 128), np.float32))
    written(writer)
    write_record(folder)
    with pytest.raises(ModelDamagedError, match=r"model\.gguf has the shape \(96, 128\), .* implies \(384, 128\)"):
        load_packed(folder, tmp_path, "q4")


@pytest.mark.parametrize(("values", "named"), MISMATCHES)
def test_transformers_does_not_run_a_config_of_another_model(tiny_qwen, tmp_path, values, named):
    with pytest.raises(ModelError, match=rf"transformers cannot load|{named}"):
        TransformersModel.load(with_config(tiny_qwen[0], tmp_path / "model", values))


def test_a_config_that_contradicts_itself_is_a_model_error(tiny_qwen, tmp_path):
    with pytest.raises(ModelError, match="transformers cannot load"):  # it lists the kinds of three layers
        TransformersModel.load(with_config(tiny_qwen[0], tmp_path / "model", {"num_hidden_layers": 2}))
