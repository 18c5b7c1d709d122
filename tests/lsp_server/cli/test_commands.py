"""The commands of the terminal: wrong arguments, and completions of a tiny real model in a real engine process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from completion.host.process.address import HostAddress
from completion.host.process.sockets import TcpAddress
from completion.paths import version
from lsp_server.cli.checks import memory_taken
from lsp_server.cli.demo import examples
from lsp_server.cli.main import main
from lsp_server.cli.serve import _print_addresses
from lsp_server.engine.launcher import EngineOptions

SOURCE = "def add(first, second):\n    return first + second\n\nclass Stack:\n    "


@pytest.fixture(scope="module")
def engine(tiny_qwen2):
    """Options of commands that use the tiny model; its engine is ended after the tests."""
    folder = tempfile.mkdtemp(prefix="dl-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTLINE_RUNTIME_DIR", f"{folder}/run")
        patch.setenv("DRAFTLINE_STATE_DIR", f"{folder}/state")
        options = ["--model", str(tiny_qwen2), "--backend", "fp32"]
        yield options
        main(["serve", "--stop", *options])
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "stack.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def users_file(tmp_path, monkeypatch):
    """Path of the user's own settings file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "draftline").mkdir()
    return tmp_path / "draftline" / "config.toml"


def test_complete_streams_text(engine, source, capsys):
    assert main(["complete", f"{source}:5:5", "--max-tokens", "4", *engine]) == 0
    assert capsys.readouterr().out.endswith("\n")


def test_complete_prints_one_json_object_with_text_and_timings(engine, source, capsys):
    assert main(["complete", f"{source}:2:12", "--json", "--max-tokens", "4", "--mode", "line", *engine]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer["text"], str)
    assert answer["timings"]["total_ms"] > 0
    assert answer["statistics"]["prompt_tokens"] > 0
    assert answer["device"] == "cpu"


def test_complete_explains_what_the_cache_and_the_drafters_did(engine, source, capsys):
    assert main(["complete", f"{source}:2:12", "--explain", "--layout", "prefix_first", *engine]) == 0
    printed = capsys.readouterr().out
    for words in ("kept", "shifted", "computed", "drafted", "first text"):
        assert words in printed


def test_commands_use_the_engine_of_the_users_settings_unless_they_name_another(engine, source, users_file, capsys):
    _model, folder, _backend, implementation = engine
    users_file.write_text(f"model = {folder!r}\nbackend = {implementation!r}")
    assert main(["complete", f"{source}:2:12", "--json", "--max-tokens", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == Path(folder).name
    assert main(["complete", f"{source}:2:12", "--model", "no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err
    assert main(["serve"]) == 1
    assert "An engine already serves this model" in capsys.readouterr().err


def test_commands_say_on_stderr_which_of_the_users_settings_they_ignore(engine, source, users_file, capsys):
    users_file.write_text('max_tokenz = 8\nthreads = "two"')
    assert main(["complete", f"{source}:2:12", "--json", "--max-tokens", "4", *engine]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["device"] == "cpu"
    assert f'draftline: {users_file}: there is no setting "max_tokenz". The nearest is "max_tokens".' in printed.err
    assert f"draftline: {users_file}: \"threads\" is 'two'; it must be a whole number." in printed.err
    users_file.write_text("model = ")
    main(["serve", *engine])
    assert f"draftline: {users_file} cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["draftline", "llama-server"])
def test_a_command_says_that_text_goes_to_a_server_only_if_the_server_may_get_it(
    kind, engine, source, users_file, capsys
):
    users_file.write_text(f'[engine]\nurl = "http://gpu.invalid:8080"\nkind = "{kind}"')
    assert main(["complete", f"{source}:2:12", *engine]) > 0
    error = capsys.readouterr().err
    assert "would send your text unencrypted" in error
    assert "The text goes to" not in error


def test_doctor_starts_the_engine_and_completes(engine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # no cell of the table is folded, however long the model's path is
    main(["doctor", *engine])
    printed = capsys.readouterr().out
    for row in ("model", "memory", "processor", "disk", "socket", "editors", "engine", "completion"):
        assert row in printed
    assert "ready in" in printed


def test_doctor_shows_its_progress_on_stderr_so_also_while_its_table_goes_to_a_file(engine, capsys, monkeypatch):
    for variable, value in (("FORCE_COLOR", "1"), ("TERM", "xterm")):  # to rich, both files are terminals
        monkeypatch.setenv(variable, value)
    main(["doctor", *engine])
    printed = capsys.readouterr()
    assert "Ready." in printed.err
    assert "Ready." not in printed.out


def test_doctor_says_where_the_engines_memory_is(engine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    main(["doctor", *engine])
    printed = capsys.readouterr().out.partition("memory of the engine")[2]
    sizes = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in printed.splitlines() if "│" in line}
    resident = float(sizes.pop("resident size").replace(",", ""))
    assert [name.partition(" ")[0].rstrip(":") for name in sizes] == [
        "weights",
        "KV",
        "workspaces",
        "grammars",
        "compiled",
        "other",
    ]
    assert resident > 50
    assert sum(float(size.replace(",", "")) for size in sizes.values()) == pytest.approx(resident, abs=0.5)
    assert "Not in this process: its parser process" in printed


def test_doctor_counts_the_memory_of_a_running_engine_and_none_if_it_does_not_run(engine, source):
    main(["complete", f"{source}:1:1", "--json", "--max-tokens", "1", *engine])
    model, backend = engine[1::2]
    assert memory_taken(EngineOptions(model, backend)) > 50e6
    assert memory_taken(EngineOptions("a-model-that-nobody-started", backend)) == 0


def test_serve_refuses_a_second_engine_for_the_same_model(engine, capsys):
    main(["complete", f"{Path(__file__)}:1:1", "--json", "--max-tokens", "1", *engine])
    assert main(["serve", *engine]) == 1
    assert "draftline serve --stop" in capsys.readouterr().err


def test_serve_stop_without_an_engine_says_so(engine, capsys):
    assert main(["serve", "--stop", "--model", "another", *engine[2:]]) == 1
    assert "No engine is running" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--tcp", "0.0.0.0:8012"], "--token-file"),
        (["serve", "--token-file", "t"], "--tcp"),
        (["serve", "--allow-local"], "--tcp"),
        (["serve", "--tls-certificate", "c"], "--tcp"),
        (["serve", "--tcp", "--tls-key", "k"], "--tls-certificate"),
        (["serve", "--tcp", "--tls-certificate", "no-such-file"], "no-such-file"),
        (["serve", "--session-memory", "25"], "--session-memory is 25. Give a number from 0 to 1."),
        (["serve", "--idle-minutes", "-3"], "--idle-minutes is -3. Give a number from 0 to 100000."),
        (["serve", "--threads", "-1"], '"--threads" is -1; it must be between 0 and 1024'),
        (["serve", "--gpu-memory-share", "80"], "--gpu-memory-share"),
        (["serve", "--gpu-memory-share", "nan"], "--gpu-memory-share"),
        (["doctor", "--no-engine", "--model", ""], "--model"),
        (["serve", "--tcp", "0.0.0.0:8012", "--allow-local"], "--allow-local"),
        (["complete", "x.py:1:1", "--max-tokens", "0"], "--max-tokens"),
    ],
)
def test_wrong_options_are_refused_with_a_message_that_names_the_option(engine, arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("draftline: ")
    assert words in error


def test_a_model_that_does_not_exist_is_an_error_that_names_it(engine, source, capsys):
    assert main(["complete", f"{source}:1:1", "--model", "no-such-model", "--json"]) == 1
    assert "no-such-model" in capsys.readouterr().err


def test_serve_exits_with_a_message_when_the_model_does_not_exist(engine):
    command = [sys.executable, "-m", "lsp_server.cli.main", "serve", "--model", "no-model-to-serve"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "Listening on" in done.stdout
    assert "draftline: There is no model 'no-model-to-serve'" in done.stderr
    assert done.stderr.endswith("draftline: The model could not be loaded. The log says why.\n")


def test_serve_says_what_it_does_until_the_model_is_ready(engine):
    main(["serve", "--stop", *engine])
    command = [sys.executable, "-m", "lsp_server.cli.main", "serve", *engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        printed = []
        while printed[-1:] not in (["The model is ready.\n"], [""]):
            printed.append(serving.stdout.readline())
        main(["serve", "--stop", *engine])
    assert printed[-1] == "The model is ready.\n"
    assert any(line.startswith("Listening on") for line in printed)
    assert len(printed) > 2


@pytest.mark.parametrize("option", ["--explain", "--json"])
def test_a_completion_is_printed_in_a_pipe_whatever_the_locales_encoding_is(engine, source, option):
    command = [sys.executable, "-m", "lsp_server.cli.main", "complete", f"{source}:2:12", option, "--max-tokens", "9"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, *engine], env=environment, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "prompt: " in done.stdout.decode() or json.loads(done.stdout)["statistics"]


def test_a_pipe_gets_the_suggestion_alone_even_where_colours_are_forced(engine, source):
    command = [sys.executable, "-m", "lsp_server.cli.main", "complete", f"{source}:2:12", "--max-tokens", "9", *engine]
    printed = [
        subprocess.run(command, env={**os.environ, **more}, capture_output=True, check=True, timeout=120).stdout
        for more in ({}, {"FORCE_COLOR": "1"})
    ]
    assert printed[0] == printed[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [["models"], ["complete", "FILE:1:1", "--json"]])
def test_a_full_disk_under_the_output_is_a_sentence(engine, source, command, tmp_path):
    words = [*[word.replace("FILE", str(source)) for word in command], *(engine if command[0] == "complete" else [])]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lsp_server.cli.main", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"draftline: [Errno 28] No space left on device\n")


def test_help_lists_every_command_and_loads_no_model_libraries():
    script = (
        "import sys\n"
        "from lsp_server.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as error:\n    assert error.code == 0\n"
        "loaded = [name for name in ('torch', 'transformers', 'numba') if name in sys.modules]\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for command in ("complete", "demo", "doctor", "models", "serve"):
        assert command in done.stdout


def test_commands_that_complete_and_serve_load_no_classes_of_the_editors_protocol():
    script = (
        "import sys, lsp_server.cli.complete, lsp_server.cli.serve\n"
        "print([name for name in ('lsprotocol', 'pygls') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_demos_table_has_each_position_on_one_line_of_a_terminal_of_80_columns(engine, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["demo", *engine])
    printed = capsys.readouterr().out
    assert all(f" {example.position} " in printed.partition("Timings")[2] for example in examples())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [("forget", "End the engines and delete all that was recorded"), ("models get", "Download and convert a model")],
)
def test_the_help_of_a_command_says_what_it_does(command, sentence, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_the_version_is_that_of_the_installed_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"draftline {version()}\n"


@pytest.fixture
def default_engine(engine):
    """Run the default model's engine. On a new machine this compiles its kernels, which takes a while."""
    main(["doctor"])
    yield
    main(["serve", "--stop"])


@pytest.mark.real_model
def test_the_demo_completes_every_example(default_engine, capsys):
    assert main(["demo"]) == 0
    assert "median" in capsys.readouterr().out


@pytest.mark.parametrize(("host", "is_warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_an_address_that_other_machines_reach_unencrypted_is_warned_about(host, is_warned, tmp_path, capsys):
    tcp = TcpAddress(host, 8012, "a-token-of-enough-length")
    _print_addresses(tcp, tmp_path / "token", HostAddress("engine", tmp_path, tmp_path))
    assert ("unencrypted" in capsys.readouterr().out) is is_warned
