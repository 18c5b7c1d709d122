"""Folders of draftline."""

import pytest

from completion.errors import StorageError
from completion.paths import cache_dir, runtime_dir, state_dir


def test_the_folder_of_the_socket_is_the_same_at_every_call_and_never_in_tmp(monkeypatch, tmp_path):
    monkeypatch.delenv("DRAFTLINE_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("DRAFTLINE_STATE_DIR", str(tmp_path))
    folders = [runtime_dir() for _ in range(3)]
    assert len(set(folders)) == 1
    assert folders[0].parent == state_dir() / "run" or str(folders[0]).startswith("/run/user")
    assert folders[0].stat().st_mode & 0o777 == 0o700


def test_environment_variables_move_the_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", str(tmp_path / "sockets"))
    assert runtime_dir() == tmp_path / "sockets"


@pytest.mark.parametrize("folder", [cache_dir, state_dir, runtime_dir])
def test_a_folder_that_depends_on_the_working_directory_is_refused(monkeypatch, tmp_path, folder):
    monkeypatch.chdir(tmp_path)
    variable = f"DRAFTLINE_{folder.__name__.upper()}"
    monkeypatch.setenv(variable, "cache")
    with pytest.raises(StorageError, match=f"Set {variable} to a whole path"):
        folder()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_be_named_from_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", "~/cache")
    assert cache_dir() == tmp_path / "cache"
