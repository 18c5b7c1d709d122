"""The remainder of a suggestion while the user types it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from completion.request import CompletionEvent, Suggestion
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import CLOSERS, MAX_CLOSERS, Situation, typed_since


def generation_of(text, suffix="", replace_after=0):
    generation = Generation("id", Situation("P", suffix))
    generation.last = CompletionEvent((Suggestion(text, replace_after),), done=True)
    generation.cancelled = True
    generation.cancel()
    return generation


CODE = st.text(alphabet="ab() []\n\"'", max_size=12)


@settings(deadline=None)
@given(CODE, CODE)
def test_after_typing_a_beginning_of_the_suggestion_the_remainder_is_the_rest_of_it(text, typed):
    remainders = generation_of(text).remainders(Situation("P" + typed, ""))
    if text.startswith(typed) and len(typed) < len(text):
        assert remainders[0].text == text[len(typed) :]
    else:
        assert remainders is None


@settings(deadline=None)
@given(CODE, st.integers(0, 12), st.text(alphabet=sorted(CLOSERS), max_size=3), CODE)
def test_accepting_a_remainder_never_doubles_a_closer_that_the_editor_added(text, cut, closers, suffix):
    typed = text[:cut]
    remainders = generation_of(text, suffix).remainders(Situation("P" + typed, closers + suffix))
    if not remainders:
        return
    accepted = "P" + typed + remainders[0].text + (closers + suffix)[remainders[0].replace_after :]
    covered = (closers + suffix)[: remainders[0].replace_after]
    assert closers.startswith(covered)
    assert accepted == "P" + text + closers[len(covered) :] + suffix


def test_more_closers_than_an_editor_adds_are_another_change():
    for count, typed in ((MAX_CLOSERS, "("), (MAX_CLOSERS + 1, None)):
        assert typed_since(Situation("f", ""), Situation("f(", ")" * count)) == typed
