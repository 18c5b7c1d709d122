"""`draftline experiment start|status|stop`: alternates between two values of a setting, for `draftline report`."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from completion.errors import ConfigurationError
from lsp_server.cli.main import Commands
from lsp_server.settings.config import user_file, users_settings
from lsp_server.settings.experiment import CurrentExperiment, Experiment, experiment_path
from lsp_server.telemetry.store import read_store, store_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `experiment`."""
    actions = parser.add_subparsers(action=Commands, dest="action", metavar="ACTION", required=True)
    start = actions.add_parser("start", help="alternate between two values of a setting, in every editor")
    start.add_argument("name", metavar="NAME", help="name of the experiment in the report")
    start.add_argument("setting", metavar="SETTING=A,B", help="for example mode=line,block or debounce_ms=40,120")
    start.add_argument("--by", default="hour", help='alternate by "hour" (default) or by "file"')
    actions.add_parser("status", help="show the experiment and its recorded suggestions")
    actions.add_parser("stop", help="end the experiment and keep its records")


def execute(options: argparse.Namespace) -> int:
    """Run the command."""
    current = CurrentExperiment(experiment_path())
    match options.action:
        case "start":
            _start(current, options)
        case "stop":
            _stop(current)
        case _:
            _show(current.get())
    return 0


def _start(current: CurrentExperiment, options: argparse.Namespace) -> None:
    setting, _, values = options.setting.partition("=")
    first, _, second = values.partition(",")
    if not setting or not first or not second:
        raise ConfigurationError(
            f'"{options.setting}" is not of the form SETTING=A,B. Examples: mode=line,block and debounce_ms=40,120'
        )
    experiment = Experiment(options.name, setting.replace("-", "_"), (first, second), options.by, time.time())
    if not users_settings().telemetry:
        raise ConfigurationError(
            f"`telemetry` is off in {user_file()}, so nothing would be recorded. Set it to true to run an experiment."
        )
    if recorded := _recorded(options.name):
        raise ConfigurationError(
            f'The name "{options.name}" already has recorded suggestions ({", ".join(recorded)}). Choose another name.'
        )
    current.start(experiment)
    print(f"{options.name} has started: {setting} alternates between {first} and {second} by {options.by}.")
    print("It runs in every editor with `telemetry` on. To end it: draftline experiment stop")
    print("To compare the values: draftline report --experiment")


def _show(experiment: Experiment | None) -> None:
    if experiment is None:
        print("No experiment is running.")
        return
    since = datetime.fromtimestamp(experiment.started_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    first, second = experiment.values
    alternation = f"{experiment.setting} alternates between {first} and {second} by {experiment.by}"
    print(f"{experiment.name}: {alternation}, since {since}.")
    recorded = _recorded(experiment.name)
    for arm in experiment.arms:
        print(f"  {arm.side}: {recorded.get(arm.side, 0)} suggestions")


def _stop(current: CurrentExperiment) -> None:
    experiment = current.get()
    current.stop()
    if experiment is None:
        print("No experiment is running.")
    else:
        print(f"{experiment.name} has ended. To compare its values: draftline report --experiment {experiment.name}")


def _recorded(name: str) -> dict[str, int]:
    """Return the number of recorded suggestions of each side of an experiment."""
    if not store_path().exists():
        return {}
    with read_store(store_path()) as store:
        return dict(store.execute("SELECT arm, count(*) FROM suggestions WHERE experiment = ? GROUP BY 1", (name,)))
