"""The requests of benchmarks.edits."""

import gzip
import json

import pytest

from benchmarks.edits.__main__ import gather
from benchmarks.edits.sessions import Kind

TYPED = "value = value + 1\n" * 40


@pytest.fixture
def data(tmp_path):
    """A folder with a trace in which one key after the other is typed, and one record of each other file."""
    start = "x = 1\n" * 1000
    keys = [
        {"time": "2024-01-01T00:00:00", "patches": [[len(start) + index, 0, character]]}
        for index, character in enumerate(TYPED)
    ]
    replay = {"id": "r", "language": "python", "before": "a = 1\n", "after": "a = 1\n" + TYPED}
    pieces = [{"path": f"{name}.py", "text": TYPED} for name in "abc"]
    lacking = {"id": "s", "language": "python", "prefix": "x = ", "suffix": "\n", "reference": "1", "path": "s.py"}
    files = {
        "trace_sveltecomponent.json.gz": {"startContent": start, "txns": keys},
        "open_release_replay.jsonl.gz": replay,
        "open_repo_context.jsonl.gz": lacking | {"context": pieces},
    }
    for name, content in files.items():
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(json.dumps(content))
    return str(tmp_path)


def test_half_of_the_requests_are_of_the_trace_and_an_eighth_of_snippets(data):
    asked = [request.session for request in gather(data, 8)]
    assert asked == ["trace"] * 4 + ["r"] * 3 + ["s"]


def test_no_requests_are_none_of_the_trace_either(data):
    assert gather(data, 0) == []
    assert [request.kind for request in gather(data, 2)] == [Kind.OPEN]
