"""The requests of benchmarks.edits."""

import gzip
import json

import pytest

from benchmarks.edits.__main__ import CACHED_TOKENS, TYPED_TOKENS, gather, headline, keystroke_steps, source_tokens
from benchmarks.edits.sessions import Kind, snippet_requests
from benchmarks.edits.tally import Tally

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


def test_a_figure_without_requests_is_none():
    found = headline(Tally())
    assert set(found.values()) == {None}
    assert "tokens_computed_share" in found


def test_a_short_text_is_repeated_until_it_can_be_typed_on(data, tmp_path, tiny_model):
    tokens = source_tokens(tiny_model, data)
    assert len(tokens) >= CACHED_TOKENS + TYPED_TOKENS
    assert keystroke_steps(tiny_model, tokens) > 0
    with gzip.open(tmp_path / "open_release_replay.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("")
    with pytest.raises(SystemExit, match="no text"):
        source_tokens(tiny_model, str(tmp_path))


def test_a_record_without_other_files_has_no_snippet_that_changes():
    assert list(snippet_requests([{"id": "a", "context": ()}])) == []
