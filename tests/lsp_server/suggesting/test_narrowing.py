"""The remainder of a suggestion while the user types it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.request import CompletionEvent, Suggestion
from lsp_server.suggesting.ahead import rest_of
from lsp_server.suggesting.closers import CLOSERS
from lsp_server.suggesting.generation import Generation
from lsp_server.suggesting.narrowing import (
    Remainder,
    Situation,
    opens_pair,
    shortened,
)
from tests.narrowing_cases import NARROWING_CASES


def generation_of(text, suffix="", replace_after=0):
    generation = Generation("id", Situation("P", suffix))
    generation.last = CompletionEvent((Suggestion(text, replace_after),), done=True)
    generation.cancelled = True
    generation.cancel()
    return generation


CODE = st.text(alphabet="ab() []\n\"'", max_size=12)


@given(CODE, CODE)
def test_after_typing_a_beginning_of_the_suggestion_the_remainder_is_the_rest_of_it(text, typed):
    remainders = generation_of(text).remainders(Situation("P" + typed, ""))
    if text.startswith(typed) and len(typed) < len(text):
        assert remainders[0].text == text[len(typed) :]
    else:
        assert remainders is None


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


@pytest.mark.parametrize("case", NARROWING_CASES, ids=lambda case: case["case"])
def test_what_is_left_of_a_suggestion_after_typing(case):
    then, now = (Situation(*case[when].split("|")) for when in ("then", "now"))
    generation = Generation("id", then)
    suggestion = Suggestion(case["text"], case["replaced"])
    generation.last = CompletionEvent((suggestion,), done=not case.get("grows", False))
    if generation.last.done:
        generation.cancel()
    remainders = generation.remainders(now) or ()
    assert [[one.text, one.replace_after] for one in remainders] == ([case["left"]] if case["left"] else [])


@pytest.mark.parametrize(
    ("suffix", "replaced", "text", "typed", "now", "left"),
    [
        ("", 0, " {\n    a();\n    b();\n}", " {\n    ", "\n}", "a();\n    b();"),
        ("", 0, " {\n    a();\n    b();\n}", " {\n    a", "\n}", "();\n    b();"),
        ("}", 1, "\n    a();\n}", "\n    ", "\n}", "a();"),
        ("}\n", 0, "\n    a();", "\n    ", "\n}\n", "a();"),
        ("", 0, "({\n    a: 1,\n  });", "({\n    ", "\n  })", "a: 1,"),
        ("}", 0, "\r\n\ta();", "\r\n\t", "\r\n}", "a();"),
        (")\n", 1, "\n    a,\n)", "\n    ", "\n)\n", "a,"),
        ("}", 1, "\n    a();\n}", "\n  ", "\n}", "  a();"),
        ("}", 1, "\n    a();\n}", "\n    a();", "\n}", None),
        ("}", 0, "a", "", "\n}", None),
        ("", 0, "f() {\n  a();\n} else {\n", "f() {\n  ", "\n}", "a();"),
        ("\n}", 0, "f() {\n  a();\n}", "f() {\n  ", "\n}", "a();\n}"),
        ("\n}", 0, "f() {\n  a();\n}", "f() {\n  ", "\n}\n}", "a();"),
        ("\ny", 0, "f() {\n  a();\n}", "f() {\n  ", "\n}\nx", None),
        ("", 0, "b>{x}</b>", "b>", "</b>", "{x}"),
        ("\n", 0, "p>a <p>b</p> c</p>", "p>", "</p>\n", "a <p>b</p> c"),
        ("</i>", 0, "b>", "b>", "</b></i>", None),
        ("", 0, "ul>\n  <li>", "ul>\n  ", "\n</ul>", "<li>"),
        ("", 0, "ul>\n  <li></li>\n</ul>", "ul>\n  ", "\n</ul>", "<li></li>"),
        ("", 0, "b", "", "</b>", None),
    ],
    ids=[
        *("a block", "its first letter", "the closer was there", "no closer in the text", "two closers", "line ends"),
        *("a call", "another indentation", "nothing is left", "nothing was typed"),
        *("text after the closer", "no closer was added", "an equal closer below", "another edit"),
        *("an end tag", "the same tag inside", "no content", "a line in a tag", "lines in a tag", "no tag was typed"),
    ],
)
def test_a_suggestion_stays_when_the_editor_adds_an_end_tag_or_puts_the_closer_on_a_line_of_its_own(
    suffix, replaced, text, typed, now, left
):
    remainders = generation_of(text, suffix, replaced).remainders(Situation("P" + typed, now))
    assert [(one.text, one.replace_after) for one in remainders or ()] == ([(left, 0)] if left else [])


def test_a_closer_that_is_typed_before_an_end_tag_is_replaced_without_the_tag():
    (left,) = generation_of("b>{x}</b>").remainders(Situation("Pb>{", "}</b>"))
    assert (left.text, left.replace_after) == ("x}", 1)


@pytest.mark.parametrize(
    ("suffix", "replaced", "text", "typed", "now", "left"),
    [
        ("}", 0, "\n\ta.Lock()\n\tb()", "\n\ta.Lock(", ")\n}", (")\n\tb()", 1)),
        ("}", 1, "\n  f(x)\n}", "\n  f(", ")\n}", ("x)", 1)),
        ("", 0, "{\n  if (x) {\n    y\n  }\n}", "{\n  if (x) {\n    ", "\n  }\n}", ("y", 0)),
        ("", 0, "tr>\n  <td>{x}</td>\n</tr>", "tr>\n  <td>", "</td>\n</tr>", ("{x}", 0)),
    ],
    ids=["a call in a block", "before its end", "a block in a block", "a tag in a tag"],
)
def test_a_suggestion_stays_while_the_editor_closes_more_in_an_opened_block(suffix, replaced, text, typed, now, left):
    remainders = generation_of(text, suffix, replaced).remainders(Situation("P" + typed, now))
    assert [(one.text, one.replace_after) for one in remainders or ()] == [left]


def test_what_follows_the_shown_part_of_an_opened_block_leaves_its_closer_out():
    now = Situation("P {\n    ", "\n}")
    generation = generation_of(" {\n    a();\n    b();\n}")
    (whole,) = generation.remainders(now)
    rest = rest_of(generation, "next", now, shortened(whole, len("a();"), now))
    assert [one.text for one in rest.last.suggestions] == ["\n    b();"]
    assert rest.start == Situation("P {\n    a();", "\n}")


@pytest.mark.parametrize(
    ("before", "after", "replaced", "text", "shown", "result"),
    [
        ('mail["S', '"]', 2, 'ubject"] = f"Your order"', 'ubject"] =', 'mail["Subject"] ='),
        ('mail["S', '"]', 2, 'ubject"] = f"Your order"', 'ubject"', 'mail["Subject"]'),
        ('mail["S', '"]', 2, 'ubject"] = f"Your order"', "ubject", 'mail["Subject"]'),
        ("f(", ")", 1, "g(a), b) + 1", "g(a)", "f(g(a))"),
        ("f(", ")", 1, "g(a), b) + 1", "g(a), b) +", "f(g(a), b) +"),
        ("f(", ");", 2, "a); // more", "a);", "f(a);"),
        ("f(", ");", 2, "a); // more", "a)", "f(a);"),
        ('f("""', '""")', 4, 'the "x" of y""") + 1', 'the "x" of', 'f("""the "x" of""")'),
        ('f("""', '""")', 4, 'the "x" of y""") + 1', 'the "x" of y""") +', 'f("""the "x" of y""") +'),
        ("Vec<", ">", 1, "u8>::new()", "u8>", "Vec<u8>"),
        ("x", "", 0, "(a) + b", "(a)", "x(a)"),
        ("at = [(", ")]", 0, "0, 0), (1, 1", "0, 0)", "at = [(0, 0)]"),
        ("at = [(", ")]", 0, "0, 0), (1, 1), (2", "0, 0), (1, 1)", "at = [(0, 0), (1, 1)]"),
        ("at = [(", ")]", 0, "0, 0), (1, 1", "0, 0), (1", "at = [(0, 0), (1)]"),
        ('x = ["', '"]', 0, 'a", "b", "c', 'a"', 'x = ["a"]'),
        ('x = ["', '"]', 0, 'a", "b", "c', 'a", "b",', 'x = ["a", "b",]'),
        ('x = ["', '"]', 0, 'a", "b", "c', 'a", "b', 'x = ["a", "b"]'),
        ('f(a["', '"])', 0, 'x"], a["y', 'x"]', 'f(a["x"])'),
        ("if (a) {", "}", 0, " b(); } else { c();", " b(); }", "if (a) { b(); }"),
        ("g(f(", ")", 0, "a), b", "a)", "g(f(a))"),
        ("if", "    ok()", 0, " self.has(x) {", " self", "if self    ok()"),
        ('x = ["', '"]', 2, 'a", "b", "c"]', 'a", "b', 'x = ["a", "b"]'),
        ('x = ["', '"]', 2, 'a", "b", "c"]', 'a", "b",', 'x = ["a", "b",]'),
        ('x = ["', '"]', 2, 'a", f("b (c")]', 'a", f("b (', 'x = ["a", f("b ("]'),
        ('    "', '"', 1, '""Set the title.', '""Set the', '    """Set the'),
        ('    "', '"', 1, '""Set the title."""', '""Set the title', '    """Set the title'),
        ("at = [(", ")]", 2, "0, 0), (1, 1)]", "0, 0), (1", "at = [(0, 0), (1)]"),
        ("at = [(", ")]", 2, "0, 0)], [(1, 1)]", "0, 0)], [(1", "at = [(0, 0)], [(1)]"),
        ('f("', '")', 1, 'a", "b", c', 'a", "b', 'f("a", "b")'),
        ('f("', '")', 1, 'a", "b", c', 'a", "b"', 'f("a", "b")'),
        ("    b();", "\n}", 0, "\n}\n\nvoid f() {", "\n}\n\nvoid f", "    b();\n}\n\nvoid f\n}"),
        ("    b();", "\r\n}", 0, "\r\n}\r\n\r\nvoid f() {", "\r\n}", "    b();\r\n}\r\n}"),
        ("", "foo(a)", 0, "for (b) {", "for", "forfoo(a)"),
        ("@A", "\n\n", 0, "\nclass C {\n    x", "\nclass C", "@A\nclass C\n\n"),
        ("[", "]\r\n", 0, "A]\r\n[B(c)]\r\nclass C {", "A]\r\n[B", "[A]\r\n[B]\r\n"),
    ],
)
def test_the_shown_part_of_a_suggestion_replaces_the_closers_that_it_contains(
    before, after, replaced, text, shown, result
):
    left = shortened(Remainder(0, text, replaced), len(shown), Situation(before, after))
    assert before + left.text + after[left.replace_after :] == result


@pytest.mark.parametrize(
    ("after", "text", "shown", "left"),
    [
        (", true);", "arser, options", "arser,", "arser"),
        (" : dict", "ata : Any = {}", "ata :", "ata"),
        ("::as_ref)", "Ref::new()", "Ref::", "Ref"),
        (", true);", "arser, options", "arser, options", "arser, options"),
        (") {", "arser, options", "arser,", "arser,"),
    ],
)
def test_a_shown_part_does_not_end_with_the_separator_after_the_cursor(after, text, shown, left):
    assert shortened(Remainder(0, text, 0), len(shown), Situation("f(p", after)).text == left


def test_a_shown_part_replaces_a_closer_that_the_editor_has_added_since_only_if_it_contains_that_one():
    now = Situation("Pf(", ")")
    (whole,) = generation_of("f(g(a), b)").remainders(now)
    assert whole.replace_after == 1
    assert shortened(whole, len("g(a)"), now).replace_after == 0


@pytest.mark.parametrize(
    ("before", "after", "text", "replaced", "opens"),
    [
        ("type A struct {", "}", "\n\tmu", 0, True),
        ("f(", ")\n", "\r\n    a,", 0, True),
        ("type A struct {", "}", "\n\tmu sync.Mutex\n}", 1, False),
        ("type A struct {", "", "\n\tmu", 0, False),
        ("x = [", "}", "\n    1,", 0, False),
        ("f(a,", ")", "\n    b", 0, False),
        ("f(", ")", "a", 0, False),
    ],
    ids=["braces", "parentheses", "whole", "no closer", "another's closer", "after an argument", "same line"],
)
def test_a_text_that_leaves_the_closer_of_its_pair_behind_its_end_opens_the_pair(before, after, text, replaced, opens):
    assert opens_pair(Remainder(0, text, replaced), Situation(before, after)) is opens
