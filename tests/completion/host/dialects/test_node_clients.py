"""Clients for Node, unchanged, with this host: they offer what `/v1/complete` gives.

They come from npm at pinned versions. DRAFTLINE_CLIENTS names a folder that has their packages, unpacked.
"""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.completion.host.dialects.client_host import FETCHED, TOKEN, ClientHost
from tests.completion.host.dialects.test_replays import cursors

pytestmark = [pytest.mark.clients, pytest.mark.real_model, pytest.mark.timeout(3600)]

TABBY = "tabby-agent@1.5.0"
INTEGRITY = "sha512-A502A5KUU8nO8T5J+Z6nq5hwXqG8/Yzh1dPcqwgm7W7Umm/f36OBUY5y22WQgySXOmTRyD0LKM59BdWXasxDEg=="
"""What npm's registry says of the package's content."""


def package_folder():
    """Return the folder of Tabby's agent. Skip the test if Node is missing or the package cannot be had."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node is not installed")
    given = os.environ.get("DRAFTLINE_CLIENTS")
    folder = Path(given or FETCHED) / TABBY
    if not folder.exists():
        packing = ["npm", "pack", TABBY, "--json", "--pack-destination", folder.parent]
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            packed = subprocess.run(packing, capture_output=True, text=True, timeout=120, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{TABBY} cannot be had from npm: {getattr(error, 'stderr', error)}")
        (facts,) = json.loads(packed.stdout)
        assert facts["integrity"] == INTEGRITY
        with tarfile.open(folder.parent / facts["filename"]) as archive:
            archive.extractall(folder, filter="data")
    return folder / "package"


class TabbyAgent:
    """The agent's process, which takes and gives a line of JSON for each call (`src/cli` of its source)."""

    def __init__(self, program, home, host):
        environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self._process = subprocess.Popen(
            ["node", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, bufsize=1
        )
        self._calls = 0
        lines = {"maxPrefixLines": 1000, "maxSuffixLines": 1000}
        config = {
            "server": {"endpoint": host.url, "token": TOKEN},
            "completion": {"prompt": lines, "debounce": {"mode": "fixed", "interval": 0}},
            "anonymousUsageTracking": {"disable": True},
        }
        assert self.call("initialize", {"config": config})

    def call(self, function, *arguments):
        self._calls += 1
        self._process.stdin.write(json.dumps([self._calls, {"func": function, "args": arguments}]) + "\n")
        for line in self._process.stdout:  # ID 0 is an event
            number, result = json.loads(line)
            if number == self._calls:
                return result
        raise AssertionError("the agent ended")

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def client_host(tmp_path_factory):
    host = ClientHost(tmp_path_factory.mktemp("h"))
    yield host
    host.close()


@pytest.fixture
def agent(client_host, tmp_path):
    agent = TabbyAgent(package_folder() / "dist" / "cli.js", tmp_path, client_host)
    yield agent
    agent.close()


def test_tabbys_agent_offers_what_v1_complete_gives(client_host, agent):
    """The agent's own filters leave out blanks at both ends, and lines below the cursor's block."""
    compared = whole = 0
    for prefix, suffix in cursors():
        expected = client_host.text(prefix, suffix, language="python").strip()
        document = {"filepath": "/home/ada/shop.py", "language": "python", "indentation": "    ", "manually": True}
        offered = agent.call("provideCompletions", {**document, "text": prefix + suffix, "position": len(prefix)})
        text = "".join(choice["text"] for choice in offered["choices"]).strip()
        assert expected.startswith(text), (prefix, expected, text)
        compared += bool(text)
        whole += bool(text) and text == expected
    assert compared >= 20
    assert whole >= 0.8 * compared
