"""Files of a workspace are read only if they are regular, inside it and small enough; no read blocks."""

import errno
import os
from pathlib import Path

import pytest

from lsp_server.workspace_reader import read_inside, read_named


def refusal(root, path, max_bytes=100):
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the tests check its errno
        read_inside(root, path, max_bytes)
    return caught.value.errno


def open_descriptors():
    return {path.name for path in Path("/dev/fd").iterdir()}


def test_a_regular_file_up_to_the_limit_is_read_whole(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_bytes(b"x" * 100)
    assert read_inside(tmp_path, tmp_path / "a" / "b.py", 100) == b"x" * 100
    assert refusal(tmp_path, tmp_path / "a" / "b.py", 99) == errno.EFBIG


def test_a_huge_sparse_file_is_not_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(tmp_path, tmp_path / "sparse") == errno.EFBIG


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/tty", "/proc/self/environ", "/etc/passwd", "a.py", "link"])
def test_no_link_is_followed(tmp_path, target):
    (tmp_path / "a.py").write_text("x")
    (tmp_path / "link").symlink_to(target)
    assert refusal(tmp_path, tmp_path / "link") == errno.ELOOP


def test_no_linked_folder_below_the_root_is_followed_but_the_root_may_be_a_link(tmp_path):
    real = tmp_path / "real"
    (real / "inner").mkdir(parents=True)
    (real / "inner" / "a.py").write_text("x")
    (real / "linked").symlink_to(real / "inner")
    (tmp_path / "root").symlink_to(real)
    assert refusal(real, real / "linked" / "a.py") == errno.ENOTDIR
    assert read_inside(tmp_path / "root", tmp_path / "root" / "inner" / "a.py", 10) == b"x"


def test_pipes_and_folders_are_refused_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        assert refusal(tmp_path, tmp_path / name) == errno.EINVAL
    assert refusal(tmp_path, tmp_path / "pipe" / "x") == errno.ENOTDIR
    with pytest.raises(OSError, match="not a regular file"):
        read_named(tmp_path / "pipe", 10)


def test_a_pipe_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refusal(tmp_path, tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device") as caught:
        os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    assert caught.value.errno == errno.ENXIO  # no reader ever opened it


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "."])
def test_no_file_outside_the_root_is_read(tmp_path, name):
    (tmp_path / "outside").write_text("x")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    assert refusal(root, root / name) == errno.EINVAL
    assert refusal(root, tmp_path / "outside") == errno.EINVAL


def test_no_descriptor_stays_open(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("x")
    (tmp_path / "a" / "link").symlink_to("b")
    before = open_descriptors()
    read_inside(tmp_path, tmp_path / "a" / "b" / "c", 10)
    for name in ("a/b", "a/b/d", "a/link/c", "a/b/c/d"):
        assert refusal(tmp_path, tmp_path / name)
    assert not open_descriptors() - before  # what an earlier test left may be closed meanwhile


def test_a_file_that_the_user_names_may_be_a_link(tmp_path):
    (tmp_path / "a.toml").write_text("x")
    (tmp_path / "link").symlink_to("a.toml")
    assert read_named(tmp_path / "link", 10) == b"x"
    with pytest.raises(OSError, match="not a regular file"):
        read_named(tmp_path, 10)
