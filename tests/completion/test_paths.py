"""Folders of draftline."""

from completion.paths import runtime_dir, state_dir


def test_the_folder_of_the_socket_is_the_same_at_every_call_and_never_in_tmp(monkeypatch, tmp_path):
    monkeypatch.delenv("DRAFTLINE_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("DRAFTLINE_STATE_DIR", str(tmp_path))
    folders = [runtime_dir() for _ in range(3)]
    assert len(set(folders)) == 1
    assert folders[0] == state_dir() / "run" or str(folders[0]).startswith("/run/user")
    assert folders[0].stat().st_mode & 0o777 == 0o700


def test_environment_variables_move_the_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTLINE_RUNTIME_DIR", str(tmp_path / "sockets"))
    assert runtime_dir() == tmp_path / "sockets"
