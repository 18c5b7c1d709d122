"""What is left of a suggestion while the user types along."""

from hypothesis import given, settings
from hypothesis import strategies as st

from completion.request import CompletionEvent, Suggestion
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import CLOSERS, Situation


def generation_of(text, suffix="", replace_after=0):
    generation = Generation("id", Situation("P", suffix))
    generation.last = CompletionEvent((Suggestion(text, replace_after),), done=True)
    generation.cancelled = True
    generation.cancel()
    return generation


CODE = st.text(alphabet="ab() []\n\"'", max_size=12)


@settings(deadline=None)
@given(CODE, CODE)
def test_typing_any_beginning_of_the_text_leaves_exactly_its_rest(text, typed):
    left = generation_of(text).remainders(Situation("P" + typed, ""))
    if text.startswith(typed) and len(typed) < len(text):
        assert left[0].text == text[len(typed) :]
    else:
        assert left is None


@settings(deadline=None)
@given(CODE, st.integers(0, 12), st.text(alphabet=sorted(CLOSERS), max_size=3), CODE)
def test_accepting_a_narrowed_text_never_doubles_a_closer_that_the_editor_added(text, cut, closers, suffix):
    typed = text[:cut]
    left = generation_of(text, suffix).remainders(Situation("P" + typed, closers + suffix))
    if not left:
        return
    accepted = "P" + typed + left[0].text + (closers + suffix)[left[0].replace_after :]
    covered = (closers + suffix)[: left[0].replace_after]
    assert closers.startswith(covered)
    assert accepted == "P" + text + closers[len(covered) :] + suffix
