"""The address of the host for a model."""

from completion.host.process.address import host_address, normal_model


def test_a_plain_model_name_never_means_a_folder_of_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    assert normal_model("default") == "default"
    assert normal_model("./default") == str(tmp_path / "default")


def test_different_paths_of_one_file_become_the_same_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.gguf").touch()
    monkeypatch.chdir(tmp_path / "models")
    assert normal_model("a.gguf") == normal_model("../models/a.gguf") == str(tmp_path / "models" / "a.gguf")


def test_the_path_of_a_missing_model_is_that_of_the_folder_in_which_the_user_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert normal_model("./missing") == str(tmp_path / "missing")
    assert normal_model("missing.gguf") == str(tmp_path / "missing.gguf")


def test_a_path_whose_links_lead_in_a_circle_stays_a_path(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    assert normal_model(str(tmp_path / "circle")) == str(tmp_path / "circle")


def test_a_path_in_the_home_of_no_user_stays_unchanged():
    assert normal_model("~no-such-user/model") == "~no-such-user/model"


def test_a_hub_id_never_means_a_folder_of_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert normal_model("owner/some-model") == "owner/some-model"
    (tmp_path / "owner" / "some-model").mkdir(parents=True)
    assert normal_model("owner/some-model") == "owner/some-model"
    assert normal_model("./owner/some-model") == str(tmp_path / "owner" / "some-model")


def test_every_pair_of_model_and_backend_has_its_own_host(runtime):
    names = {host_address(model, backend).name for model in ("default", "other") for backend in ("auto", "fp32")}
    assert len(names) == 4


def test_a_model_may_have_a_name_that_is_no_utf_8(runtime):
    assert host_address("/models/mod\udce9l", "auto").name != host_address("/models/model", "auto").name
