"""FILE:LINE:COL: which arguments are refused, and where the cursor is."""

import os

import pytest

from completion.errors import ConfigurationError
from completion.language_ids import language_of
from lsp_server.cli.demo import examples
from lsp_server.cli.main import main
from lsp_server.cli.source_position import read_position, request_at


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
    assert read_position(f"{tmp_path}/link.py:1:1").text == "x = 1"


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
