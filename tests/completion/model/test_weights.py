"""Tensors are read from the files that an index names; a damaged index is an error that names it."""

import errno
import json
import os
import shutil
import tracemalloc

import pytest

from completion.errors import ModelDamagedError, ModelError
from completion.model import weights
from completion.model.architecture import read_architecture
from completion.model.weights import StoredTensors


@pytest.fixture
def divided(tiny_qwen, tmp_path):
    """A folder with a model, a file that is no part of it, and the index that says so."""
    folder = shutil.copytree(tiny_qwen[0], tmp_path / "model")
    (folder / "other.safetensors").write_bytes(b"of another model")
    whole = {"weight_map": dict.fromkeys(StoredTensors(tiny_qwen[0]).shapes, "model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(whole))
    return folder


def test_only_files_that_the_index_names_are_read(divided, tiny_qwen):
    assert StoredTensors(divided).shapes == StoredTensors(tiny_qwen[0]).shapes


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "config.json"])
def test_the_error_of_a_file_that_is_no_text_does_not_have_its_bytes(divided, name):
    length = (50_000).to_bytes(8, "little") if name == "model.safetensors" else b""
    (divided / name).write_bytes(length + b"\xff" * 60_000)
    with pytest.raises(ModelDamagedError, match="can't decode byte 0xff") as damage:
        read_architecture(divided) if name == "config.json" else StoredTensors(divided)
    assert len(str(damage.value)) < 1000


def test_of_a_file_whose_table_has_no_end_little_is_read(divided, monkeypatch):
    monkeypatch.setattr(weights, "_MOST_TABLE_BYTES", 1000)
    (divided / "model.safetensors").write_bytes((1 << 50).to_bytes(8, "little") + b"[" * 10_000_000)
    tracemalloc.start()
    with pytest.raises(ModelDamagedError, match="is truncated or damaged"):
        StoredTensors(divided)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("content", ["", '{"weight_map": {"model.nor', "{}", "[]", '{"weight_map": 3}'])
def test_a_damaged_index_is_named(divided, content):
    (divided / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ModelDamagedError, match=r"model\.safetensors\.index\.json is truncated or damaged"):
        StoredTensors(divided)


def test_a_table_of_tensors_that_is_damaged_is_named(divided):
    file = divided / "model.safetensors"
    content = file.read_bytes()
    for whole, altered in ((b'"data_offsets":[0,', b'"data_offsets": 0,'), (b'"shape":[', b'"sha\xff":[')):
        assert whole in content
        file.write_bytes(content.replace(whole, altered, 1))
        with pytest.raises(ModelDamagedError, match="is truncated or damaged"):
            StoredTensors(divided)
    end = 8 + int.from_bytes(content[:8], "little")
    file.write_bytes(content[:8] + b"[]".ljust(end - 8) + content[end:])
    with pytest.raises(ModelDamagedError, match="is truncated or damaged"):
        StoredTensors(divided)


def test_weights_that_cannot_be_read_are_named(divided):
    (divided / "model.safetensors").unlink()
    (divided / "model.safetensors").mkdir()
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read \("):
        StoredTensors(divided)


def test_a_config_that_cannot_be_read_is_named(divided, monkeypatch):
    def refuse(_path, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.read_text", refuse)
    with pytest.raises(ModelError, match=r"config\.json cannot be read \(Permission denied\)"):
        read_architecture(divided)
