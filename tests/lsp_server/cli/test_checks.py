"""`draftline doctor`: the state and the advice of each check."""

import json
import os
import platform
import shutil
import socket
import sys

import pytest

from completion.host.process.address import host_address
from completion.model.choice import KNOWN, Measured, measured_folder
from completion.model.gpu_memory import Gpu
from completion.model.int8.kernels.processor import processor_features
from completion.model.store.converted_models import CONVERSION_VERSION
from completion.model.store.model_store import packaged_source
from completion.model.store.packaged_models import DEFAULT_PACKAGE, LARGER_PACKAGE
from lsp_server.cli.checks import (
    check_cpu,
    check_device,
    check_disk,
    check_editors,
    check_memory,
    check_model,
    check_socket,
    memory_needed,
)
from lsp_server.cli.main import main
from lsp_server.engine.launcher import EngineOptions

GIB = 1 << 30


@pytest.mark.parametrize(("free", "state"), [(8 * GIB, "ok"), (1.5 * GIB, "warn"), (0.2 * GIB, "fail")])
def test_less_free_memory_than_the_model_needs_is_a_warning_and_much_less_a_failure(free, state):
    check = check_memory(int(free), 2 * GIB)
    assert check.state == state
    assert check.found == f"the model needs 2.0 GiB, {free / GIB:.1f} GiB free"


def test_what_the_running_engine_has_counts_as_memory_for_its_model():
    check = check_memory(GIB // 4, 2 * GIB, taken=2 * GIB)
    assert check.state == "ok"
    assert check.found == "the model needs 2.0 GiB, its engine has 2.0 GiB, 0.2 GiB free"


def test_the_memory_that_is_needed_is_that_of_the_model_and_no_verdict_if_it_is_not_known(tiny_qwen2):
    weights = (tiny_qwen2 / "model.safetensors").stat().st_size
    assert memory_needed(str(tiny_qwen2)) - memory_needed("default") == weights // 2 - DEFAULT_PACKAGE.size_bytes
    difference = LARGER_PACKAGE.size_bytes - DEFAULT_PACKAGE.size_bytes
    assert memory_needed("qwen2.5-coder-1.5b") - memory_needed("default") == difference
    assert memory_needed("owner/some-model") is None
    assert check_memory(GIB, None).state == "ok"


@pytest.mark.parametrize(
    ("flags", "state"),
    [({"avx2", "avx512vnni"}, "ok"), ({"neon", "dotprod"}, "ok"), ({"avx2"}, "warn"), ({"sse2"}, "warn"), ((), "ok")],
)
def test_a_processor_without_fast_integer_products_is_a_warning(flags, state):
    assert check_cpu(frozenset(flags)).state == state


@pytest.mark.parametrize(
    ("gpu", "backend", "has_torch", "found", "advised"),
    [
        (Gpu("cuda", "RTX 4090", "570", 24 * GIB), "auto", True, "RTX 4090", False),
        (Gpu("cuda", "RTX 4090", "570", 24 * GIB), "auto", False, "CPU (RTX 4090 needs torch)", True),
        (Gpu("cuda", "RTX 4090", "570", 24 * GIB), "fp32", True, "CPU (the backend fp32 uses no GPU)", False),
        (None, "auto", True, "CPU (no GPU found that CUDA or Metal can use)", False),
    ],
)
def test_a_gpu_that_the_engine_cannot_use_is_not_called_its_device(gpu, backend, has_torch, found, advised):
    check = check_device(gpu, backend, has_torch=has_torch)
    assert (check.state, check.found) == ("ok", found)
    assert ("draftline[torch]" in check.advice) == advised


def test_an_old_neovim_and_no_editor_at_all_are_warnings():
    installed = {"nvim", "code"}

    def which(program):
        return program if program in installed else None

    old = check_editors(which, lambda _: "NVIM v0.7.2")
    assert (old.state, "0.11" in old.advice) == ("warn", True)
    assert check_editors(which, lambda _: "NVIM v0.12.1").state == "ok"
    assert check_editors(lambda _: None, lambda _: "").state == "warn"


def test_a_model_that_is_not_on_this_machine_is_a_warning_that_names_the_command_to_download_it():
    check = check_model("owner/some-model", "It is the one of --model.")
    assert (check.state, "draftline models get owner/some-model" in check.advice) == ("warn", True)
    assert check.found.endswith("It is the one of --model.")


def test_a_name_that_no_command_can_get_a_model_for_fails_with_the_known_names():
    check = check_model("qwen2.5-codr", "It is the one of --model.")
    assert check.state == "fail"
    assert "draftline models get" not in check.advice
    assert "'qwen2.5-coder-0.5b'" in check.advice


def test_a_model_file_that_is_missing_fails_with_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check = check_model("models/mine.gguf", "It is the one of --model.")
    assert check.state == "fail"
    assert check.advice == f"There is no file {tmp_path / 'models' / 'mine.gguf'}. Give the model's whole path."


def test_doctor_warns_of_each_setting_that_it_ignores(runtime, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    user_file = runtime / "config" / "draftline" / "config.toml"
    main(["doctor", "--no-engine"])
    assert f"all defaults ({user_file} does not exist)" in capsys.readouterr().out
    user_file.parent.mkdir(parents=True)
    user_file.write_text('max_tokenz = 8\n[engine]\nkind = "llama"')
    main(["doctor", "--no-engine"])
    printed = capsys.readouterr().out
    assert 'there is no setting "max_tokenz". The nearest is "max_tokens".' in printed
    assert "\"engine_kind\" is 'llama'; it must be one of" in printed
    assert f"Correct {user_file}." in printed


def test_doctors_table_has_the_whole_name_of_each_check_in_a_narrow_terminal(runtime, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    main(["doctor", "--no-engine"])
    printed = capsys.readouterr().out
    for name in ("draftline", "settings", "model", "memory", "processor", "device", "disk", "socket", "editors"):
        assert f"│ {name} " in printed


def test_doctor_says_which_model_serves_and_why(runtime, tiny_qwen2, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")

    def printed(*options):
        main(["doctor", "--no-engine", *options])
        return capsys.readouterr().out

    user_file = runtime / "config" / "draftline" / "config.toml"
    user_file.parent.mkdir(parents=True)
    assert "It is the default, until a start has measured how quick this machine is." in printed()
    measured = Measured(KNOWN[0].name, "q4", "cpu", 0, (8.0,) * 16, platform.node())
    measured_folder().mkdir(parents=True)
    (measured_folder() / "default.json").write_text(measured.to_json())
    offering = printed()
    assert "within the 80 ms of `first_text_budget_ms`" in offering
    assert f"forecasts: {KNOWN[0].name} 27 ms, {KNOWN[1].name}" in offering
    assert "larger model" in offering
    assert "GB: draftline models get" in offering
    user_file.write_text('engine_url = "http://127.0.0.1:1"\nengine_mode = "local_first"')
    assert "It is the default, as always beside a model server." in printed()
    user_file.write_text(f"model = {str(tiny_qwen2)!r}")
    of_setting = printed()
    assert str(tiny_qwen2) in of_setting
    assert f"The setting `model` of {user_file} names it." in of_setting
    assert "It is the one of --model." in printed("--model", "default")


def test_a_disk_without_room_for_the_conversion_of_the_model_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    assert check_disk("default", 100 * GIB).state == "ok"
    full = check_disk("default", GIB // 2)
    assert (full.state, "DRAFTLINE_CACHE_DIR" in full.advice) == ("fail", True)
    assert check_disk(LARGER_PACKAGE.name, 3 * GIB).state == "fail"


def test_a_full_disk_is_a_warning_if_no_model_must_be_converted(tmp_path, monkeypatch, tiny_qwen2):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    assert check_disk(str(tiny_qwen2), GIB // 2).state == "warn"
    folder = packaged_source(DEFAULT_PACKAGE).folder
    folder.mkdir()
    record = {"conversion": CONVERSION_VERSION, "source": {}, "files": {}}
    (folder / "source.json").write_text(json.dumps(record))
    assert check_disk("default", GIB).state == "ok"
    assert check_disk("default", 0).state == "warn"


def test_a_socket_folder_that_other_users_can_access_fails_with_what_to_do(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", str(folder))
    check = check_socket(EngineOptions())
    assert (check.state, "chmod 700" in check.advice) == ("fail", True)


def test_this_processor_has_flags():
    assert processor_features()


def test_a_path_that_is_no_model_fails_and_says_why(tmp_path, tiny_qwen2):
    assert check_model(str(tiny_qwen2), "").state == "ok"
    (tmp_path / "notes.txt").write_text("")
    of_file, of_folder = check_model(str(tmp_path / "notes.txt"), ""), check_model(str(tmp_path), "")
    assert (of_file.state, "is no .gguf file" in of_file.advice) == ("fail", True)
    assert (of_folder.state, "lacks config.json" in of_folder.advice) == ("fail", True)


def test_a_plain_name_is_no_folder_of_the_working_directory(tmp_path, monkeypatch, tiny_qwen2):
    shutil.copytree(tiny_qwen2, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert check_model("mine", "").state == "fail"  # as for the engine, which runs elsewhere
    assert check_model("./mine", "").state == "ok"


def test_a_model_that_was_downloaded_from_the_hub_is_there(tmp_path, monkeypatch, tiny_qwen2):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    own = tmp_path / "models--owner--some-model"
    shutil.copytree(tiny_qwen2, own / "snapshots" / (40 * "a"))
    (own / "refs").mkdir()
    (own / "refs" / "main").write_text(40 * "a")
    check = check_model("owner/some-model", "")
    assert (check.state, check.advice) == ("ok", "")
    assert memory_needed("owner/some-model") == memory_needed(str(tiny_qwen2))


def test_a_cache_that_cannot_be_written_fails_however_empty_its_disk_is(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("os.access", lambda path, mode: not (str(path) == str(tmp_path) and mode == os.W_OK))
    check = check_disk("default", 100 * GIB)
    assert (check.state, "DRAFTLINE_CACHE_DIR" in check.advice) == ("fail", True)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")
def test_the_socket_of_an_engine_that_was_killed_is_not_that_of_a_running_one(runtime):
    path = host_address("default", "auto").endpoint_path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        assert check_socket(EngineOptions()).found == str(path)
    assert check_socket(EngineOptions()).found == f"{path} (no engine is running)"


def test_a_model_that_another_version_of_draftline_converted_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    folder = packaged_source(DEFAULT_PACKAGE).folder
    folder.mkdir()
    record = {"conversion": CONVERSION_VERSION - 1, "source": {"name": "", "origin": ""}, "files": {}}
    (folder / "source.json").write_text(json.dumps(record))
    check = check_model("default", "")
    assert (check.state, "converted again at its next use" in check.advice) == ("warn", True)
