"""Settings from all their sources, and the error messages for invalid keys and values."""

import dataclasses
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.remote.address import RemoteAddress
from completion.request import GrammarMode, Layout
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.settings.config import PROJECT_FILE, Source, load, merge, remote_address
from lsp_server.settings.table import DEFAULTS, Settings


def test_a_later_source_overrides_an_earlier_one_and_both_spellings_are_known():
    settings, problems = merge(
        [Source("user", {"max_tokens": 10, "debounce_ms": 5}), Source("editor", {"maxTokens": 20})]
    )
    assert (settings.max_tokens, settings.debounce_ms) == (20, 5)
    assert not problems


def test_an_unknown_key_is_reported_with_the_nearest_known_key():
    _, problems = merge([Source("initializationOptions", {"debounceMillis": 3})])
    assert problems == ['initializationOptions: there is no setting "debounceMillis". The nearest is "debounce_ms".']


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("enabled", "yes", "true or false"),
        ("max_tokens", 0, "between 1 and 4096"),
        ("max_tokens", True, "a whole number"),
        ("max_tokens", 1.5, "a whole number"),
        ("languages_off", "python", "a list of strings"),
        ("grammar", "loose", 'one of "off", "strict"'),
        ("layout", "sideways", '"auto"'),
        ("gate", 0.95, '"0.8"'),
        ("model", "", "non-empty"),
        ("idle_minutes", float("nan"), "between"),
        ("threads", float("inf"), "a whole number"),
        ("engine_send", ["*", "!secret"], "'!secret'; each folder must be a whole path"),
        ("engine_send", ["~/work", ""], "each folder must be a whole path"),
    ],
)
def test_an_invalid_value_is_reported_and_ignored(key, value, part):
    settings, problems = merge([Source("editor", {key: value})])
    assert settings == DEFAULTS
    assert len(problems) == 1
    assert key in problems[0]
    assert part in problems[0]


@pytest.mark.parametrize("spelled", [0.6, "0.6"])
def test_a_share_is_a_value_of_the_gate_as_a_number_and_as_a_string(spelled):
    assert merge([Source("editor", {"gate": spelled})])[0].gate is Strictness.RIGHT_60


def test_folders_may_be_named_from_the_home_folder_or_all_at_once():
    rules = ["*", "!*", "~/work", "!~/work/secret", str(Path.cwd()), f"!{Path.cwd()}"]
    settings, problems = merge([Source("editor", {"engineSend": rules})])
    assert (settings.engine_send, problems) == (tuple(rules), [])


def test_names_of_enumerations_become_their_members():
    settings, _ = merge([Source("editor", {"grammar": "off", "layout": "prefix_first"})])
    assert settings.grammar is GrammarMode.OFF
    assert settings.layout is Layout.PREFIX_FIRST


def test_a_project_cannot_choose_the_model_or_enable_telemetry(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / ".draftline.toml").write_text('model = "evil/model"\ntelemetry = true\nmax_tokens = 7\n')
    user = tmp_path / "config.toml"
    user.write_text("max_tokens = 5\ntelemetry = false\n")
    settings, problems = load(user, project, [])
    assert (settings.model, settings.max_tokens, settings.telemetry) == ("auto", 7, False)
    assert len(problems) == 2


def test_a_malformed_file_is_reported_and_the_other_sources_apply(tmp_path):
    (tmp_path / "config.toml").write_text("max_tokens = = 3")
    settings, problems = load(tmp_path / "config.toml", None, [Source("editor", {"max_tokens": 9})])
    assert settings.max_tokens == 9
    assert "config.toml" in problems[0]


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    """Windows PowerShell 5 writes one."""
    for name, text in (("config.toml", "max_tokens = 5\r\n"), (PROJECT_FILE, "debounce_ms = 7\r\n")):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    settings, problems = load(tmp_path / "config.toml", tmp_path, [])
    assert (settings.max_tokens, settings.debounce_ms, problems) == (5, 7, [])


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "pipe", "real.toml"])
def test_a_projects_file_that_is_a_link_is_reported_and_ignored(tmp_path, target):
    """A link to a device would fill the memory, and a link to a pipe would block the server."""
    (tmp_path / "real.toml").write_text("max_tokens = 9")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".draftline.toml").symlink_to(target)
    settings, problems = load(tmp_path / "none.toml", tmp_path, [])
    assert settings == DEFAULTS
    assert len(problems) == 1
    assert "link" in problems[0]


def test_a_file_that_the_system_cannot_read_is_reported_once_by_its_path(tmp_path):
    (tmp_path / "config.toml").mkdir()
    settings, problems = load(tmp_path / "config.toml", None, [])
    assert settings == DEFAULTS
    assert problems == [f"{tmp_path / 'config.toml'} cannot be read (Is not a regular file). Its settings are ignored."]


def test_the_users_own_file_may_be_a_link_and_a_huge_file_is_reported(tmp_path):
    (tmp_path / "real.toml").write_text("max_tokens = 9")
    (tmp_path / "config.toml").symlink_to("real.toml")
    assert load(tmp_path / "config.toml", None, [])[0].max_tokens == 9
    (tmp_path / ".draftline.toml").write_text("#" * 100_000)
    _, [problem] = load(tmp_path / "none.toml", tmp_path, [])
    assert "larger than" in problem


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from([field.name for field in dataclasses.fields(Settings)]) | st.text(), JSON))
def test_no_input_raises_and_every_key_is_applied_or_reported(values):
    settings, problems = merge([Source("editor", values)])
    assert isinstance(settings, Settings)
    for key, value in values.items():
        named = any(f'"{key[:60]}"' in problem for problem in problems)  # of a long key, a message has the start
        used = hasattr(settings, key) and str(getattr(settings, key)) == str(
            tuple(value) if isinstance(value, list) else value
        )
        assert named or used or isinstance(value, int | float)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("max_tokens = " + "9" * 5_000, "digits"),
        ("max_tokens = 0x" + "f" * 5_000, '"max_tokens" is a number of thousands of digits'),
        ("max_tokens = [0x" + "f" * 5_000 + "]", '"max_tokens" is [a number of thousands of digits]'),
        ("max_tokens = " + "[" * 30_000, "nested too deeply"),
        ("max_tokens = " + "{a = " * 10_000, "nested too deeply"),
        ("max_tokens" + ".a" * 500 + " = 1", "a key has more than 16 parts"),
        ("max_tokens = '" + "x" * 60_000 + "'", "it must be a whole number"),
        ("k" * 60_000 + " = 1", 'there is no setting "kkk'),
        ("\n".join(f"k{number} = 1" for number in range(5_000)), "5000 keys"),
    ],
    ids=["digits", "hexadecimal", "in a list", "arrays", "tables", "dotted", "long value", "long key", "many keys"],
)
def test_hostile_settings_are_reported_briefly_and_the_other_sources_apply(tmp_path, text, problem):
    (tmp_path / PROJECT_FILE).write_text(text)
    settings, problems = load(tmp_path / "none.toml", tmp_path, [Source("editor", {"debounce_ms": 7})])
    assert settings == dataclasses.replace(DEFAULTS, debounce_ms=7)
    assert any(problem in one for one in problems)
    assert sum(map(len, problems)) < 20_000


def test_a_client_may_send_numbers_and_lists_of_any_size():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    _, problems = merge([Source("editor", {"max_tokens": 10**5_000, "languages_off": deep, "threads": -(10**5_000)})])
    assert len(problems) == 3
    assert sum(map(len, problems)) < 1_000


def test_a_table_of_the_users_file_names_the_model_server_and_a_projects_file_cannot(tmp_path):
    user, project = tmp_path / "config.toml", tmp_path / "project"
    project.mkdir()
    user.write_text('[engine]\nurl = "https://gpu.example"\ntoken_env = "KEY"\n')
    (project / ".draftline.toml").write_text('engine_plain_http = true\n[engine]\nurl = "https://evil.example"\n')
    settings, problems = load(user, project, [])
    assert remote_address(settings) == RemoteAddress("https://gpu.example", token_env="KEY")
    assert sorted(problem.partition(": ")[2].partition(".")[0] for problem in problems) == [
        'a project cannot set "engine_plain_http"',
        'a project cannot set "engine_url"',
    ]


def test_an_editor_that_writes_out_defaults_changes_nothing():
    settings, problems = merge([Source("editor", {"engineUrl": "", "engineCaFile": ""})])
    assert (settings, problems) == (DEFAULTS, [])


@pytest.mark.parametrize(
    "text",
    [
        "a." * 31_990 + "a = 1",
        "[" + "a." * 31_990 + "a]",
        '"=" . ' * 10_000 + "a = 1",
        "x = {" + "'b'." * 16_000 + "a = 1}",
        "x" * 65_000,
        '"' * 65_000,
        "a" * 32_000 + "." + "b" * 32_000,
    ],
    ids=range(7),
)
def test_a_file_whose_keys_have_many_parts_is_refused_before_it_is_parsed(tmp_path, text):
    (tmp_path / PROJECT_FILE).write_text(text)
    began = time.process_time()
    settings, problems = load(tmp_path / "none.toml", tmp_path, [])
    assert time.process_time() - began < 1.0  # the first took 9.5 s, and 4 GB
    assert settings == DEFAULTS
    assert len(problems) == 1
