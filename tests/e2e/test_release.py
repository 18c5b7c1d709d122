"""The wheel of dist/ in a fresh environment: what it downloads, and that it completes without torch."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.release, pytest.mark.timeout(3000)]

MOST_MB = 250


def test_a_cpu_installation_downloads_no_torch_and_little_else(wheel, tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--dest", tmp_path]
    subprocess.run([*pip, wheel], check=True)
    files = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    total_mb = sum(files.values()) / 1e6
    largest = sorted(files, key=files.get, reverse=True)[:3]
    print(f"\nA CPU installation downloads {len(files)} packages, {total_mb:.0f} MB; largest: {', '.join(largest)}")
    assert total_mb <= MOST_MB
    assert not [name for name in files if name.startswith(("torch", "transformers", "nvidia_cu"))]


def test_the_demo_completes_in_an_empty_folder_outside_the_checkout(released, tmp_path):
    done = released.run("draftline", "demo", folder=tmp_path)
    print(done.stdout[-2500:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
    lacks_torch = released.run("python", "-c", "import torch", folder=tmp_path)
    assert "No module named 'torch'" in lacks_torch.stderr


def test_the_offline_archive_installs_and_completes_without_a_network(dist):
    alone = ("unshare", "--net")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make network namespaces")
    [bundle] = dist.glob("draftline-offline-*.tar")
    root = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has a limit
    with tarfile.open(bundle) as archive:
        archive.extractall(root, filter="data")
    environment, clean = root / "environment", {"PATH": os.environ["PATH"], "HOME": str(root)}
    python = environment / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", root / bundle.stem]
    for command in (
        [sys.executable, "-m", "venv", environment],
        [*pip, "draftline[default-model]"],
        [environment / "bin" / "draftline", "demo"],
        [environment / "bin" / "draftline", "serve", "--stop"],
    ):
        done = subprocess.run([*alone, *command], cwd=root, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(root)


def test_the_sdist_builds_the_wheel(wheel, tmp_path):
    [sdist] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "built"), str(folder)]
    subprocess.run(build, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": ""})
    [built] = (tmp_path / "built").iterdir()
    assert names_in(built) == names_in(wheel)
    assert {"lsp_server/cli/data/inventory.py.txt", "drafting/data/common_tokens.npz"} <= names_in(wheel)
    data = {name.partition(".data/data/")[2] for name in names_in(wheel)}
    assert "share/jupyter/labextensions/draftline/draftline.js" in data
    assert "etc/jupyter/jupyter_server_config.d/draftline.json" in data


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())
