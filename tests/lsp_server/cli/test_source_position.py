"""FILE:LINE:COL: which arguments are refused, and where the cursor is."""

import os

import pytest

from completion.errors import ConfigurationError
from completion.language_ids import language_of
from lsp_server.cli.complete import read_position, request_at
from lsp_server.cli.demo import examples
from lsp_server.cli.main import main


def write(folder, data, name="a.py"):
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (b"x = 1\n", "", "FILE:LINE:COL"),
        (b"x = 1\n", ":1", "FILE:LINE:COL"),
        (b"x = 1\n", ":one:1", "FILE:LINE:COL"),
        (b"x = 1\n", ":3:1", "2 lines; line 3"),
        (b"x = 1\n", ":0:1", "line 0"),
        (b"x = 1\n", ":1:7", "5 characters; column 7"),
        (b"x = 1\n", ":1:0", "column 0"),
        (b"x\x00y", ":1:1", "binary"),
        (b"ok\n\xff\xfe", ":1:1", "not UTF-8"),
    ],
)
def test_an_invalid_position_is_refused_with_exit_status_2(tmp_path, capsys, data, position, words):
    path = write(tmp_path, data)
    with pytest.raises(ConfigurationError, match=words):
        read_position(f"{path}{position}")
    assert main(["complete", f"{path}{position}"]) == 2
    assert words in capsys.readouterr().err


def test_files_of_secrets_and_ignored_files_are_refused_also_through_a_link(tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    write(tmp_path / "build", b"x = 1")
    write(tmp_path, b"KEY=1", ".env")
    (tmp_path / "link.py").symlink_to(".env")
    monkeypatch.chdir(tmp_path)
    for name, words in ((".env", "secrets"), ("link.py", "secrets"), ("build/a.py", "ignored")):
        for path in (name, f"{tmp_path}/{name}"):
            assert main(["complete", f"{path}:1:1"]) == 2
            printed = capsys.readouterr().err
            assert printed.startswith(f"draftline: {path} gets no completion. The file")
            assert words in printed


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_position(f"{tmp_path}/missing.py:1:1")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_position(f"{tmp_path}:1:1")


def test_a_pipe_a_device_and_a_huge_file_are_refused_but_a_link_to_a_file_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(1 << 40)
    for path, words in ((tmp_path / "pipe", "regular"), ("/dev/zero", "regular"), (tmp_path / "huge.py", "larger")):
        with pytest.raises(ConfigurationError, match=words):
            read_position(f"{path}:1:1")
    write(tmp_path, b"x = 1")
    (tmp_path / "link.py").symlink_to("a.py")
    assert read_position(f"{tmp_path}/link.py:1:1").after == "x = 1"
    (tmp_path / "circle.py").symlink_to("circle.py")
    with pytest.raises(ConfigurationError, match="Too many levels of symbolic links"):
        read_position(f"{tmp_path}/circle.py:1:1")


@pytest.mark.parametrize(
    ("text", "line", "column", "before"),
    [
        ("ab\ncd\n", 2, 2, "ab\nc"),
        ("ab\r\ncd\r\n", 1, 3, "ab"),
        ("ab\r\ncd\r\n", 2, 1, "ab\r\n"),
        ("x = '😀é'\n", 1, 7, "x = '😀"),
        ("a\fb\x0bc\u2028d\n", 1, 8, "a\fb\x0bc\u2028d"),
        ("", 1, 1, ""),
        ("ab", 1, 3, "ab"),
    ],
)
def test_lines_and_columns_count_from_one_in_characters(tmp_path, text, line, column, before):
    path = write(tmp_path, text.encode())
    position = read_position(f"{path}:{line}:{column}")
    assert (position.before, position.after) == (before, text[len(before) :])


def test_a_request_names_the_repository_and_the_path_in_it(tmp_path):
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    path = write(tmp_path / "project" / "src", b"package main\n", "main.go")
    request = request_at(read_position(f"{path}:1:1"))
    assert request.invoked  # the user who runs the command waits for a suggestion: it is a manual request
    assert (request.path, request.repository, request.language) == ("src/main.go", "project", "go")


def test_the_demo_has_eight_examples_in_at_least_five_languages():
    shipped = examples()
    assert len(shipped) == 8
    assert len({language_of(example.name) for example in shipped}) >= 5
    assert all(example.prefix.strip() and example.suffix.strip() for example in shipped)


SERVER = '[engine]\nurl = "https://gpu.invalid:8080"\n'


def test_a_file_that_the_users_settings_keep_from_the_server_is_refused_before_anything_is_sent(
    tmp_path, monkeypatch, capsys
):
    secret, other = (tmp_path / "work" / name for name in ("secret", "other"))
    for folder in (secret, other):
        folder.mkdir(parents=True)
        write(folder, b"x = 1\n")
    (tmp_path / "draftline").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    users_file = tmp_path / "draftline" / "config.toml"
    users_file.write_text(f'{SERVER}send = ["*", "!{secret}"]')
    assert main(["complete", f"{secret}/a.py:1:1"]) == 2
    error = capsys.readouterr().err
    assert f"`engine_send` in {users_file} forbids to send the text of {secret}/a.py to https://gpu.invalid" in error
    monkeypatch.chdir(other)
    with pytest.raises(ConfigurationError, match="forbids to send"):
        request_at(read_position("../secret/a.py:1:1"))
    request_at(read_position("a.py:1:1"))


def test_a_server_beside_the_local_model_gets_a_file_unless_the_users_settings_forbid_it(tmp_path, monkeypatch):
    path = write(tmp_path, b"x = 1\n")
    (tmp_path / "draftline").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for rules, goes in (("[]", True), (f'["!{tmp_path}"]', False), (f'["!*", "{tmp_path}"]', True)):
        (tmp_path / "draftline" / "config.toml").write_text(f'{SERVER}mode = "local_first"\nsend = {rules}')
        assert request_at(read_position(f"{path}:1:1")).remote is goes
