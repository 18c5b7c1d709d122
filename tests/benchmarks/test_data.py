"""The data files of the benchmarks."""

import gzip
import json

import pytest

from benchmarks.data import read_answers, read_file, read_records, read_trace
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


def test_a_line_that_a_run_left_half_written_is_made_anew(tmp_path):
    whole = {"id": "1", "row": "whole", "model": "default"}
    path = kept(tmp_path / "kept.jsonl", whole)
    complete = path.read_bytes()
    path.write_bytes(complete + b'{"id": "2", "row": "wh')
    assert read_answers(path, "default") == {("1", "whole"): whole}
    assert path.read_bytes() == complete
    other = kept(tmp_path / "other.jsonl", whole | {"model": "other"})
    other.write_bytes(other.read_bytes() + b'{"id": "2"')
    notes = tmp_path / "notes.txt"
    notes.write_text("a file of another kind")
    for path in (other, notes):
        before = path.read_bytes()
        with pytest.raises(SystemExit):
            read_answers(path, "default")
        assert path.read_bytes() == before


@pytest.mark.parametrize("packed", [False, True])
def test_fields_that_a_record_lacks_are_empty_and_blank_lines_are_none(tmp_path, packed):
    text = '{"id": "a==1:x"}\n\n{"id": "b", "path": null, "context": null, "tests": null, "source": null}\r\n  \n'
    path = tmp_path / ("data.jsonl.gz" if packed else "data.jsonl")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    empty = {"path": "", "context": (), "tests": ""}
    assert read_file(path) == [{"id": id_, "source": id_} | empty for id_ in ("a==1:x", "b")]


@pytest.mark.parametrize("line", ['{"id": "a', "[1]", "text"])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "data.jsonl"
    path.write_text(f'{{"id": "a"}}\n{line}\n')
    with pytest.raises(SystemExit, match=r"Line 2 of .*data\.jsonl is not a JSON object"):
        read_file(path)
    with pytest.raises(SystemExit, match=r"no file none\.jsonl"):
        read_file(tmp_path / "none.jsonl")
