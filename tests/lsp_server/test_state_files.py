"""Whatever lies in the place of a file of the cache or state folder, everything works, and the file is made anew."""

import hashlib
import json
import logging
import os
import sqlite3
import stat

import numpy as np
import pytest

from completion.decoding.step_costs import _parse as costs_of
from completion.host.process.log import configure_log
from completion.model.choice import Measured
from completion.model.tokenizer import CodeTokenizer
from completion.model.tokens import stored
from drafting.calibration import default_calibration, load_calibration, save_calibration
from drafting.machine_code.image import Code, is_whole, read_image, write_image
from drafting.state_files import read_state, write_state
from lsp_server.messages import OffScope
from lsp_server.settings.experiment import CurrentExperiment, Experiment
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.telemetry.event_queue import Telemetry
from lsp_server.telemetry.store import read_store

CODE = Code("module:name", ("<i4",), "symbol", b"\x7fELF" + bytes(100), {})
SOUND = object()


def use_calibration(path):
    before = load_calibration(path, "model")
    save_calibration(default_calibration(), path, "model")
    assert all(map(np.array_equal, load_calibration(path, "model"), default_calibration()))
    assert np.isfinite(before.right).all()


COSTS = Measured("m", "int8", "cpu", 0, (1.0, 2.0, 3.0))


def use_costs(path):
    assert read_state(path, lambda data: costs_of(data, {3})) in (None, COSTS)
    write_state(path, COSTS.to_json().encode())
    assert read_state(path, lambda data: costs_of(data, {3})) == COSTS


def use_image(path):
    assert read_image(path) is None
    write_image(path, [CODE])
    assert is_whole(path)


def use_tokens(path, folder):
    found = stored.read_tables(folder)
    assert found is None or found.encoder("def f") is not None
    CodeTokenizer.from_folder(folder)
    assert stored.read_tables(folder) is not None


def use_off(path):
    off = HashedAnswers(path)
    off.get(OffScope.FILE, "file:///a.py")
    off.set(OffScope.FILE, "file:///a.py", answer=True)
    assert HashedAnswers(path).get(OffScope.FILE, "file:///a.py")


def use_consent(path):
    answers = HashedAnswers(path)
    answers.get("vllm", "https://a.example", "file:///a")
    answers.set("vllm", "https://a.example", "file:///a", answer=True)
    assert HashedAnswers(path).get("vllm", "https://a.example", "file:///a") is True


def use_experiment(path):
    current = CurrentExperiment(path)
    if current.get() is None:
        current.start(Experiment("name", "mode", ("line", "auto"), "hour", 0.0))
    assert CurrentExperiment(path).get().setting == "mode"


def use_telemetry(path):
    telemetry = Telemetry(path)
    telemetry.written("python", 3)
    telemetry.refused("python", "off")
    assert telemetry.flush()
    telemetry.close()
    with read_store(path) as store:
        assert store.execute("SELECT count(*) FROM written").fetchone() == (1,)
        assert store.execute("SELECT length(value) FROM facts WHERE name = 'salt'").fetchone() == (32,)


def use_log(path):
    root, handlers = logging.getLogger(), [*logging.getLogger().handlers]
    configure_log(path, "INFO")
    logging.getLogger("completion").warning("A line.")
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
        handler.close()
    assert path.read_bytes().endswith(b"A line.\n")


USES = {
    "calibration.json": use_calibration, "costs.json": use_costs, "kernels.image": use_image,
    "tokens.npz": use_tokens, "off.json": use_off, "consent.json": use_consent, "experiment.json": use_experiment,
    "telemetry.sqlite3": use_telemetry, "host.log": use_log,
}  # fmt: skip


def sealed(body):
    return b"draftline machine code 1\n" + hashlib.blake2b(body, digest_size=32).digest() + body


def image_of(index):
    return sealed(len(index).to_bytes(8, "little") + index + CODE.content)


def wrong_store(script):
    def make(path):
        with sqlite3.connect(path) as store:
            store.executescript(script)
        store.close()

    return make


def huge(path):
    path.touch()
    os.truncate(path, 1 << 40)  # a file with a hole: it takes no space


def link_loop(path):
    path.symlink_to(path)


def full_folder(path):
    path.mkdir()
    (path / "file").write_text("x")


def cut(path):
    if path.exists():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def written_by_others(path):
    if path.exists():
        path.chmod(0o666)


def texts(*contents):
    return {repr(content[:20]): lambda path, content=content: path.write_bytes(content) for content in contents}


WRONG = {
    "nothing": lambda path: path.unlink(missing_ok=True),
    "folder": full_folder,
    "link loop": link_loop,
    "dangling link": lambda path: path.symlink_to(path.with_name("nowhere")),
    "pipe": os.mkfifo,
    "huge": huge,
    "written by others": written_by_others,
    "cut": cut,
    **texts(
        b"", b"\0" * 100, b"[" * 100_000, b'{"a":' * 50_000, b"9" * 400, b"[" + b"9" * 400 + b"]", b"null", b"[]",
        b"{}", b"[1e999, NaN, -1]", b'"\\ud800"', bytes(range(256)) * 40, np.random.default_rng(0).bytes(20_000),
        b'{"salt": {}, "off": 3, "answers": [], "values": {}}', b"PK\x03\x04" + bytes(50), b"SQLite format 3\0",
        json.dumps({"format": "draftline-calibration-1", "model": "model", "right": 10**400}).encode(),
        image_of(b"[" * 100_000), image_of(b'[["a", [], "b", 0, 9999999999999, {}]]'),
        image_of(b'[["a", ["<i4"], "symbol", 0, 104, {}]]'), image_of(b'[["a", [1.5], [], -1, {}, 3]]'), image_of(b"9"),
    ),
    "store without a salt": wrong_store(""),
    "store that says it is whole": wrong_store("PRAGMA user_version = 3"),
    "store of other tables": wrong_store("CREATE TABLE facts (a); PRAGMA user_version = 1"),
    "store of a negative version": wrong_store("PRAGMA user_version = -5"),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_whatever_is_in_the_place_of_a_file_it_is_set_aside_and_made_anew(name, tmp_path, tiny_qwen2, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    arguments = (tiny_qwen2,) if name == "tokens.npz" else ()
    for number, (kind, make) in enumerate(WRONG.items()):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        if name == "tokens.npz":
            monkeypatch.setattr(stored, "_file", lambda _folder, path=path: path)
        if kind in ("cut", "written by others"):
            USES[name](path, *arguments)
        make(path)
        try:
            USES[name](path, *arguments)
        except Exception as error:
            raise AssertionError(f"{kind} in the place of {name}") from error
        assert stat.S_ISREG(path.stat().st_mode)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("kind", ["folder", "link loop", "pipe"])
def test_what_is_no_file_beside_the_store_is_set_aside(suffix, kind, tmp_path):
    WRONG[kind](tmp_path / f"telemetry.sqlite3{suffix}")
    use_telemetry(tmp_path / "telemetry.sqlite3")


@pytest.mark.parametrize("name", ["calibration.json", "costs.json", "kernels.image"])
def test_a_file_in_the_place_of_the_folder_is_set_aside(name, tmp_path):
    (tmp_path / "folder").write_text("a file")
    USES[name](tmp_path / "folder" / name)


def test_what_cannot_be_used_is_named_in_a_sentence_without_its_content(tmp_path, caplog):
    path = tmp_path / "off.json"
    path.write_bytes(b'{"salt": "secret"')
    HashedAnswers(path).get(OffScope.FILE, "file:///a.py")
    (line,) = caplog.messages
    assert (
        line
        == f"{path} cannot be used (it is damaged: JSONDecodeError). It is set aside as off.json.damaged and made anew."
    )
    assert path.with_name("off.json.damaged").read_bytes() == b'{"salt": "secret"'


def test_code_that_others_can_write_is_not_run(tmp_path):
    path = tmp_path / "kernels.image"
    write_image(path, [CODE])
    assert is_whole(path)
    path.chmod(0o666)
    assert not is_whole(path)
    assert not path.exists()
