"""`draftline doctor`: what each check makes of what it finds."""

import pytest

from lsp_server.cli import checks
from lsp_server.cli.checks import check_cpu, check_disk, check_editors, check_memory, check_model, check_socket

GIB = 1 << 30


@pytest.mark.parametrize(("free", "state"), [(8 * GIB, "ok"), (1.5 * GIB, "warn"), (0.2 * GIB, "fail")])
def test_memory(free, state):
    assert check_memory(int(free)).state == state


@pytest.mark.parametrize(
    ("flags", "state"),
    [({"avx2", "avx512_vnni"}, "ok"), ({"asimd", "asimddp"}, "ok"), ({"avx2"}, "warn"), ({"sse2"}, "warn"), ((), "ok")],
)
def test_processor(flags, state):
    assert check_cpu(frozenset(flags)).state == state


def test_neovim_must_be_recent():
    installed = {"nvim", "code"}

    def which(program):
        return program if program in installed else None

    old = check_editors(which, lambda _: "NVIM v0.7.2")
    assert (old.state, "0.11" in old.advice) == ("warn", True)
    assert check_editors(which, lambda _: "NVIM v0.12.1").state == "ok"
    assert check_editors(lambda _: None, lambda _: "").state == "warn"


def test_a_model_that_is_nowhere_is_downloaded_at_first_use():
    assert check_model("owner/some-model").state == "warn"


def test_a_full_disk_fails_unless_the_model_is_converted(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    assert check_disk("default", 100 * GIB).state == "ok"
    full = check_disk("default", GIB // 2)
    assert (full.state, "DRAFTLINE_CACHE_DIR" in full.advice) == ("fail", True)


def test_a_socket_folder_open_to_others_fails_with_what_to_do(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", str(folder))
    check = check_socket("default", "auto")
    assert (check.state, "chmod 700" in check.advice) == ("fail", True)


def test_the_flags_of_this_processor_are_read():
    assert checks.cpu_flags()
