"""Location and reading of the data files of the benchmarks."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, TextIO

VARIABLE = "DRAFTLINE_BENCH_DATA"
"""Environment variable that names the folder of the data."""
_BESIDE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_dir(argument: str | None = None) -> Path:
    """Return the folder of the data: `--data-dir`, else DRAFTLINE_BENCH_DATA, else ../shared/data.

    Raises:
        SystemExit: The folder does not exist. The message says how to name another one.
    """
    folder = Path(argument or os.environ.get(VARIABLE) or _BESIDE_REPOSITORY)
    if not folder.is_dir():
        raise SystemExit(
            f"The folder of the benchmark data does not exist: {folder}. Put the *.jsonl.gz files into a folder and"
            f" name it with --data-dir or {VARIABLE}. Each record has id, language, prefix, suffix and reference."
        )
    return folder


def read_records(name: str, argument: str | None = None) -> list[dict[str, Any]]:
    """Return every record of one gzipped JSON-lines file.

    Args:
        name: Name of the file within the data folder, for example open_repo_context.jsonl.gz.
        argument: Value of `--data-dir`, None if it is not given.

    Raises:
        SystemExit: The folder or the file does not exist.
    """
    with _opened(data_dir(argument) / name) as lines:
        return [json.loads(line) for line in lines]


def read_trace(path: Path) -> dict[str, Any]:
    """Return one gzipped JSON document of the editing-traces collection.

    Raises:
        SystemExit: The file does not exist.
    """
    with _opened(path) as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def _opened(path: Path) -> TextIO:
    if not path.is_file():
        raise SystemExit(
            f"The benchmark data at {path.parent} has no file {path.name}. Name a folder with --data-dir or {VARIABLE}."
        )
    return gzip.open(path, "rt", encoding="utf-8")


def read_answers(path: Path | None, model: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the lines of an `--out` file by (id, row), none if there is no such file; see `read_kept`."""
    return {(line["id"], line["row"]): line for line in read_kept(path, model)}


def read_kept(path: Path | None, model: str) -> list[dict[str, Any]]:
    """Return the lines of a file in which a benchmark keeps what a model answered, none if there is no such file.

    Args:
        path: The file, None if nothing is kept.
        model: The model of the run, in the spelling that each line has as `model`.

    Raises:
        SystemExit: A line is of another model, or of a version that did not note the model.
    """
    if path is None or not path.is_file():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    others = {line.get("model", "a model that it does not name") for line in lines} - {model}
    if others:
        raise SystemExit(f"{path} has answers of {', '.join(sorted(others))}, not of {model}. Name another file.")
    return lines
