"""Where a host listens and how its clients find it: a Unix socket, or TCP with a token in a private file."""

import json
import os
import socket
import subprocess
import sys

import pytest

from completion.errors import PermissionsError, StorageError
from completion.host.process.address import endpoint_at
from completion.host.process.sockets import own_socket


@pytest.fixture
def on_tcp(runtime, monkeypatch):
    """The path of a host that listens on TCP, and what it listens with."""
    monkeypatch.setenv("DRAFTLINE_TRANSPORT", "tcp")
    own = own_socket(runtime / "h.sock")
    with own.listener:
        yield runtime / "h.sock", own


def test_a_host_with_unix_sockets_needs_no_token(runtime, monkeypatch):
    monkeypatch.delenv("DRAFTLINE_TRANSPORT", raising=False)
    own = own_socket(runtime / "h.sock")
    with own.listener:
        assert endpoint_at(runtime / "h.sock").socket_path == runtime / "h.sock"
        assert own.token == endpoint_at(runtime / "h.sock").token == ""


def test_on_tcp_the_file_has_the_port_and_a_new_token_for_this_user_only(on_tcp):
    path, own = on_tcp
    endpoint = endpoint_at(path)
    assert endpoint.url == f"http://127.0.0.1:{own.listener.getsockname()[1]}"
    assert endpoint.token == own.token
    assert len(own.token) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(path.parent.iterdir()) == [path]
    again = own_socket(path)
    with again.listener:
        assert again.token != own.token


@pytest.mark.parametrize("lacks", ["Unix sockets", "room for the path"])
def test_where_no_unix_socket_is_possible_the_host_listens_on_tcp(runtime, monkeypatch, lacks):
    monkeypatch.delenv("DRAFTLINE_TRANSPORT", raising=False)
    path = runtime / "h.sock"
    if lacks == "Unix sockets":
        monkeypatch.delattr(socket, "AF_UNIX")
    else:
        path = runtime / ("x" * 90) / "h.sock"  # macOS has room for 103 bytes
        path.parent.mkdir()
    with own_socket(path).listener as listener:
        assert endpoint_at(path).url.endswith(f":{listener.getsockname()[1]}")


def test_a_token_that_other_users_can_read_is_refused(on_tcp):
    path, _ = on_tcp
    path.chmod(0o644)
    with pytest.raises(PermissionsError, match="chmod 600"):
        endpoint_at(path)


def test_no_client_connects_to_the_port_of_a_host_that_ended(on_tcp):
    """Another user's program may listen on it by now, and would get the source text."""
    path, own = on_tcp
    own.listener.close()
    assert endpoint_at(path) is None
    listens = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{listens}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        told = {"pid": os.getpid(), "port": int(other.stdout.readline()), "token": own.token}
        path.write_text(json.dumps(told))
        assert endpoint_at(path) is None
        path.write_text(json.dumps({**told, "pid": other.pid}))
        assert endpoint_at(path) is not None
        other.kill()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"pid": "x", "port": 1, "token": ""}', '{"pid": 1}'])
def test_a_damaged_file_is_no_host(runtime, content):
    path = runtime / "h.sock"
    path.touch(0o600)
    path.write_text(content)
    assert endpoint_at(path) is None


def test_a_file_that_cannot_be_written_is_a_storage_error(runtime, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_TRANSPORT", "tcp")
    (runtime / "file").touch()
    with pytest.raises(StorageError, match="DRAFTLINE_RUNTIME_DIR"):
        own_socket(runtime / "file" / "h.sock")
