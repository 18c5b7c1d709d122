"""Server-sent events, however the stream is cut into parts."""

import pytest

from completion.host.services import sse_message
from lsp_server.engine.event_stream import EventReader, ServerEvent


def read(*parts):
    reader = EventReader()
    return [event for part in parts for event in reader.read(part)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_every_cut_gives_the_same_events(size):
    stream = sse_message('{"text": "é\u2028"}'.encode()) + sse_message(b"{}", "error")
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(*parts) == [ServerEvent("", '{"text": "é\u2028"}'), ServerEvent("error", "{}")]


def test_an_event_without_an_end_or_without_data_is_none():
    assert read(b"data: 1\n") == []
    assert read(b"event: error\n\n", b"data: 1\n\n") == [ServerEvent("", "1")]


def test_comments_and_other_fields_are_ignored_and_lines_of_data_are_joined():
    assert read(b": hello\r\nid: 3\r\ndata: 1\r\ndata:2\r\n\r\n") == [ServerEvent("", "1\n2")]
