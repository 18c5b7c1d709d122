"""Machines as people have them: the real server and its host in each, which complete or say in a sentence why not.

Each is made for real in namespaces of its own, which need Linux and the right to make them. No network is in them, and
the client is in none of them: the process that it names is not there, as with `docker exec` and in WSL.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from completion.paths import is_on_network_disk
from tests.lsp_server.real_client import COMMAND, RealClient, environment

NAMESPACE = ("unshare", "--mount", "--uts", "--net")
URI = "file:///project/a.py"


NO_HOME = "mount --bind /dev/null /etc/passwd; unset HOME; mount -t tmpfs -o mode=1777 none /tmp"
READS = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"  # Python may lie in another user's home
STRANGER = f'set -- setpriv --reuid=54321 --regid=54321 --clear-groups {READS} "$@"'


def inside(setup, *command, hostname="machine"):
    """Return a command that runs another one in an environment; what it starts ends with it."""
    own = ("--pid", "--fork", "--kill-child", "--mount-proc")
    return (*NAMESPACE, *own, "sh", "-c", f'set -e; hostname {hostname}; {setup}; exec "$@"', "sh", *command)


def can_unshare():
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run(inside(f"{NO_HOME}; {STRANGER}", "true"), check=False, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="this user may not make namespaces")
ENVIRONMENTS = {
    "a client elsewhere": ("true", ""),
    "read-only home": ('mount -t tmpfs -o ro none "$HOME"', r"cannot be written .*DRAFTLINE_"),
    "no home": ('mount -t tmpfs -o ro none "$HOME"; export HOME=$HOME/none', r"cannot be written .*DRAFTLINE_"),
    "full disk": (
        'mount -t tmpfs -o size=16k,mode=700 none "$HOME"; head -c 16384 /dev/zero > "$HOME/x" || true',
        r"cannot be written .*space.*DRAFTLINE_",
    ),
    "no HOME and no passwd entry": (NO_HOME, ""),
    "non-root without passwd entry": (f"{NO_HOME}; {STRANGER}", ""),
    "non-root whose home is the root folder": (
        f"{NO_HOME}; {STRANGER}; export HOME=/",
        r"cannot be written .*DRAFTLINE_",
    ),
    "no /dev/shm": ("mount -t tmpfs -o ro,mode=000 none /dev/shm", ""),
    "umask 077": ("umask 077", ""),
}
"""Shell commands that make a machine, and what the sentence of the status says; "" where it completes."""


@pytest.fixture
def home(monkeypatch):
    """Yield an empty home for the user, without variables that move draftline's folders."""
    folder = Path(tempfile.mkdtemp(prefix="home-", dir="/var/tmp"))  # outside of /tmp, which an environment replaces
    for name in [name for name in os.environ if name.startswith(("DRAFTLINE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def model(tiny_qwen2):
    """Yield a folder with a model that no environment replaces."""
    folder = Path(tempfile.mkdtemp(prefix="model-", dir="/var/tmp"))
    yield shutil.copytree(tiny_qwen2, folder / "tiny")
    shutil.rmtree(folder)


@pytest.fixture
async def start(home, model, capfd):
    """Yield a function that starts a server in an environment; at its end nothing has printed a traceback."""
    async with AsyncExitStack() as stack:

        async def started(setup, hostname="machine"):
            client = RealClient()
            stack.push_async_callback(client.stop)
            options = {"process_id": os.getpid(), "model": str(model), "prepare_ms": 0, "max_tokens": 3, "gate": "off"}
            return await client.start(command=inside(setup, *COMMAND, hostname=hostname), **options)

        yield started
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(("setup", "sentence"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
async def test_in_each_environment_the_server_completes_or_says_why_not(setup, sentence, start):
    client = await start(setup)
    status = await client.ready(120)
    client.open(URI, "x =")
    if sentence:
        assert re.search(sentence, status.message), status.message
        assert await client.complete(URI, 0, 3, invoked=True) == []
    assert status.kind == ("error" if sentence else "ready"), status.message
    await client.complete(URI, 0, 3, invoked=True)


async def test_two_machines_with_one_home_have_an_engine_each(start, home):
    one, two = await start("true", "one"), await start("true", "two")
    for client in (one, two):
        assert (await client.ready(120)).kind == "ready"
        client.open(URI, "x =")
        await client.complete(URI, 0, 3, invoked=True)
    sockets = list((home / ".local/state/draftline/run").rglob("*.sock"))
    assert len({socket.parent for socket in sockets}) == len(sockets) == 2


def test_no_settings_of_the_working_directory_count_without_a_home(tmp_path, home):
    """A version of platformdirs returns "~/.config", which would be a folder of the project."""
    config = tmp_path / "~" / ".config" / "draftline"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('engine_url = "http://evil.example"\n')
    script = "from lsp_server.settings.config import users_settings; print(users_settings().engine_url)"
    command = inside(NO_HOME, sys.executable, "-P", "-c", script)
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_disk_that_another_machine_serves_is_recognised(monkeypatch):
    def mounted(device, mountpoint):
        return SimpleNamespace(device=device, mountpoint=mountpoint, fstype="", opts="rw")

    table = [mounted("/dev/sda1", "/"), mounted("server:/export/home", "/home"), mounted("//server/share", "/share")]
    monkeypatch.setattr("psutil.disk_partitions", lambda **_all: [*table, mounted("tmpfs", "/home/me/local")])
    assert [path for path in ("/", "/home/me", "/share/a", "/home/me/local/b") if is_on_network_disk(Path(path))] == [
        "/home/me",
        "/share/a",
    ]
