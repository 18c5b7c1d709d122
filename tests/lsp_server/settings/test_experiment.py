"""Experiments: the values alternate, reach the engine and are recorded, and the report says which one is ahead."""

import json
import time
from collections import Counter
from itertools import pairwise

import pytest
from lsprotocol import types

from completion.errors import ConfigurationError
from completion.request import Mode
from lsp_server.cli.main import main
from lsp_server.server import create_server
from lsp_server.settings.experiment import NO_ARM, Arm, CurrentExperiment, Experiment, experiment_path
from lsp_server.settings.table import COMPARABLE, DEFAULTS, Settings
from lsp_server.telemetry.event_queue import SuggestionRecord, Telemetry
from lsp_server.telemetry.store import open_store, store_path

NOW = 1_700_000_000.0
HOUR_S = 3600


def modes(by="hour", name="modes"):
    return Experiment(name, "mode", ("line", "block"), by, NOW)


def test_values_alternate_by_hour_and_each_day_starts_with_the_other_value():
    sides = [modes().arm("a.py", HOUR_S * hour).side for hour in range(48)]
    assert all(first != second for first, second in zip(sides[:24], sides[24:], strict=True))
    assert all(one != next_ for one, next_ in pairwise(sides[:24]))
    assert modes().arm("a.py", NOW) == modes().arm("b.py", NOW)


def test_a_file_keeps_its_side_and_both_sides_have_files():
    experiment = modes("file")
    assert len({experiment.arm("file:///a.py", NOW + HOUR_S * hour) for hour in range(100)}) == 1
    counts = Counter(experiment.arm(f"file:///{number}.py", NOW).side for number in range(400))
    assert min(counts.values()) > 150


def test_an_arm_applies_its_value_to_the_settings():
    experiment = Experiment("wait", "debounce_ms", ("40", "120"), "hour", NOW)
    first, second = experiment.arms
    assert first == Arm("wait", "debounce_ms=40")
    assert experiment.applied(DEFAULTS, first).debounce_ms == 40
    assert experiment.applied(DEFAULTS, second) == Settings(debounce_ms=120)
    off = Experiment("drafts", "drafting", ("true", "false"), "hour", NOW)
    assert [off.applied(DEFAULTS, arm).drafting for arm in off.arms] == [True, False]


@pytest.mark.parametrize(
    ("setting", "values", "by", "name", "problem"),
    [
        ("model", ("a", "b"), "hour", "x", "cannot be compared"),
        ("mode", ("line", "word"), "hour", "x", "must be one of"),
        ("max_tokens", ("0", "9"), "hour", "x", "must be between"),
        ("max_tokens", ("8", " 8"), "hour", "x", "two different values"),
        ("mode", ("line", "block"), "day", "x", "cannot alternate by"),
        ("mode", ("line", "block"), "hour", "a name", "not a valid experiment name"),
    ],
)
def test_an_invalid_experiment_is_refused_with_the_reason(setting, values, by, name, problem):
    with pytest.raises(ConfigurationError, match=problem):
        Experiment(name, setting, values, by, NOW)


def test_every_comparable_setting_exists():
    assert all(hasattr(DEFAULTS, name) for name in COMPARABLE)


def test_a_running_server_notices_the_start_and_the_end_of_an_experiment(tmp_path):
    path = tmp_path / "experiment.json"
    server, command = CurrentExperiment(path, lambda: NOW), CurrentExperiment(path)
    assert server.settings_of("file:///a.py", DEFAULTS) == (DEFAULTS, NO_ARM)
    command.start(modes())
    settings, arm = server.settings_of("file:///a.py", DEFAULTS)
    assert (settings.mode, arm.side) in {(Mode.LINE, "mode=line"), (Mode.BLOCK, "mode=block")}
    without_records = Settings(telemetry=False)
    assert server.settings_of("file:///a.py", without_records) == (without_records, NO_ARM)
    with pytest.raises(ConfigurationError, match="experiment stop"):
        command.start(modes(name="other"))
    command.stop()
    command.stop()
    assert server.get() is None


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', '{"values": ["a", "b"], "colour": 1}'])
def test_an_invalid_experiment_file_is_set_aside_with_a_warning(tmp_path, caplog, text):
    path = tmp_path / "experiment.json"
    path.write_text(text)
    assert CurrentExperiment(path).get() is None
    assert "It is set aside" in caplog.text


async def test_the_values_reach_the_engine_and_are_recorded(paced, start_client):
    paced.gated = False
    client = await start_client(gate="off")
    await client.ready()
    client.open("file:///nowhere/before.py", "x =")
    await client.complete("file:///nowhere/before.py", 0, 3, invoked=True)
    assert main(["experiment", "start", "length", "max_tokens=2,5", "--by", "file"]) == 0
    experiment = CurrentExperiment(experiment_path()).get()
    expected = {}
    for number in range(12):
        uri = f"file:///nowhere/{number}.py"
        client.open(uri, "x =")
        (item,) = await client.complete(uri, 0, 3, invoked=True)
        side = experiment.arm(uri, time.time()).side
        assert len(item.insert_text.split()) == int(side.partition("=")[2])
        expected[item.command.arguments[0]] = side
    assert main(["experiment", "stop"]) == 0
    await client.stop()
    store = open_store(store_path())
    recorded = dict(store.execute("SELECT id, arm FROM suggestions WHERE experiment = 'length'"))
    others = store.execute("SELECT count(*) FROM suggestions WHERE experiment = ''").fetchone()
    store.close()
    assert recorded == expected
    assert set(expected.values()) == {"max_tokens=2", "max_tokens=5"}
    assert others == (1,)


async def test_all_cells_of_a_notebook_have_its_side(runtime):
    assert main(["experiment", "start", "length", "max_tokens=2,5", "--by", "file"]) == 0
    session = create_server().session
    cells = [types.TextDocumentItem(f"cell:{number}", "python", 1, "") for number in range(12)]
    documents = [session.documents.open(cell, "file:///n.ipynb") for cell in cells]
    assert len({session._settings.for_request(document)[1] for document in documents}) == 1


def fill(sides, accepted_of_ten):
    telemetry = Telemetry(store_path())
    for side, accepted in zip(sides, accepted_of_ten, strict=True):
        for number in range(200):
            id_ = f"{side}-{number}"
            telemetry.save(SuggestionRecord(id_, time.time(), characters=9, experiment="modes", arm=side))
            telemetry.shown(id_)
            if number % 10 < accepted:
                telemetry.accepted(id_, 9, whole=True)
    telemetry.close()


def test_the_report_says_which_is_ahead(runtime, capsys):
    fill(("mode=line", "mode=block"), (2, 6))
    assert main(["report", "--experiment", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ahead"] == "modes: mode=block"
    (row,) = [row for row in found["comparison"] if row["name"] == "accepted of shown"]
    assert (row["first"]["value"], row["second"]["value"], row["verdict"]) == (0.2, 0.6, "better")
    assert 0.2 < row["difference"]["low"] < 0.4 < row["difference"]["high"] < 0.6
    assert main(["report"]) == 0
    assert '"modes: mode=block" is ahead' in capsys.readouterr().out
    assert main(["report", "--experiment", "unknown"]) == 1


def test_the_report_names_no_winner_where_chance_may_explain_the_difference(runtime, capsys):
    fill(("mode=line", "mode=block"), (4, 4))
    assert main(["report", "--experiment", "modes"]) == 0
    assert "Neither is clearly ahead" in capsys.readouterr().out


def test_an_experiment_is_started_shown_and_stopped_and_its_name_is_used_once(runtime, capsys):
    assert main(["experiment", "status"]) == 0
    assert main(["experiment", "start", "modes", "mode=line,block"]) == 0
    fill(("mode=line",), (1,))
    assert main(["experiment", "status"]) == 0
    printed = capsys.readouterr().out
    assert "No experiment is running." in printed
    assert "mode=line: 200 suggestions" in printed
    assert "mode=block: 0 suggestions" in printed
    assert main(["experiment", "start", "other", "mode=line,block"]) == 2
    assert main(["experiment", "stop"]) == 0
    assert main(["experiment", "stop"]) == 0
    assert main(["experiment", "start", "modes", "mode=line,block"]) == 2
    assert "Choose another name" in capsys.readouterr().err
    assert main(["experiment", "start", "x", "mode"]) == 2
    assert main(["report", "--experiment"]) == 1


def test_an_experiment_needs_telemetry(runtime, capsys):
    config = runtime / "config" / "draftline"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("telemetry = false\n")
    assert main(["experiment", "start", "modes", "mode=line,block"]) == 2
    assert "nothing would be recorded" in capsys.readouterr().err
