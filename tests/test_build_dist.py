"""The script that builds a release, with stand-ins for the programs that it calls."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path):
    """A folder with the script alone, whose Python builds an empty wheel."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "ide_clients" / "vscode").mkdir(parents=True)
    shutil.copy(REPOSITORY / "scripts" / "build_dist.sh", tmp_path / "scripts")
    write_program(tmp_path / "bin" / "python", "mkdir -p dist && touch dist/draftline-1.0.whl")
    return tmp_path


def write_program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("npm", "said"),
    [
        ("echo 'types do not match'; exit 1", "types do not match"),
        ("echo 'no such package' >&2; exit 1", "no such package"),
        ("echo 'WARNING: no licence'", "packaging the extension printed a warning"),
    ],
)
def test_a_failure_of_packaging_is_told(checkout, npm, said):
    write_program(checkout / "bin" / "npm", npm)
    environment = {**os.environ, "PYTHON": "python", "PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", checkout / "scripts" / "build_dist.sh"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert "build_dist: " in done.stderr
