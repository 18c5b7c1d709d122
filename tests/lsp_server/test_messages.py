"""How our own messages are read."""

import pytest

from lsp_server.messages import InvalidMessageError, read_cursor


@pytest.mark.parametrize("number", [-1, 2**31, 0.5, "1", None])
def test_a_position_outside_the_protocols_range_is_refused_by_name(number):
    with pytest.raises(InvalidMessageError, match="position"):
        read_cursor({"uri": "file:///a", "position": {"line": number, "character": 0}})
