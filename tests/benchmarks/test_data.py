"""The data files of the benchmarks."""

import pytest

from benchmarks.data import read_records, read_trace


def test_a_missing_file_is_named_and_how_to_name_a_folder(tmp_path):
    with pytest.raises(SystemExit, match=r"no file a\.jsonl\.gz.*--data-dir"):
        read_records("a.jsonl.gz", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no file trace\.json\.gz.*--data-dir"):
        read_trace(tmp_path / "trace.json.gz")
