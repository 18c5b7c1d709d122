"""The data files of the benchmarks."""

import json

import pytest

from benchmarks.data import read_answers, read_records, read_trace
from benchmarks.next_edit.__main__ import Judgements


def test_a_missing_file_is_named_and_how_to_name_a_folder(tmp_path):
    with pytest.raises(SystemExit, match=r"no file a\.jsonl\.gz.*--data-dir"):
        read_records("a.jsonl.gz", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no file trace\.json\.gz.*--data-dir"):
        read_trace(tmp_path / "trace.json.gz")


def kept(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("line", [{"model": "other"}, {}])
def test_a_kept_file_of_another_model_is_refused(tmp_path, line):
    mine = {"id": "1", "row": "whole", "key": "k", "model": "default"}
    path = kept(tmp_path / "kept.jsonl", mine, {**mine, "model": "default"})
    assert read_answers(path, "default") == {("1", "whole"): mine}
    kept(path, mine, {"id": "2", "row": "whole", "key": "k", **line})
    for read in (lambda: read_answers(path, "default"), lambda: Judgements.opened(path, "default", 1)):
        with pytest.raises(SystemExit, match=r"kept\.jsonl has answers of .* not of default"):
            read()


def test_no_file_has_no_answers(tmp_path):
    assert read_answers(None, "default") == read_answers(tmp_path / "new", "default") == {}
