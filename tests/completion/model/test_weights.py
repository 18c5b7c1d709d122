"""Tensors are read from the files that an index names; a damaged index is an error that names it."""

import json
import shutil

import pytest

from completion.errors import ModelDamagedError
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


@pytest.mark.parametrize("content", ["", '{"weight_map": {"model.nor', "{}", "[]", '{"weight_map": 3}'])
def test_a_damaged_index_is_named(divided, content):
    (divided / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ModelDamagedError, match=r"model\.safetensors\.index\.json is truncated or damaged"):
        StoredTensors(divided)
