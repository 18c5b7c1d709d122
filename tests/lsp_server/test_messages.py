"""How our own messages are read."""

import pytest

from completion.request import MAX_NAME_CHARACTERS, MAX_NAMES
from lsp_server.messages import InvalidMessageError, read_cursor, read_edit, read_names


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


NAMES = {"uri": "file:///a", "version": 3, "position": {"line": 0, "character": 6}, "names": ["total", 7, "tax"]}


def test_names_are_read_without_what_is_no_name():
    assert read_names(NAMES)[3] == ("total", "tax")
    assert read_names(NAMES | {"names": ["x" * (MAX_NAME_CHARACTERS + 1), "tax"]})[3] == ("tax",)
    with pytest.raises(InvalidMessageError, match="names must be a list"):
        read_names(NAMES | {"names": "total"})


def test_a_list_of_too_many_names_says_nothing():
    assert len(read_names(NAMES | {"names": ["tax"] * MAX_NAMES})[3]) == MAX_NAMES
    assert read_names(NAMES | {"names": ["tax"] * 1_000_000})[3] == ()
