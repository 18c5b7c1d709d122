"""How our own messages are read."""

import pytest

from lsp_server.messages import InvalidMessageError, read_cursor, read_edit


@pytest.mark.parametrize("number", [-1, 2**31, 0.5, "1", None])
def test_a_position_outside_the_protocols_range_is_refused_by_name(number):
    with pytest.raises(InvalidMessageError, match="position"):
        read_cursor({"uri": "file:///a", "position": {"line": number, "character": 0}})


EDIT = {
    "id": "1",
    "uri": "file:///a",
    "version": 3,
    "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
    "instruction": "rename x",
}


def test_an_edit_is_read():
    message = read_edit(EDIT)
    assert (message.id, message.uri, message.version, message.instruction) == ("1", "file:///a", 3, "rename x")
    assert (message.start.line, message.end.line) == (1, 2)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"instruction": " "}, "instruction"),
        ({"version": None}, "version"),
        ({"range": {"start": {"line": 1, "character": 0}}}, '"end" is missing'),
        ({"range": {"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 0}}}, "ends before"),
    ],
)
def test_an_edit_with_a_wrong_field_is_refused_by_name(changed, complaint):
    with pytest.raises(InvalidMessageError, match=complaint):
        read_edit(EDIT | changed)
