"""The table of settings, and its agreement with the documentation and the editors' declarations."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server.settings.config import load
from lsp_server.settings.rows import Scope, choices
from lsp_server.settings.table import DEFAULTS, SETTINGS

ROOT = Path(__file__).parents[3]
NOT_FROM_PROJECT = [setting for setting in SETTINGS.values() if setting.scope is not Scope.PROJECT]
OTHER_VALUES = {"model": '"x/y"', "backend": '"fp32"', "threads": "2", "idle_minutes": "5", "streaming": "true"}
OTHER_VALUES |= {"telemetry": "false", "log_level": '"debug"', "gpu_memory_share": "0.5"}
OTHER_VALUES |= {
    "engine_url": '"https://a"',
    "engine_kind": '"draftline"',
    "engine_token_file": '"f"',
    "engine_token_env": '"E"',
    "engine_ca_file": '"c"',
}
OTHER_VALUES |= {"engine_plain_http": "true", "engine_mode": '"local_first"', "engine_model": '"m"'}
OTHER_VALUES |= dict.fromkeys(("engine_send", "not_secret"), '["*"]')
OTHER_VALUES |= {"item_range": '"line"', "first_text_budget_ms": "60", "on_battery": '"same"'}


@pytest.fixture(scope="module")
def manifest():
    return json.loads((ROOT / "ide_clients" / "vscode" / "package.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def declared(manifest):
    """VS Code's declarations of settings, by name without the prefix."""
    sections = manifest["contributes"]["configuration"]
    return {
        name.removeprefix("draftline."): value for section in sections for name, value in section["properties"].items()
    }


def camel_case(name):
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def snake_case(name):
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def test_the_page_and_the_editors_declarations_are_up_to_date():
    script = ROOT / "scripts" / "write_settings.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [one.name for one in SETTINGS.values() if one.scope is not Scope.CLIENT])
def test_vs_code_declares_every_setting_with_the_same_bounds(name, declared):
    setting, declaration = SETTINGS[name], declared[camel_case(name)]
    default = declaration["default"]
    assert type(setting.default)(default) == setting.default
    assert declaration["scope"] == setting.scope
    shown = re.sub(r"#draftline\.(\w+)#", lambda found: snake_case(found[1]), declaration["markdownDescription"])
    assert shown == setting.description
    assert not re.search(f"`({'|'.join(SETTINGS)})`", declaration["markdownDescription"])  # VS Code has other names
    assert declaration.get("enum", []) == list(choices(setting.kind))
    if setting.kind in (int, float):
        assert (declaration["minimum"], declaration["maximum"]) == (setting.low, setting.high)


def test_vs_code_takes_programs_models_and_addresses_from_the_users_settings_only(manifest, declared):
    chosen_by_user = {"python", "serverCommand", "installFrom"}
    chosen_by_user |= {camel_case(one.name) for one in NOT_FROM_PROJECT if one.scope is not Scope.CLIENT}
    assert {"model", "backend", "threads"} <= chosen_by_user
    assert all(declared[name]["scope"] in (Scope.MACHINE, Scope.USER) for name in chosen_by_user)
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == {f"draftline.{name}" for name in chosen_by_user}


def test_the_page_has_every_setting_once():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(SETTINGS)


@pytest.mark.parametrize("name", [setting.name for setting in NOT_FROM_PROJECT])
def test_a_projects_value_of_a_setting_that_only_the_user_may_change_is_reported_and_ignored(name, tmp_path):
    project, user = tmp_path / "project", tmp_path / "config.toml"
    project.mkdir()
    (project / ".draftline.toml").write_text(f"{name} = {OTHER_VALUES[name]}\n")
    settings, problems = load(user, project, [])
    assert settings == DEFAULTS
    assert [f'a project cannot set "{name}"' in problem for problem in problems] == [True]
    user.write_text(f"{name} = {OTHER_VALUES[name]}\n")
    settings, problems = load(user, None, [])
    assert getattr(settings, name) != getattr(DEFAULTS, name)
    assert not problems
