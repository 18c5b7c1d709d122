"""A suggested line is shown as far as it is worth it, and the rest once that is accepted or typed."""

import math
from itertools import accumulate
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.prompt.line_endings import restored
from completion.request import CompletionEvent, CompletionRequest, Statistics, Suggestion
from lsp_server.empty_reason import EmptyReason
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.worth import RIGHT_FROM, WRONG_COST, may_show_more, worthwhile_end
from lsp_server.suggesting.ahead import LOOK_S
from lsp_server.suggesting.generation import PAUSE_S
from tests.lsp_server.scripted_editor import URI, ScriptedEditor, settle, texts

WORDS = ("foo", "(", "bar", ", ", "baz", ")")
LINE = "".join(WORDS)
ENDS = (3, 4, 7, 9, 12, 13)


def ends_of(probabilities, ends):
    """Return the ends of tokens with these probabilities."""
    return tuple(zip(ends, map(math.log, accumulate(probabilities, mul)), strict=False))


def scored(*probabilities, text, ends):
    return Suggestion(text, 0, 0.0, tuple(map(math.log, probabilities)), ends_of(probabilities, ends))


def told(*probabilities, ends=ENDS):
    """Return what the engine says of the tokens of a line."""
    return {"each_token": tuple(map(math.log, probabilities)), "ends": ends_of(probabilities, ends)}


SURE_START = told(0.99, 0.99, 0.95, 0.95, 0.1, 0.9)  # "foo(bar, " is likely, "baz" is not


@st.composite
def suggestions(draw):
    words = draw(st.lists(st.sampled_from(["a", "bc", ".", "(", " ", "é", "_x", "12"]), min_size=1, max_size=12))
    ends = [sum(map(len, words[: count + 1])) for count in range(len(words))]
    probabilities = [draw(st.floats(0.01, 1.0)) for _ in words]
    return scored(*probabilities, text="".join(words), ends=tuple(ends))


def worth_of(suggestion, typed, end):
    """Return the worth of showing a suggestion from one character to another, by its definition."""
    known = {0: 0.0} | dict(suggestion.ends)
    p = math.exp(known[end] - known[typed])
    return (end - typed) * (p - (1 - p) * WRONG_COST)


def ends_with_a_word(text, end):
    last, after = text[end - 1], text[end : end + 1]
    is_inside = all(character.isalnum() or character == "_" for character in last + after)
    is_in_number = last == "." and after.isdigit() and (end == 1 or text[end - 2].isdigit())
    return not after or not (is_inside or is_in_number or (last == "(" and text[end:].strip()))


@given(suggestions())
def test_no_other_end_at_a_word_is_worth_more(suggestion):
    found = worthwhile_end(suggestion, 0, grows=False)
    text = suggestion.text
    ends = [end for end, _ in suggestion.ends if text[:end].strip() and ends_with_a_word(text, end)]
    best = max((worth_of(suggestion, 0, end) for end in ends), default=0.0)
    if best > 0:
        assert found in ends
        assert worth_of(suggestion, 0, found) == pytest.approx(best)
    else:
        assert found == 0


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("sure", "shown"), [(1, "value"), (5, "value\n    y ="), (8, "value\n    y = guess(z)")])
def test_with_every_line_end_the_sure_start_of_several_lines_is_shown(line_end, sure, shown):
    words = ("value", "\n", "    ", "y", " =", " guess", "(", "z)", "\n", "w = 1")
    probabilities = [0.99] * sure + [0.1] * (len(words) - sure)
    suggestion = scored(*probabilities, text="".join(words), ends=tuple(accumulate(map(len, words))))
    found = restored(suggestion, CompletionRequest(f"a = 1{line_end}x = "))
    assert found.text[: worthwhile_end(found, 0, grows=False)] == shown.replace("\n", line_end)


@given(suggestions())
def test_the_end_never_moves_back_while_the_text_is_typed(suggestion):
    shown = 0
    for typed, _ in suggestion.ends:
        now = worthwhile_end(suggestion, typed, grows=False)
        assert now >= typed
        assert now >= shown or not suggestion.text[typed:shown].strip(), "nobody sees a blank alone"
        shown = now


@given(suggestions())
def test_the_end_never_moves_back_while_the_text_grows(suggestion):
    shown = 0
    for count, (end, _) in enumerate(suggestion.ends, 1):
        if all(character.isalnum() or character == "_" for character in suggestion.text[end - 1 : end + 1]):
            continue  # a text that grows ends with a whole word
        so_far = Suggestion(suggestion.text[:end], ends=suggestion.ends[:count])
        now = worthwhile_end(so_far, 0, grows=True)
        assert now >= shown
        shown = now
    assert worthwhile_end(suggestion, 0, grows=False) >= shown


@given(suggestions())
def test_where_no_more_can_be_shown_no_longer_text_is(suggestion):
    for count, (end, _) in enumerate(suggestion.ends, 1):
        if all(character.isalnum() or character == "_" for character in suggestion.text[end - 1 : end + 1]):
            continue  # a text that grows ends with a whole word
        so_far = Suggestion(suggestion.text[:end], ends=suggestion.ends[:count])
        if not may_show_more(so_far, 0):
            assert worthwhile_end(suggestion, 0, grows=False) == worthwhile_end(so_far, 0, grows=True)


@given(suggestions())
def test_the_end_never_moves_back_at_any_character_that_is_typed(suggestion):
    shown = 0
    for typed in range(len(suggestion.text)):
        now = worthwhile_end(suggestion, typed, grows=False)
        assert now >= typed
        assert now >= shown or not suggestion.text[typed:shown].strip(), "nobody sees a blank alone"
        shown = now


@pytest.mark.parametrize("typed", [2, 5, 7])
def test_an_unlikely_word_is_shown_once_its_first_letter_is_typed(typed):
    suggestion = scored(0.1, 0.1, text=" species = x", ends=(8, 12))
    assert worthwhile_end(suggestion, 0, grows=False) == 0
    assert worthwhile_end(suggestion, 1, grows=False) == 1, "a blank says nothing about the word"
    assert worthwhile_end(suggestion, typed, grows=False) == 8


async def test_a_hidden_line_appears_when_the_user_begins_its_first_word():
    editor = ScriptedEditor("x = ")
    answer = await editor.ask_and_hear(LINE, **told(0.1, 0.1, 0.99, 0.99, 0.99, 0.99))
    assert (texts(answer), answer.reason) == ([], EmptyReason.HIDDEN)
    editor.type("f")
    assert texts(await editor.ask()) == ["oo"]
    assert len(editor.engine.requests) == 1


def test_a_text_that_grows_is_shown_with_its_last_word_but_without_a_mark_at_its_end():
    assert worthwhile_end(scored(1.0, text="HERE", ends=(4,)), 0, grows=True) == 4
    assert worthwhile_end(scored(1.0, text="HERE", ends=(4,)), 2, grows=True) == 4
    assert worthwhile_end(scored(1.0, 1.0, text="main {", ends=(4, 6)), 0, grows=True) == 4


def test_a_suggestion_without_the_ends_of_its_tokens_is_shown_whole():
    assert worthwhile_end(Suggestion("a\nb", 0, -9.0, (-9.0,)), 1, grows=False) == 3


async def test_a_line_is_shown_as_far_as_it_is_likely():
    editor = ScriptedEditor("x = ")
    assert texts(await editor.ask_and_hear(LINE, **SURE_START)) == ["foo(bar, "]


async def test_the_rest_is_there_at_once_after_the_acceptance_if_it_is_likely_then():
    editor = ScriptedEditor("x = ")
    shown = await editor.ask_and_hear(LINE, **told(0.99, 0.99, 0.95, 0.95, 0.2, 0.99))
    assert texts(shown) == ["foo(bar, "]
    editor.type("foo(bar, ")
    editor.completer.accepted(URI, shown.id)
    editor.type("baz")
    rest = await editor.ask()
    assert texts(rest) == [")"]
    assert rest.id != shown.id
    assert len(editor.engine.requests) == 1


async def test_a_manual_request_at_the_rest_gets_suggestions_of_its_own():
    editor = ScriptedEditor("x = ", suggestions=3)
    shown = await editor.ask_and_hear(LINE, **told(0.99, 0.99, 0.95, 0.95, 0.2, 0.99))
    editor.type("foo(bar, ")
    editor.completer.accepted(URI, shown.id)
    editor.ask(invoked=True)
    await settle()
    assert [request.suggestions > 1 for request in editor.engine.requests] == [False, True]
    await editor.close()


async def test_an_unlikely_rest_is_not_shown_after_the_acceptance():
    editor = ScriptedEditor("x = ")
    shown = await editor.ask_and_hear(LINE, **SURE_START)
    editor.type("foo(bar, ")
    editor.completer.accepted(URI, shown.id)
    assert (await editor.ask()).reason is EmptyReason.HIDDEN
    editor.type("q")
    assert texts(await editor.ask_and_hear("ux)")) == ["ux)"]


async def test_typing_along_shows_more():
    editor = ScriptedEditor("x = ")
    assert texts(await editor.ask_and_hear(LINE, **told(0.99, 0.3, 0.99, 0.99, 0.99, 0.99))) == ["foo"]
    editor.type("foo(")
    assert texts(await editor.ask()) == ["bar, baz)"]
    assert len(editor.engine.requests) == 1


@pytest.mark.parametrize(("invoked", "settings"), [(True, {}), (False, {"whole_lines": True})])
async def test_a_manual_request_and_the_setting_show_the_whole_line(invoked, settings):
    editor = ScriptedEditor("x = ", suggestions=1, **settings)
    assert texts(await editor.ask_and_hear(LINE, invoked=invoked, **SURE_START)) == [LINE]


async def test_a_manual_request_shows_the_rest_of_a_line_that_was_shortened():
    editor = ScriptedEditor("x = ", suggestions=1)
    await editor.ask_and_hear(LINE, **SURE_START)
    assert texts(await editor.ask(invoked=True)) == [LINE]
    assert len(editor.engine.requests) == 1


async def test_a_line_of_which_nothing_is_likely_is_hidden_until_its_start_is_typed():
    editor = ScriptedEditor("x = ")
    answer = await editor.ask_and_hear(LINE, **told(0.1, 0.99, 0.99, 0.99, 0.99, 0.99))
    assert (texts(answer), answer.reason) == ([], EmptyReason.HIDDEN)
    editor.type("foo")
    assert texts(await editor.ask()) == ["(bar, baz)"]
    assert len(editor.engine.requests) == 1


async def test_a_streamed_line_only_grows_and_ends_with_a_word():
    editor = ScriptedEditor("x = ")
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    chances = [0.99, 0.99, 0.95, 0.95, 0.1, 0.9]
    for count in range(1, len(WORDS) + 1):
        await editor.engine.say("".join(WORDS[:count]), done=count == len(WORDS), **told(*chances[:count]))
    assert texts(await task) == ["foo(bar, "]
    streamed = [texts(answer)[0] for _, answer, _ in editor.partials]
    assert streamed == sorted(streamed, key=len)
    assert streamed[0] == "foo"
    await settle()


@pytest.mark.parametrize("whole_lines", [False, True])
async def test_a_client_without_streaming_is_answered_when_what_is_shown_is_certain(whole_lines):
    editor = ScriptedEditor("x = ", streaming=False, whole_lines=whole_lines)
    task = editor.ask()
    await editor.engine.wait_for_request(1)
    chances = [0.99, 0.99, 0.95, 0.95, 0.1, 0.9]
    for count in (2, 5):
        assert not task.done()
        await editor.engine.say("".join(WORDS[:count]), **told(*chances[:count]))
    assert task.done() is not whole_lines
    await editor.engine.say(LINE, done=True, **told(*chances))
    assert texts(await task) == [LINE if whole_lines else "foo(bar, "]


async def test_a_start_replaces_no_text_after_the_cursor_but_a_closer_that_the_editor_added():
    editor = ScriptedEditor("f()", 2)
    shown = await editor.ask_and_hear("a, b)", replace_after=1, **told(0.9, 0.9, 0.1, 0.9, ends=(1, 3, 4, 5)))
    assert [(one.text, one.replace_after) for one in shown.remainders] == [("a, ", 0)]
    editor.type("a, ")
    editor.completer.accepted(URI, shown.id)
    editor.type("b")
    rest = await editor.ask()
    assert [(one.text, one.replace_after) for one in rest.remainders] == [(")", 1)]


@pytest.mark.parametrize("again", [(0.99, 0.99, 0.95, 0.95, 0.1, 0.9), (0.5, 0.1, 0.95, 0.95, 0.1, 0.9)])
async def test_alternatives_stay_whole_and_the_shortened_line_as_it_is(pass_time, again):
    editor = ScriptedEditor("x = ", suggestions=2)
    first = scored(*again, text=LINE, ends=ENDS)
    other = scored(0.01, 0.2, text="other()", ends=(5, 7))
    assert texts(await editor.ask_and_hear(LINE, **SURE_START)) == ["foo(bar, "]
    await pass_time(PAUSE_S)
    await editor.engine.wait_for_request(2)
    editor.engine.queues[1].put_nowait(CompletionEvent((first, other), done=True, statistics=Statistics(), whole=2))
    await settle()
    assert texts(editor.partials[-1][1]) == ["foo(bar, ", "other()"]


async def test_the_gate_judges_what_is_shown():
    seen = []
    editor = ScriptedEditor("x = ", gate=Strictness.LOW)
    editor.policy.acceptance.hides = lambda _generation, _strictness, withheld: seen.append(withheld)
    await editor.ask_and_hear(LINE, **SURE_START)
    assert set(seen) == {len("baz)")}


def test_a_comment_mark_alone_is_not_worth_showing():
    for mark, text in (("    #", " the sum"), ("//", " the rest"), ("--", " x"), ("-- |", " The sum"), ("(*", " x")):
        line = scored(0.9, 0.05, text=mark + text, ends=(len(mark), len(mark + text)))
        assert worthwhile_end(line, 0, grows=False) == 0
    code = scored(0.9, 0.05, text="x #" + " the sum", ends=(3, 11))
    assert worthwhile_end(code, 0, grows=False) == 3


def test_the_blank_that_is_left_of_a_text_is_shown_only_with_what_follows_it():
    pair = scored(0.95, 0.95, 0.2, text='": 20', ends=(2, 3, 5))
    assert [worthwhile_end(pair, typed, grows=False) for typed in range(3)] == [3, 3, 2]
    assert worthwhile_end(scored(0.95, 0.95, 0.9, text='": 20', ends=(2, 3, 5)), 2, grows=False) == 5


@pytest.mark.parametrize(
    ("text", "ends", "shown"),
    [
        ("if (order.closed", (2, 4), "if"),
        ("f(\n    a", (1, 2), "f("),
        ("for x {\n}", (5, 7), "for x {"),
        ("a = {}", (3, 5), "a ="),
        ('error: "Title', (6, 8), "error:"),
        ('f("a") + b', (2, 4, 5, 6), 'f("a")'),
        ('log("removed %s"', (3, 12, 14), 'log("removed'),
        ("tail -n 3", (4, 6), "tail"),
        ("a - b", (1, 3), "a -"),
        ("std::vector", (3, 5), "std::"),
        ("@v1.18", (1, 3, 4), "@v1"),
        ("items.2", (5, 6), "items."),
    ],
)
def test_what_is_shown_does_not_end_with_what_belongs_to_the_text_after_it(text, ends, shown):
    line = scored(*(0.95 for _ in ends), 0.1, text=text, ends=(*ends, len(text)))
    assert text[: worthwhile_end(line, 0, grows=False)] == shown


def test_the_point_after_a_typed_number_is_not_shown_without_what_follows_it():
    assert worthwhile_end(scored(0.95, 0.1, text=".0", ends=(1, 2)), 0, grows=False) == 0
    assert worthwhile_end(scored(0.95, 0.1, text=". Then", ends=(1, 6)), 0, grows=False) == 1


def test_a_block_is_shown_as_far_as_it_is_likely_and_not_up_to_an_indentation():
    block = scored(0.9, 0.9, 0.9, 0.1, text="if a:\n    b()\n    c()", ends=(5, 10, 13, 21))
    assert worthwhile_end(block, 0, grows=False) == 13
    head = scored(0.9, 0.9, 0.1, text="if a:\n    b()", ends=(5, 10, 13))
    assert worthwhile_end(head, 0, grows=False) == 5
    assert worthwhile_end(scored(0.9, 0.9, text="\n    b()", ends=(5, 8)), 0, grows=True) == 0


async def test_a_start_that_closes_what_the_rest_opens_again_replaces_the_closer_and_goes_on_after_it(
    pass_time,
):
    editor = ScriptedEditor("at = [()]", len("at = [("), suggestions=1, ahead=True)
    scores = told(0.99, 0.99, 0.99, 0.05, ends=(1, 4, 5, 12))
    (left,) = (await editor.ask_and_hear("0, 0), (1, 1", **scores)).remainders
    assert (left.text, left.replace_after) == ("0, 0)", 1)
    await pass_time(LOOK_S)
    await editor.engine.wait_for_request(2)
    assert (editor.engine.requests[1].prefix, editor.engine.requests[1].suffix) == ("at = [(0, 0)", "]")
    await editor.engine.say(", (1, 1)", done=True)
    editor.edit(7, 8, left.text)
    editor.cursor = 7 + len(left.text)
    assert editor.document.lines.text() == "at = [(0, 0)]"
    assert texts(await editor.ask()) == [", (1, 1)"]
    await editor.close()


@pytest.mark.parametrize("share", RIGHT_FROM)
async def test_a_promised_share_shows_no_less_likely_text(share):
    for p in (RIGHT_FROM[share] - 0.01, RIGHT_FROM[share] + 0.01):
        editor = ScriptedEditor("x = ", gate=share)
        answer = await editor.ask_and_hear("foo()", **told(p, ends=(5,)))
        assert texts(answer) == (["foo()"] if p > RIGHT_FROM[share] else [])
