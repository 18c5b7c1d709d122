"""Stop rules about the size of an attempt, and about a line that never ends."""

import pytest

from completion.decoding.output_text import OutputText
from completion.decoding.stop_rules import MAX_BLANK_TOKENS, StopRules
from completion.ending.context import cursor_context
from completion.ending.rule import Stop
from completion.request import CompletionRequest, StopReason

ITEMS = "jobs:\n  test:\n    steps:\n      - run: make\n        "


def end_of(pieces, *, forced="", **changes):
    request = CompletionRequest(ITEMS, "\n", "yaml", **changes)
    output = OutputText(len(forced))
    for piece in pieces:
        output.extend(piece.encode(), "model")
    return StopRules(request, cursor_context(request)).size_end(output)


def test_an_attempt_that_writes_nothing_but_blanks_ends_soon():
    end = end_of([" "] * (MAX_BLANK_TOKENS + 1))
    assert end is not None
    assert end.reason is StopReason.REPETITION


@pytest.mark.parametrize(
    "pieces", [[" " * 40], [" "] * MAX_BLANK_TOKENS, [*[" "] * MAX_BLANK_TOKENS, "- run"], ["\n\n", "    " * 5, "env:"]]
)
def test_an_indentation_and_text_after_blanks_go_on(pieces):
    assert end_of(pieces) is None


def test_tokens_of_the_text_before_the_cursor_are_no_blanks_of_the_attempt():
    forced = " " * MAX_BLANK_TOKENS
    assert end_of([*forced, " "], forced=forced) is None
    assert end_of([*forced, *" " * (MAX_BLANK_TOKENS + 1)], forced=forced) is not None


def test_an_attempt_without_filters_may_write_blanks():
    assert end_of([" "] * 40, filters=False) is None


@pytest.mark.parametrize(
    ("pieces", "is_end"),
    [(["re"], False), (["r", "e"], False), (["r", "e", "turn"], True), (["r", "eturn"], True), (["r", "e", ""], True)],
)
def test_tokens_that_repeat_what_is_before_the_cursor_do_not_count_for_the_maximum(pieces, is_end):
    assert (end_of(pieces, forced="re", max_tokens=1) is not None) == is_end


@pytest.mark.parametrize(
    ("pieces", "forced", "length"), [(["a", " return"], "", 4), (["a", "éé"], "", 2), (["return x"], "re", 4)]
)
def test_a_text_has_at_most_the_maximum_of_bytes_and_whole_characters(pieces, forced, length):
    end = end_of(pieces, forced=forced, max_bytes=4, filters=False)
    assert end == Stop(length, StopReason.MAX_BYTES)


def text_end(text, **changes):
    request = CompletionRequest("UNITS = (", ")\n", "python", **changes)
    return StopRules(request, cursor_context(request)).text_end(text)


@pytest.mark.parametrize(
    "cycle", ['"PB", "EB", "ZB", "YB", ', "0x00, ", "field.value.field.other."], ids=["items", "zeros", "attributes"]
)
def test_a_line_that_goes_round_in_circles_ends_before_its_second_round(cycle):
    begun = '"KB", "MB", '
    end = text_end(begun + cycle * 10)
    assert end is not None
    assert end.reason is StopReason.REPETITION
    assert end.length <= len(begun + cycle)


@pytest.mark.parametrize(
    "line",
    [
        ", ".join(f'"{unit}"' for unit in ("KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "RB", "QB")),
        ", ".join(str(number) for number in range(100, 140)),
        "%02x:%02x:%02x:%02x:%02x:%02x",
        "Matcher[Any, Any, Any, Any, Any, Any]",
        "[usize, usize, usize, usize, usize, usize, usize]",
    ],
)
def test_a_true_list_goes_on(line):
    assert not any(text_end(line[:length]) for length in range(len(line)))


def test_an_attempt_without_filters_may_go_round_in_circles():
    assert text_end("0x00, " * 40, filters=False) is None
