"""The closers of an item: what a client needs to narrow a suggestion while the user types it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lsp_server.documents.position_encoding import PositionEncoding
from lsp_server.suggesting.closers import closers_while_typing
from lsp_server.suggesting.items import inline_items
from lsp_server.suggesting.narrowing import Remainder
from tests.lsp_server.suggesting.test_items import answered
from tests.narrowing_cases import NARROWING_CASES, closers_sent

PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'"}


@pytest.mark.parametrize("case", NARROWING_CASES, ids=lambda case: case["case"])
def test_the_cases_of_the_clients_have_the_closers_that_the_server_sends(case):
    after = case["then"].partition("|")[2]
    assert case["closers"] == closers_sent(case["text"], after[: case["replaced"]])


def contained(closers, typed, standing):
    """What docs/editors.md asks of a client: how many of the characters after the cursor the text has itself."""
    count = 0
    for character, start, end in reversed(closers):
        if standing.endswith(character) and start <= typed and (start == 0 or end is None or typed <= end):
            standing = standing.removesuffix(character)
            count += end is not None
        elif start == 0 and typed <= end:
            return None
    return None if standing else count


class PairingEditor:
    """Adds the closers of some openers, and types over the closers after the cursor, but not after a backslash."""

    def __init__(self, after, paired):
        self.before, self.after = "", after
        self._pairs = {opener: PAIRS[opener] for opener in paired}

    def type(self, character):
        if self.before.endswith("\\"):
            pass
        elif character in self._pairs.values() and self.after.startswith(character):
            self.after = self.after[1:]
        elif character in self._pairs:
            self.after = self._pairs[character] + self.after
        self.before += character


def nested(inner):
    brackets = st.sampled_from(["()", "[]", "{}"]).flatmap(
        lambda pair: inner.map(lambda text: pair[0] + text + pair[1])
    )
    return st.lists(st.one_of(brackets, inner), max_size=3).map("".join)


QUOTED = st.sampled_from(['"a"', "'b c'", '""', '"x\\"y"'])
CODE = st.recursive(st.one_of(st.sampled_from(["a", " b", ", ", "\n  ", "1 + "]), QUOTED), nested, max_leaves=8)


@given(CODE, st.sets(st.sampled_from(sorted(PAIRS))), st.sampled_from(["", ")", '")', "])"]))
def test_a_suggestion_stays_while_it_is_typed_in_an_editor_that_pairs_and_ends_as_the_same_document(
    text, paired, after
):
    """The text ends with what stands after the cursor."""
    assume('"' not in after or not {"\n", '"'}.intersection(text))  # the text does not end the string earlier
    editor, whole = PairingEditor(after, paired), text + after
    closers = closers_while_typing(whole, after)
    for typed, character in enumerate(whole):
        count = contained(closers, typed, editor.after)
        assert count is not None
        assert editor.before + whole[typed:] + editor.after[count:] == whole
        editor.type(character)


@pytest.mark.parametrize(
    ("encoding", "start", "end"),
    [(PositionEncoding.UTF8, 9, 12), (PositionEncoding.UTF16, 6, 7), (PositionEncoding.UTF32, 5, 6)],
)
def test_offsets_are_in_the_units_of_the_client_with_one_for_each_line_end(encoding, start, end):
    query, answer = answered("", "", Remainder(0, "é𝒳\r\na(\u20ac)", 0), encoding)
    (item,) = inline_items(query, answer)
    assert item["closers"] == [{"character": ")", "from": start, "to": end}]
