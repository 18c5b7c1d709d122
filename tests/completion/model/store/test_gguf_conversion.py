"""Converting a GGUF file gives the safetensors that it was made from."""

import json
from dataclasses import replace

import gguf
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from completion.errors import ModelDamagedError, ModelError, StorageError, UnsupportedModelError
from completion.model.architecture import read_architecture
from completion.model.rotary import RotaryTables
from completion.model.store import gguf_conversion, gguf_file, gguf_source
from completion.model.store.gguf_conversion import convert_gguf
from completion.model.store.gguf_source import GgufTensors, has_kernels, known_files
from completion.progress import silent
from tests.completion.model.conftest import SIZES
from tests.tiny_gguf import write_gguf, write_tiny_gguf
from tests.tiny_models import VOCABULARY_SIZE


def convert(path, folder):
    folder.mkdir()
    convert_gguf([path], folder, silent)
    GgufTensors(folder).write(folder / "model.safetensors", silent)
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_converted_weights_equal_the_original_bit_for_bit(tmp_path, family):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", family)
    converted = convert(path, tmp_path / "converted")
    original = load_file(tmp_path / "tiny.gguf.folder" / "model.safetensors")
    assert converted.keys() == original.keys()
    for name, tensor in original.items():
        assert torch.equal(converted[name], tensor), name


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_transformers_gives_the_same_logits_from_the_converted_folder(tmp_path, family):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", family)
    convert(path, tmp_path / "converted")
    tokens = torch.arange(40)[None]
    folders = (tmp_path / "converted", tmp_path / "tiny.gguf.folder")
    with torch.inference_mode():
        ours, original = (
            AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)(tokens).logits for folder in folders
        )
    assert torch.equal(ours, original)


def test_a_family_in_gguf_has_the_architecture_and_the_weights_of_its_folder(tiny, tmp_path):
    folder, _ = tiny
    expected = read_architecture(folder)
    if expected.family not in gguf_conversion.ARCHITECTURES or expected.rotary.kind == "llama3":
        pytest.skip("no GGUF files of this family, or of this rotary scaling, are read")
    if expected.family == "qwen2" and expected.windowed_layers:
        pytest.skip("GGUF files do not tell which layers have windows")
    path = write_gguf(tmp_path / "model.gguf", folder, expected.family, kv_heads=expected.kv_heads)
    converted = convert(path, tmp_path / "converted")
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert torch.equal(converted.pop(name), tensor.to(torch.bfloat16)), name
    assert converted == {}
    found = read_architecture(tmp_path / "converted")
    assert replace(found, vocabulary_size=expected.vocabulary_size) == expected


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 128}


@pytest.mark.parametrize("more", [{}, {"beta_fast": 24.0, "beta_slow": 2.0}, {"attention_factor": 1.25}])
def test_a_yarn_file_turns_as_in_transformers(tmp_path, more):
    module = Qwen2ForCausalLM(Qwen2Config(**SIZES | {"vocab_size": VOCABULARY_SIZE}, rope_parameters=YARN | more))
    module.save_pretrained(tmp_path / "original")
    convert(write_gguf(tmp_path / "model.gguf", tmp_path / "original", "qwen2"), tmp_path / "converted")
    rotary, architecture = module.model.rotary_emb, read_architecture(tmp_path / "converted")
    angles = torch.arange(512)[:, None].float() * rotary.inv_freq
    tables = RotaryTables(architecture, architecture.max_positions)
    for ours, theirs in ((tables.cosines, angles.cos()), (tables.sines, angles.sin())):
        torch.testing.assert_close(torch.from_numpy(ours), theirs * rotary.attention_scaling, atol=1e-4, rtol=0)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "converted").model.rotary_emb
    assert torch.allclose(theirs.inv_freq, rotary.inv_freq)
    assert theirs.attention_scaling == pytest.approx(rotary.attention_scaling)


def test_rows_dequantised_in_chunks_equal_rows_dequantised_at_once(tmp_path, monkeypatch):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", "llama", quantisation="Q8_0")
    whole = convert(path, tmp_path / "whole")
    monkeypatch.setattr(gguf_file, "CHUNK_ELEMENTS", 1000)
    chunked = convert(path, tmp_path / "chunked")
    original = load_file(tmp_path / "tiny.gguf.folder" / "model.safetensors")
    for name, tensor in whole.items():
        assert torch.equal(chunked[name], tensor), name
        step = original[name].float().abs().max() / 127  # maximum step of an 8-bit block
        assert (tensor.float() - original[name].float()).abs().max() <= step, name


@pytest.mark.parametrize(("quantisation", "kept"), [("Q8_0", True), ("Q5_0", True), ("Q4_1", False), ("F32", False)])
def test_the_file_stays_where_it_is_and_is_known_to_have_blocks_with_kernels(tmp_path, quantisation, kept):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantisation=quantisation)
    convert(path, tmp_path / "converted")
    assert has_kernels(tmp_path / "converted") == kept
    assert known_files(tmp_path / "converted") == (path,)
    path.write_bytes(path.read_bytes() + b"\0")
    assert known_files(tmp_path / "converted") == ()


def test_the_output_head_is_tied_only_if_the_file_has_none(tmp_path):
    for family, tied in (("qwen2", False), ("llama", True)):
        convert(write_tiny_gguf(tmp_path / f"{family}.gguf", family), tmp_path / family)
        assert json.loads((tmp_path / family / "config.json").read_text())["tie_word_embeddings"] is tied


def test_progress_rises_to_one(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "out").mkdir()
    reported = []
    convert_gguf([path], tmp_path / "out", lambda _, fraction: reported.append(fraction))
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


@pytest.mark.parametrize("kept", [0, 3, 1000, 40_000])
def test_a_truncated_file_is_damaged(tmp_path, kept):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelDamagedError, match="truncated"):
        convert(path, tmp_path / "out")


def test_an_unknown_architecture_is_refused_with_its_name(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "odd.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedModelError, match="'mamba'"):
        convert(tmp_path / "odd.gguf", tmp_path / "out")


def test_too_little_disk_space_is_an_error_before_anything_is_written(tmp_path, monkeypatch):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    usage = gguf_source.require_free.__globals__["shutil"].disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("completion.model.store.disk.shutil.disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(StorageError, match="0 MB free"):
            convert(path, tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("fields", "kind", "factor"),
    [
        ({"rope.scaling.factor": 4.0}, "linear", 4.0),
        ({"rope.scale_linear": 4.0}, "linear", 4.0),
        ({"rope.scaling.factor": 4.0, "rope.scaling.type": "none"}, "default", None),
        ({"rope.scaling.type": "linear"}, "default", None),
        ({"rope.scaling.factor": 0.0}, "default", None),
    ],
)
def test_a_factor_without_a_kind_and_the_old_name_of_a_factor_turn_as_in_llama_cpp(tmp_path, fields, kind, factor):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", "llama")
    convert(with_fields(path, {f"llama.{name}": value for name, value in fields.items()}), tmp_path / "converted")
    found = read_architecture(tmp_path / "converted").rotary
    assert (found.kind, found.parameters.get("factor")) == (kind, factor)


def with_fields(path, values, *, without=(), endianess=gguf.GGUFEndian.LITTLE):
    """Write a GGUF file again with other metadata, or with the bytes of numbers in the other order."""
    reader, target = gguf.GGUFReader(path), path.with_name(f"other-{path.name}")
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents(), endianess=endianess)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in {"general.architecture", *without}:
            continue
        writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for name, value in values.items():
        kinds = {float: gguf.GGUFValueType.FLOAT32, str: gguf.GGUFValueType.STRING, int: gguf.GGUFValueType.UINT16}
        writer.add_key_value(name, value, kinds[type(value)])
    for tensor in reader.tensors:
        if tensor.name not in without:
            writer.add_tensor(tensor.name, tensor.data.copy(), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def test_a_file_in_the_other_byte_order_is_refused(tmp_path):
    path = with_fields(write_tiny_gguf(tmp_path / "tiny.gguf"), {}, endianess=gguf.GGUFEndian.BIG)
    with pytest.raises(UnsupportedModelError, match="the other byte order"):
        convert(path, tmp_path / "out")


def test_one_part_of_a_divided_model_is_refused_with_how_to_join_them(tmp_path):
    path = with_fields(write_tiny_gguf(tmp_path / "tiny.gguf"), {"split.no": 0, "split.count": 3})
    with pytest.raises(UnsupportedModelError, match=r"one of 3 parts of a model.*llama-gguf-split --merge"):
        convert(path, tmp_path / "out")


@pytest.mark.parametrize("name", ["tokenizer.ggml.token_type", "qwen2.block_count", "blk.1.ffn_up.weight"])
def test_a_file_that_lacks_a_field_or_a_tensor_is_refused_before_weights_are_written(tmp_path, name):
    path = with_fields(write_tiny_gguf(tmp_path / "tiny.gguf"), {}, without=[name])
    with pytest.raises(ModelDamagedError, match="lacks the"):
        convert(path, tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_blocks_that_cannot_be_read_are_refused_with_their_kind(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0")
    name = b"blk.0.ffn_up.weight"
    content = bytearray(path.read_bytes())
    start = content.index(name) + len(name) + 4 + 2 * 8  # dimensions: their number, and two of 8 bytes
    assert content[start : start + 4] == gguf.GGMLQuantizationType.Q8_0.to_bytes(4, "little")
    content[start : start + 4] = gguf.GGMLQuantizationType.I8.to_bytes(4, "little")
    path.write_bytes(content + bytes(1 << 20))
    with pytest.raises(UnsupportedModelError, match=r"'blk\.0\.ffn_up\.weight' as I8"):
        convert(path, tmp_path / "out")


@pytest.mark.parametrize("altered", [b"et uXn", b"et_urn"])
def test_tokens_and_merges_that_do_not_belong_together_are_damaged(tmp_path, altered):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert b"et urn" in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"et urn", altered))
    with pytest.raises(ModelDamagedError, match="The vocabulary in the GGUF file is damaged"):
        convert(path, tmp_path / "out")


def test_metadata_that_is_no_text_is_damaged(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes().replace(b"<|fim_middle|>", b"<|fim_middl\xff|>"))
    with pytest.raises(ModelDamagedError, match=r"The field tokenizer\.ggml\.tokens .* is damaged"):
        convert(path, tmp_path / "out")


def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path):
    path = tmp_path / "folder.gguf"
    path.mkdir()
    with pytest.raises(ModelError, match=r"folder\.gguf cannot be read"):
        convert(path, tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    ["attention.head_count", "attention.head_count_kv", "block_count", "embedding_length", "feed_forward_length"],
)
@pytest.mark.parametrize("value", [0, 3, 60_000, "many", -1.5, float("nan")])
def test_a_number_that_no_model_has_is_refused_before_weights_are_written(tmp_path, name, value):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", "llama")
    field = f"llama.{name}"
    with pytest.raises(ModelDamagedError):
        convert(with_fields(path, {field: value}, without={field}), tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_arrays_within_arrays_are_damaged(tmp_path):
    path, depth = write_tiny_gguf(tmp_path / "tiny.gguf"), 50_000
    name = b"tokenizer.ggml.tokens"
    data = path.read_bytes()
    at = data.index(name) + len(name)
    array = (9).to_bytes(4, "little") + (1).to_bytes(8, "little")
    path.write_bytes(data[:at] + (9).to_bytes(4, "little") + array * depth + data[at + 4 :])
    with pytest.raises(ModelDamagedError):
        convert(path, tmp_path / "out")
