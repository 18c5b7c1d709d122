"""Computes the figures of `draftline report` from the telemetry store."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from lsp_server.settings.experiment import Arm
from lsp_server.telemetry.persistence import CHECKPOINTS_S
from lsp_server.telemetry.report_figures import (
    CONTROLS,
    QUANTILES,
    STAGES,
    Group,
    Remaining,
    Report,
    Selection,
    mean,
    median,
    quantile,
)

_LENGTHS = ((0, 10), (10, 30), (30, 80), (80, 200))
_GROUPS = {
    "language": "language",
    "hour": "CAST(strftime('%H', at, 'unixepoch', 'localtime') AS INTEGER)",
    "length": "CASE "
    + " ".join(f"WHEN characters < {high} THEN '{low} to {high - 1}'" for low, high in _LENGTHS)
    + " ELSE '200 or more' END",
    "day": "date(at, 'unixepoch', 'localtime')",
    "drafter": "(SELECT key FROM json_each(accepted_by_drafter) ORDER BY value DESC LIMIT 1)",
}
_SHOWN = "shown = 1"
_TAKEN = "outcome IN ('accepted', 'partly')"
_ACCEPTED = f"{_TAKEN} AND {_SHOWN}"  # not from editors that do not report what they show: it would be all of theirs


def read_report(store: sqlite3.Connection, selection: Selection) -> Report:
    """Compute the report on a part of the store."""
    where, values = selection.where()
    query = (
        f"SELECT count(*) FILTER (WHERE reason = ''), count(*) FILTER (WHERE {_SHOWN}), "  # noqa: S608 - our own parts
        f"count(*) FILTER (WHERE {_ACCEPTED}), coalesce(sum(characters) FILTER (WHERE {_SHOWN}), 0), "
        "coalesce(sum(accepted_characters), 0), "
        f"coalesce(sum(min(accepted_characters, characters)) FILTER (WHERE {_ACCEPTED}), 0) "
        f"FROM suggestions WHERE {where}"
    )
    counts: tuple[int, int, int, int, int, int] = store.execute(query, values).fetchone()
    latency = _times(store, where, values)
    reasons = _reasons(store, selection, where, values)
    return Report(
        selection,
        *counts,  # in the order of the fields
        written_characters=_written(store, selection),
        outcomes=_counts(store, "outcome", f"{where} AND outcome != ''", values),
        remaining=_remaining(store, where, values),
        groups={name: _group(store, name, where, values) for name in _GROUPS},
        latency={stage: tuple(quantile(times, one) for one in QUANTILES) for stage, times in latency.items()},
        answer=median(latency["answer_ms"]),
        reasons=reasons,
        quiet=_quiet(store, reasons, where, values),
        tokens=_tokens(store, where, values),
        drafters=_drafters(store, where, values),
    )


def variants_with(store: sqlite3.Connection, setting: str, value: str, default: str) -> tuple[str, ...]:
    """Return the recorded variants in which a setting had a value. A variant omits settings with their default."""
    found = (row[0] for row in store.execute("SELECT DISTINCT variant FROM suggestions"))
    return tuple(variant for variant in found if _value_in(variant, setting, default) == value)


def arms_of(store: sqlite3.Connection, experiment: str) -> dict[Arm, tuple[float, float]]:
    """Return the recorded sides of an experiment with their first and last time, in the order of their first use.

    The name "" selects the latest experiment.
    """
    latest = "SELECT experiment FROM suggestions WHERE experiment != '' ORDER BY at DESC LIMIT 1"
    name = experiment or (store.execute(latest).fetchone() or ("",))[0]
    query = "SELECT experiment, arm, min(at), max(at) FROM suggestions WHERE experiment = ? GROUP BY 1, 2 ORDER BY 3"
    rows = store.execute(query, (name,)) if name else ()
    return {Arm(name, value): (first, last) for name, value, first, last in rows}


def _value_in(variant: str, setting: str, default: str) -> str:
    named = dict(part.split("=", 1) for part in variant.split(",") if "=" in part)
    return named.get(setting, default)


def _written(store: sqlite3.Connection, selection: Selection) -> int:
    if not selection.whole:
        return 0
    hours = (int(selection.since // 3600), int(selection.until // 3600))
    query = "SELECT coalesce(sum(characters), 0) FROM written WHERE hour BETWEEN ? AND ?"
    return int(store.execute(query, hours).fetchone()[0])


def _counts(store: sqlite3.Connection, column: str, where: str, values: tuple[object, ...]) -> dict[str, int]:
    query = f"SELECT {column}, count(*) FROM suggestions WHERE {where} GROUP BY 1 ORDER BY 2 DESC"  # noqa: S608
    return dict(store.execute(query, values).fetchall())


def _remaining(store: sqlite3.Connection, where: str, values: tuple[object, ...]) -> tuple[Remaining, ...]:
    query = (
        "SELECT after_s, share, persistence.characters FROM persistence "  # noqa: S608 - our own parts
        f"JOIN suggestions ON suggestions.id = suggestion WHERE {where}"
    )
    shares: dict[int, list[float]] = {after_s: [] for after_s in CHECKPOINTS_S}
    characters = dict.fromkeys(CHECKPOINTS_S, 0)
    for after_s, value, count in store.execute(query, values):
        shares.setdefault(after_s, []).append(value)
        characters[after_s] = characters.get(after_s, 0) + count
    return tuple(Remaining(after_s, mean(found), characters[after_s]) for after_s, found in sorted(shares.items()))


def _group(store: sqlite3.Connection, name: str, where: str, values: tuple[object, ...]) -> tuple[Group, ...]:
    query = (
        f"SELECT {_GROUPS[name]}, count(*), count(*) FILTER (WHERE {_ACCEPTED}), min(characters) "  # noqa: S608
        f"FROM suggestions WHERE {where} AND {_SHOWN} GROUP BY 1 ORDER BY "
        + {"hour": "1", "day": "1", "length": "4"}.get(name, "2 DESC")
    )
    rows = store.execute(query, values).fetchall()
    return tuple(Group(str(key) if key not in (None, "") else "none", shown, taken) for key, shown, taken, _ in rows)


def _times(store: sqlite3.Connection, where: str, values: tuple[object, ...]) -> dict[str, list[float]]:
    """Return the times of every stage in ascending order."""
    query = f"SELECT {', '.join(STAGES)} FROM suggestions WHERE {where} AND reason = ''"  # noqa: S608
    columns = list(zip(*store.execute(query, values), strict=True)) or [() for _ in STAGES]
    return {stage: sorted(column) for stage, column in zip(STAGES, columns, strict=True)}


def _reasons(store: sqlite3.Connection, selection: Selection, where: str, values: tuple[object, ...]) -> dict[str, int]:
    """Count the reasons for showing nothing: refusals without asking the engine, and empty or dropped answers."""
    counts = _counts(
        store, "CASE WHEN detail != '' THEN reason || ': ' || detail ELSE reason END",
        f"{where} AND reason != '' AND shown = 0", values,
    )  # fmt: skip
    if selection.whole:
        hours = (int(selection.since // 3600), int(selection.until // 3600))
        query = "SELECT reason, sum(requests) FROM refusals WHERE hour BETWEEN ? AND ? GROUP BY 1"
        for reason, requests in store.execute(query, hours):
            counts[reason] = counts.get(reason, 0) + requests
    return dict(sorted(counts.items(), key=lambda one: -one[1]))


def _quiet(
    store: sqlite3.Connection, reasons: Mapping[str, int], where: str, values: tuple[object, ...]
) -> dict[str, int]:
    ends = _counts(store, "stop_reason", f"{where} AND reason = ''", values)
    counts = {label: ends.get(name, 0) + reasons.get(name, 0) for name, label in CONTROLS.items()}
    return {label: count for label, count in counts.items() if count}


_TOKENS = (
    "prompt_tokens", "kept_tokens", "shifted_tokens", "computed_tokens", "generated_tokens", "steps",
    "drafted_tokens", "accepted_tokens", "grammar_checks", "grammar_rejections",
)  # fmt: skip


def _tokens(store: sqlite3.Connection, where: str, values: tuple[object, ...]) -> dict[str, int]:
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _TOKENS)
    row = store.execute(f"SELECT {sums} FROM suggestions WHERE {where}", values).fetchone()  # noqa: S608
    return dict(zip(_TOKENS, row, strict=True))


def _drafters(store: sqlite3.Connection, where: str, values: tuple[object, ...]) -> dict[str, int]:
    query = (
        "SELECT drafter.key, sum(drafter.value) FROM suggestions, json_each(accepted_by_drafter) AS drafter "  # noqa: S608
        f"WHERE {where} GROUP BY 1 ORDER BY 2 DESC"
    )
    return dict(store.execute(query, values).fetchall())
