"""Packing deletes what killed processes, older versions and models that are gone left in the cache, but no more."""

import json
import os
import shutil

import numpy as np
import pytest
from filelock import FileLock

from completion.errors import ModelDamagedError, ModelError, StorageError
from completion.model.int8 import packed_weights
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.packing import FORMAT, ROWS, packed_target, sealed, unsealed
from completion.model.store import converted_models
from completion.model.store.converted_models import packed_forms, packed_name
from completion.model.transformer import has_int8_instructions

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@pytest.fixture
def model(tiny_qwen, tmp_path):
    """A model whose name is longer than those of packed forms."""
    return shutil.copytree(tiny_qwen[0], tmp_path / f"{45 * 'x'}-[1]")


@pytest.fixture
def packed(tmp_path):
    (tmp_path / "packed").mkdir()
    return tmp_path / "packed"


def folders(packed):
    return {path for path in packed.iterdir() if path.is_dir()}


def left(packed, name):
    """Write a folder as an older version, or a killed process, left it."""
    (packed / name).mkdir()
    (packed / name / "weights.bin").write_bytes(b"old")
    return packed / name


def test_a_packed_form_is_found_by_its_model_and_not_by_another_one_of_the_same_name(model, packed, tmp_path):
    load_packed(model, packed)
    assert packed_forms(model, packed) == dict.fromkeys(folders(packed), FORMAT)
    assert packed_forms(tmp_path / "elsewhere" / model.name, packed) == {}


def test_what_a_killed_process_packed_is_replaced(model, packed):
    load_packed(model, packed)
    (form,) = folders(packed)
    shutil.rmtree(form)
    unfinished = left(packed, f"{form.name}.partial")
    assert packed_forms(model, packed) == {unfinished: FORMAT}
    load_packed(model, packed)
    assert folders(packed) == {form}


def test_packing_deletes_the_models_forms_of_older_formats_and_no_other_form(model, tiny_qwen, packed):
    load_packed(tiny_qwen[0], packed)
    others = folders(packed) | {left(packed, f"{packed_name(model)}{FORMAT}-{16 * '1'}")}
    others |= {left(packed, f"{packed_name(model)}{FORMAT + 1}-{16 * '2'}"), left(packed, f"other-{16 * '3'}")}
    left(packed, f"{packed_name(model)}{FORMAT - 1}-{16 * '4'}")
    left(packed, f"{packed_name(model)}{FORMAT - 1}-{16 * '5'}.partial")
    load_packed(model, packed)
    assert folders(packed) == others | {packed_target(model, packed, "int8")}


def test_packing_leaves_a_form_that_another_process_is_reading(model, packed):
    old = left(packed, f"{packed_name(model)}{FORMAT - 1}-{16 * '4'}")
    with FileLock(packed / f"{old.name}.lock"):
        load_packed(model, packed)
        assert old.is_dir()


def test_packing_deletes_the_forms_of_models_that_are_gone(model, tiny_qwen, packed):
    load_packed(model, packed)
    shutil.rmtree(model)
    load_packed(tiny_qwen[0], packed)
    assert folders(packed) == set(packed_forms(tiny_qwen[0], packed))


def test_packing_deletes_what_was_packed_from_the_models_files_before_they_changed(model, packed):
    load_packed(model, packed)
    (before,) = folders(packed)
    os.utime(model / "config.json", (0, 0))
    load_packed(model, packed)
    assert folders(packed) == {packed_target(model, packed, "int8")} != {before}


def test_packing_deletes_what_a_killed_process_left_of_another_model_unless_it_is_being_packed(model, packed):
    abandoned, held = (left(packed, f"other-01234567-{FORMAT}-{16 * digit}.partial") for digit in "12")
    with FileLock(packed / f"{held.name.removesuffix('.partial')}.lock"):
        load_packed(model, packed)
    assert (abandoned.exists(), held.exists()) == (False, True)


def test_a_process_that_holds_the_weights_without_progress_is_not_waited_for_without_end(model, packed, monkeypatch):
    monkeypatch.setattr(converted_models, "WAIT_LIMIT_S", 0.0)
    target = packed_target(model, packed, "int8")
    sentences = []
    with FileLock(packed / f"{target.name}.lock"), pytest.raises(StorageError, match="End that process"):
        load_packed(model, packed, progress=lambda sentence, _: sentences.append(sentence))
    assert sentences == ["Waiting for another draftline process that prepares the model"]


def test_packing_deletes_weights_that_no_process_has_read_for_a_month(model, tiny_qwen, packed, tmp_path):
    used, unused = model, shutil.copytree(model, tmp_path / "unused")
    for each in (used, unused):
        load_packed(each, packed)
        os.utime(packed_target(each, packed, "int8") / "index.json", (0, 0))
    load_packed(used, packed)
    load_packed(tiny_qwen[0], packed)
    assert folders(packed) == {packed_target(each, packed, "int8") for each in (used, tiny_qwen[0])}


def overwrite(path):
    path.write_bytes(bytes(path.stat().st_size))


def in_a_folder(path):
    path.unlink()
    path.mkdir()


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


WRONG = {
    "cut": cut,
    "empty": lambda path: os.truncate(path, 0),
    "overwritten": overwrite,
    "nested": lambda path: path.write_text(sealed("[" * 100_000)),
    "of other kinds": lambda path: path.write_text(sealed('{"sums": [], "sections": {}}')),
    "without sums": lambda path: path.write_text(sealed('{"sums": [], "sections": {"rows": [0, "<u2", [1, 1]]}}')),
    "of 400 digits": lambda path: path.write_text(sealed('{"sums": [' + "9" * 400 + "]}")),
    "folder": in_a_folder,
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("name", ["index.json", "weights.bin"])
def test_whatever_is_wrong_with_a_packed_form_it_is_packed_again(model, packed, name):
    for make in WRONG.values():
        form = load_packed(model, packed).folder
        make(form / name)
        assert load_packed(model, packed).sections
    shutil.rmtree(form)
    form.write_text("a file")
    assert load_packed(model, packed).sections


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file away")
def test_what_another_user_packed_is_used_as_it_is(model, packed, monkeypatch):
    form = load_packed(model, packed).folder
    for path in form.iterdir():
        os.chown(path, 12345, 12345)
    monkeypatch.setattr(packed_weights, "run_apart", None)  # a second packing would call it
    assert load_packed(model, packed).folder == form


def test_packed_weights_for_which_there_is_no_memory_are_kept(model, packed):
    form = load_packed(model, packed).folder
    header = json.loads(unsealed((form / "index.json").read_text()))
    header["sections"][ROWS][0] = 1 << 60  # bytes before the rows, which are read into memory
    (form / "index.json").write_text(sealed(json.dumps(header)))
    with pytest.raises(ModelError, match="Close other programs"):
        load_packed(model, packed)
    assert (form / "weights.bin").is_file()


@pytest.mark.parametrize("change", [cut, overwrite])
def test_a_file_that_changes_while_it_is_used_is_damaged_and_not_read_as_numbers(model, packed, change):
    weights = load_packed(model, packed)
    change(weights.folder / "weights.bin")
    with pytest.raises(ModelDamagedError, match="damaged"):
        weights.embeddings[np.array([0, 1])]
