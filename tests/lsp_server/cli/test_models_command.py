"""`draftline models` lists, gets, verifies and removes models."""

import pytest

from completion.model.store.converted_models import packed_name
from completion.model.store.model_store import packaged_source
from completion.model.store.packaged_models import DEFAULT_PACKAGE
from lsp_server.cli.main import main
from tests.tiny_gguf import write_tiny_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "cache"


@pytest.fixture
def mine(tmp_path):
    return write_tiny_gguf(tmp_path / "mine.gguf")


def test_a_model_is_converted_listed_verified_and_removed(mine, cache, capsys):
    assert main(["models", "get", str(mine)]) == 0
    assert "mine is ready" in capsys.readouterr().out
    main(["models"])
    listed = capsys.readouterr().out
    assert "converted" in next(line for line in listed.splitlines() if "mine" in line)
    assert main(["models", "verify", "mine"]) == 0
    assert "intact" in capsys.readouterr().out
    folder = next(cache.glob("models/mine-*/"))
    for packed in (f"{packed_name(folder)}5-0123", f"{packed_name(folder)}5-0123.partial"):
        (cache / "packed" / packed).mkdir(parents=True)
    assert main(["models", "remove", "mine"]) == 0
    assert "freed" in capsys.readouterr().out
    assert not [entry for entry in cache.glob("*/*") if entry.is_dir()]


def test_get_names_the_setting_with_the_whole_path_of_a_file(mine, cache, capsys, monkeypatch):
    monkeypatch.chdir(mine.parent)
    assert main(["models", "get", mine.name]) == 0
    assert f"To use it, set in your settings: model = {str(mine)!r}\n" in capsys.readouterr().out


def test_a_damaged_model_is_reported_with_its_damaged_file_and_what_to_do(mine, cache, capsys):
    main(["models", "get", str(mine)])
    weights = next(cache.glob("models/*/tokenizer.json"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert main(["models", "verify", "mine"]) == 1
    assert "damaged: tokenizer.json" in capsys.readouterr().out
    weights.write_bytes(b"short")
    main(["models", "list"])
    out = capsys.readouterr().out
    assert "damaged" in out
    assert "draftline models remove mine-" in out


def test_an_empty_name_is_not_the_default_model(cache, capsys):
    folder = packaged_source(DEFAULT_PACKAGE).folder  # as of a shell's variable that is not set
    folder.mkdir(parents=True)
    for command in ("get", "verify", "remove"):
        assert main(["models", command, ""]) == 1
        assert "''" in capsys.readouterr().err
    assert folder.is_dir()


@pytest.mark.parametrize("command", ["get", "verify", "remove"])
def test_a_path_whose_links_lead_in_a_circle_is_an_error(command, cache, tmp_path, capsys):
    (tmp_path / "circle").symlink_to("circle")
    assert main(["models", command, str(tmp_path / "circle")]) == 1
    assert f"{tmp_path / 'circle'}" in capsys.readouterr().err


@pytest.mark.parametrize("spec", [".", "..", "/", "models/..", "{}/elsewhere/{}", "{}/cache/models/{}.partial"])
def test_only_a_converted_model_is_removed(mine, cache, tmp_path, capsys, spec):
    main(["models", "get", str(mine)])
    folder = next(cache.glob("models/mine-*/"))
    folder.with_name(f"{folder.name}.partial").mkdir()
    before = sorted(cache.rglob("*"))
    spec = spec.format(tmp_path, folder.name)
    assert main(["models", "remove", spec]) == 1
    assert f"{spec!r} is not among the converted models" in capsys.readouterr().err
    assert sorted(cache.rglob("*")) == before


def test_a_model_is_removed_by_the_path_that_the_list_shows(mine, cache):
    main(["models", "get", str(mine)])
    folder = next(cache.glob("models/mine-*/"))
    assert main(["models", "remove", str(folder)]) == 0
    assert not folder.exists()


def test_a_model_is_verified_and_removed_by_the_path_that_it_was_got_by(mine, cache, monkeypatch, capsys):
    main(["models", "get", str(mine)])
    monkeypatch.chdir(mine.parent)
    assert main(["models", "verify", f"./{mine.name}"]) == 0
    assert main(["models", "remove", str(mine)]) == 0
    assert list(cache.glob("models/mine-*/")) == []
    assert mine.exists()


def test_an_unknown_model_is_an_error_on_stderr(capsys):
    assert main(["models", "verify", "nothing-like-it"]) == 1
    assert "'nothing-like-it' is not among the converted models" in capsys.readouterr().err


def test_the_list_has_each_location_on_one_line_however_narrow_the_terminal_is(mine, cache, capsys, monkeypatch):
    main(["models", "get", str(mine)])
    monkeypatch.setenv("COLUMNS", "40")
    capsys.readouterr()
    main(["models"])
    lines = capsys.readouterr().out.splitlines()
    folder = next(cache.glob("models/mine-*/"))
    assert f"  {folder}" in lines
    assert any(line.startswith("mine: converted, ") for line in lines)


def test_the_list_names_models_that_are_not_installed(capsys):
    main(["models"])
    assert "qwen2.5-coder-1.5b" in capsys.readouterr().out
