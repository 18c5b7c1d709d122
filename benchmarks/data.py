"""Location and reading of the data files of the benchmarks."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

VARIABLE = "DRAFTLINE_BENCH_DATA"
"""Environment variable that names the folder of the data."""
_BESIDE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"
_GZIP = b"\x1f\x8b"
_OPTIONAL: dict[str, Any] = {"path": "", "tests": "", "context": ()}
"""Fields that a record may lack or have as null, with what they are then. `source` is the record's `id` then."""


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
    return read_file(data_dir(argument) / name)


def read_file(path: Path) -> list[dict[str, Any]]:
    """Return every record of a JSON-lines file, which may be gzipped. Optional fields that it lacks are empty.

    Raises:
        SystemExit: The file does not exist, or a line is no JSON object. The message names the line.
    """
    with _opened(path) as lines:
        return [_complete(record) for record in objects(lines, path)]


def objects(lines: Iterable[str], path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of a file that is not blank.

    Raises:
        SystemExit: A line is no JSON object. The message names it.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise SystemExit(f"Line {number} of {path} is not a JSON object. Repair or remove it.")
            yield found


def _complete(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its optional fields."""
    optional = _OPTIONAL | {"source": record.get("id", "")}
    return record | {name: value for name, value in optional.items() if record.get(name) is None}


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
            f"There is no file {path.name} in {path.parent}. The folder of the benchmark data is named with --data-dir"
            f" or {VARIABLE}."
        )
    with path.open("rb") as file:
        is_packed = file.read(len(_GZIP)) == _GZIP
    return gzip.open(path, "rt", encoding="utf-8") if is_packed else path.open(encoding="utf-8")


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
    written = whole = path.read_bytes()
    end = written.rfind(b"\n") + 1
    if written.startswith(b"{", end):  # a run that was ended has left a part of a line
        whole = written[:end]
    lines = list(objects(whole.decode("utf-8").splitlines(), path))
    others = {line.get("model", "a model that it does not name") for line in lines} - {model}
    if others:
        raise SystemExit(f"{path} has answers of {', '.join(sorted(others))}, not of {model}. Name another file.")
    if len(whole) < len(written):
        os.truncate(path, len(whole))  # what is written next begins a line
    return lines
