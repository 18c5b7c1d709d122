"""Where the benchmarks' records lie, and how they are read."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "DRAFTLINE_BENCH_DATA"
_BESIDE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_dir(argument: str | None = None) -> Path:
    """The folder of the benchmarks' data: `--data-dir`, else DRAFTLINE_BENCH_DATA, else ../shared/data.

    Raises:
        SystemExit: The folder does not exist; the message says how to name another.
    """
    folder = Path(argument or os.environ.get(VARIABLE) or _BESIDE_REPOSITORY)
    if not folder.is_dir():
        raise SystemExit(
            f"The benchmark data is not at {folder}. Put the *.jsonl.gz record files into a folder and name it with"
            f" --data-dir or {VARIABLE}; each record has id, language, prefix, suffix and reference."
        )
    return folder


def read_records(name: str, argument: str | None = None) -> list[dict[str, Any]]:
    """Every record of one gzipped JSON-lines file.

    Args:
        name: The file's name within the data folder, such as open_repo_context.jsonl.gz.
        argument: The benchmark's `--data-dir`, where it was given.

    Raises:
        SystemExit: The folder or the file does not exist.
    """
    path = data_dir(argument) / name
    if not path.is_file():
        raise SystemExit(f"The benchmark data at {path.parent} has no file {name}.")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
