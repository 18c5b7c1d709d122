"""Which host belongs to which model."""

import socket

import pytest

from completion.errors import EngineUnavailableError
from completion.host.process.address import host_address, normal_model


def test_a_folder_of_the_project_with_a_models_name_is_not_that_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    assert normal_model("default") == "default"
    assert normal_model("./default") == str(tmp_path / "default")


def test_paths_are_the_same_from_everywhere(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.gguf").touch()
    monkeypatch.chdir(tmp_path / "models")
    assert normal_model("a.gguf") == normal_model("../models/a.gguf") == str(tmp_path / "models" / "a.gguf")


def test_a_hub_id_that_is_no_folder_stays():
    assert normal_model("owner/some-model") == "owner/some-model"


def test_each_model_and_backend_has_a_host_of_its_own(runtime):
    names = {host_address(model, backend).name for model in ("default", "other") for backend in ("auto", "fp32")}
    assert len(names) == 4


def test_a_system_without_unix_sockets_is_told_what_to_do(runtime, monkeypatch):
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(EngineUnavailableError, match="WSL"):
        host_address("default", "auto")
