"""The script that fills VS Code's private environment: whole or not at all, one window at a time, checked by hashes."""

import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tests.package_index import PackageIndex, served, use_index

SCRIPT = Path(__file__).parents[3] / "ide_clients" / "vscode" / "install_server.py"


def wheel(package, module, version="1.0"):
    """Return a wheel with a module that prints nothing."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(module, "")
        info = f"{package}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


@pytest.fixture
def index(monkeypatch):
    """Yield an index with one package that the server requires. Each download is noted."""
    index = PackageIndex()
    index.wheels["needed-1.0-py3-none-any.whl"] = wheel("needed", "needed/__init__.py")
    with served(index) as address:
        use_index(monkeypatch, address)
        yield index


@pytest.fixture
def extension(tmp_path, index):
    """Return a folder with the server's wheel and what it requires, as the extension has them."""
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "draftline-1.0-py3-none-any.whl").write_bytes(wheel("draftline", "lsp_server/__main__.py"))
    require(bundle, index.wheels["needed-1.0-py3-none-any.whl"])
    return bundle


def require(bundle, content):
    digest = hashlib.sha256(content).hexdigest()
    (bundle / "requirements.txt").write_text(f"needed==1.0 --hash=sha256:{digest}\n")


def start(folder, bundle):
    """Start the script as the extension does."""
    folder.mkdir(exist_ok=True)
    [source] = bundle.glob("*.whl")
    command = [sys.executable, "-P", SCRIPT, folder, source, bundle / "requirements.txt"]
    environment = {**os.environ, "PIP_CACHE_DIR": str(folder.parent / "cache")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def install(folder, bundle):
    """Run the script to its end; return its status, the path that it prints, and what it says."""
    running = start(folder, bundle)
    printed, said = running.communicate()
    return running.returncode, printed.strip(), said


def environments(folder):
    return sorted(path.name for path in folder.glob("environment*"))


def test_what_is_installed_is_used_again_until_another_version_replaces_it(extension, index, tmp_path):
    folder = tmp_path / "storage"
    (folder / "environment").mkdir(parents=True)  # as versions before made it
    status, python, said = install(folder, extension)
    assert status == 0, said
    assert (folder / "python").read_text() == python
    subprocess.run([python, "-P", "-c", "import lsp_server.__main__, needed"], check=True)
    assert environments(folder) == [Path(python).parents[1].name]
    assert install(folder, extension)[:2] == (0, python)
    assert index.downloads == ["needed-1.0-py3-none-any.whl"]

    (folder / "environment-of-before").mkdir()
    (extension / "draftline-1.0-py3-none-any.whl").unlink()
    (extension / "draftline-2.0-py3-none-any.whl").write_bytes(wheel("draftline", "lsp_server/__main__.py", "2.0"))
    status, newer, said = install(folder, extension)
    assert status == 0, said
    kept = {Path(one).parents[1].name for one in (python, newer)}  # another window may run from the one before
    assert environments(folder) == sorted(kept)
    assert len(kept) == 2


def test_a_package_with_another_hash_is_refused_and_what_was_there_stays(extension, tmp_path):
    folder = tmp_path / "storage"
    folder.mkdir()
    (folder / "python").write_text("the one before")
    require(extension, b"another")
    status, printed, said = install(folder, extension)
    assert (status, printed) == (1, "")
    assert "DO NOT MATCH THE HASHES" in said
    assert (folder / "python").read_text() == "the one before"


def test_of_two_windows_one_installs_and_the_other_uses_it(extension, index, tmp_path):
    both = [start(tmp_path / "storage", extension) for _ in range(2)]
    printed = [window.communicate()[0] for window in both]
    assert printed[0] == printed[1] != ""
    assert index.downloads == ["needed-1.0-py3-none-any.whl"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process at once")
def test_an_installation_that_is_cancelled_ends_pip_and_the_next_one_is_whole(extension, index, tmp_path):
    asked, goes_on = threading.Event(), threading.Event()

    def wait(_name):
        asked.set()
        goes_on.wait(60)

    index.before = wait
    running = start(tmp_path / "storage", extension)
    assert asked.wait(60)
    running.send_signal(signal.SIGTERM)
    running.communicate()  # ends with pip, which would keep standard error open
    goes_on.set()
    assert running.returncode == 1
    assert not (tmp_path / "storage" / "python").exists()
    assert install(tmp_path / "storage", extension)[0] == 0
