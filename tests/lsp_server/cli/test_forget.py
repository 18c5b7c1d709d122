"""`draftline forget`: deletes all recorded and learned data, and ends engines that would write it again."""

import shutil
import tempfile
from pathlib import Path

import pytest

from lsp_server.cli.main import main


@pytest.fixture
def state(monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="dl-"))
    for name in ("RUNTIME", "STATE"):
        monkeypatch.setenv(f"DRAFTLINE_{name}_DIR", str(folder / name.lower()))
    yield folder / "state"
    shutil.rmtree(folder)


def test_everything_learned_and_recorded_is_deleted(state, tiny_qwen2, tmp_path, capsys):
    engine = ["--model", str(tiny_qwen2), "--backend", "fp32"]
    source = tmp_path / "a.py"
    source.write_text("def add(first, second):\n    return first + second\n")
    state.mkdir(parents=True, exist_ok=True)
    for name in ("off.json", "experiment.json", "consent.json", "engine-token", "server-token"):
        (state / name).write_text("{}")
    assert main(["complete", f"{source}:2:12", "--max-tokens", "4", *engine]) == 0
    assert main(["forget"]) == 0
    assert main(["serve", "--stop", *engine]) == 1  # no engine is running
    assert not [path for path in state.rglob("*") if path.is_file() and path.parent.name != "run"]
    assert "Ended the engine" in capsys.readouterr().out


def test_without_recorded_data_it_prints_nothing(state, capsys):
    assert main(["forget"]) == 0
    assert capsys.readouterr().out == ""
