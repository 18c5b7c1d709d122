"""Server-sent events, however the stream is cut into parts."""

import pytest

from completion.host.services import sse_message
from lsp_server.engine.http import split_events


def read(*parts):
    found, begun = [], b""
    for part in parts:
        events, begun = split_events(begun + part)
        found += events
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_every_cut_gives_the_same_events(size):
    stream = sse_message('{"text": "é\u2028"}'.encode()) + sse_message(b"{}", "error")
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*parts) == [("", '{"text": "é\u2028"}'), ("error", "{}")]


def test_an_event_without_an_end_or_without_data_is_none():
    assert read(b"data: 1\n") == []
    assert read(b"event: error\n\n", b"data: 1\n\n") == [("", "1")]


def test_comments_and_other_fields_are_ignored():
    assert read(b": hello\n\n", b": hello\nid: 3\ndata: 1\n\n") == [("", "1")]
