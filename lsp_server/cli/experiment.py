"""`draftline experiment start|status|stop`: two values of a setting take turns, `draftline report` compares them."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from completion.errors import ConfigurationError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `experiment`."""
    parser = subparsers.add_parser("experiment", help="compare two values of a setting on yourself")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    start = actions.add_parser("start", help="let two values of a setting take turns in every editor, from now on")
    start.add_argument("name", metavar="NAME", help="what the experiment is called in the report")
    start.add_argument("setting", metavar="SETTING=A,B", help="for example mode=line,block or debounce_ms=40,120")
    start.add_argument("--by", default="hour", help='what they alternate by: "hour" (default) or "file"')
    start.set_defaults(execute=_start)
    actions.add_parser("status", help="what runs, and what was recorded so far").set_defaults(execute=_status)
    actions.add_parser("stop", help="end it; what was recorded stays").set_defaults(execute=_stop)


def _start(options: argparse.Namespace) -> int:
    from lsp_server.settings.config import load, user_file
    from lsp_server.settings.experiment import CurrentExperiment, Experiment, experiment_path

    setting, _, values = options.setting.partition("=")
    first, _, second = values.partition(",")
    if not setting or not first or not second:
        raise ConfigurationError(f'"{options.setting}" must be SETTING=A,B, for example mode=line,block.')
    experiment = Experiment(options.name, setting.replace("-", "_"), (first, second), options.by, time.time())
    settings, _ = load(user_file(), [], [])
    if not settings.telemetry:
        raise ConfigurationError(
            f"`telemetry` is off in {user_file()}: nothing would be recorded, so nothing compared."
        )
    if recorded := _recorded(options.name):
        raise ConfigurationError(
            f'There was an experiment "{options.name}" ({", ".join(recorded)}). Take another name.'
        )
    CurrentExperiment(experiment_path()).start(experiment)
    print(f"{options.name} runs in all editors that record: {setting} is {first} or {second}, by {options.by}.")
    print("Compare with `draftline report --experiment`, end with `draftline experiment stop`.")
    return 0


def _status(_options: argparse.Namespace) -> int:
    from lsp_server.settings.experiment import CurrentExperiment, experiment_path

    experiment = CurrentExperiment(experiment_path()).get()
    if experiment is None:
        print("No experiment runs.")
        return 0
    since = datetime.fromtimestamp(experiment.started_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    first, second = experiment.values
    print(f"{experiment.name}: {experiment.setting} is {first} or {second}, by {experiment.by}, since {since}")
    recorded = _recorded(experiment.name)
    for arm in experiment.arms:
        print(f"  {arm.side}: {recorded.get(arm.side, 0)} suggestions")
    return 0


def _stop(_options: argparse.Namespace) -> int:
    from lsp_server.settings.experiment import CurrentExperiment, experiment_path

    current = CurrentExperiment(experiment_path())
    experiment = current.get()
    current.stop()
    if experiment is None:
        print("No experiment runs.")
    else:
        print(f"{experiment.name} is over. Compare with `draftline report --experiment {experiment.name}`.")
    return 0


def _recorded(name: str) -> dict[str, int]:
    """How many suggestions of each side of an experiment are in the store."""
    from lsp_server.telemetry.schema import open_store, store_path

    if not store_path().exists():
        return {}
    store = open_store(store_path())
    try:
        return dict(store.execute("SELECT arm, count(*) FROM suggestions WHERE experiment = ? GROUP BY 1", (name,)))
    finally:
        store.close()
