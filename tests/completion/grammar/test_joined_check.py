"""The incremental joined parse gives the same result as a parse from scratch, and counts errors without a node."""

import random

import pytest

from completion.grammar.constraint import GrammarConstraint, OffReason
from completion.grammar.joined import JoinedCheck, Verdict
from completion.grammar.joining import Missing
from completion.grammar.parsed_documents import load_documents
from completion.request import GrammarMode
from completion.syntax.trees import error_count, parse
from tests.completion.grammar.acceptors import GRAMMARS, kept_of
from tests.completion.grammar.samples import SAMPLES


def stays_whole(constraint, text, missing=Missing.ANYTHING):
    """Return whether a finished completion passes if so much may be missing after it."""
    middle = text.encode()
    return constraint.longest_passing_cut(middle, missing=missing) == len(middle)


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_a_removed_part_that_is_inserted_again_makes_the_document_sound(language):
    documents = load_documents(language)
    text = SAMPLES[language].encode()
    rng = random.Random(11)
    for _ in range(60):
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        document = documents.document(text[:start] + text[end:])
        joined, tree = document.parse_with(start, start, text[start:end])
        assert joined == text
        assert error_count(tree) == 0
        assert document.tree.root_node.end_byte <= len(document.text)  # the document's own tree is unchanged


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_a_documents_tree_equals_that_of_a_parse_from_scratch_after_any_edits(language):
    documents = load_documents(language)
    sound = text = SAMPLES[language].encode()
    rng = random.Random(13)
    for _ in range(150):
        at = rng.randrange(len(text) + 1)
        put_in = rng.choice([b"x", b" ", b"\n", b")", b"{", b'"', b"1", b"\xc3\xa9"])
        text = text[:at] + put_in + text[at + rng.choice([0, 0, 1, 4]) :]
        tree = documents.document(text).tree
        assert str(tree.root_node) == str(parse(text, language).root_node)
        if tree.root_node.has_error:
            text = sound
        sound = text
    assert sound != SAMPLES[language].encode()


@pytest.mark.parametrize("language", sorted(set(SAMPLES) - {"python"}))
def test_added_errors_equal_those_of_a_parse_from_scratch(language):
    documents = load_documents(language)
    text = SAMPLES[language].encode()
    rng = random.Random(12)
    for _ in range(30):
        at = rng.randrange(len(text))
        middle = rng.choice([b")", b"x", b" {", b"\n", b'"', b"1 1", b"\xc3\xa9"])
        check = JoinedCheck(documents.document(text), at, at)
        is_broken = parse(text[:at] + middle + text[at:], language).root_node.has_error
        assert check.verdict(middle) is (Verdict.ADDS_ERRORS if is_broken else Verdict.SOUND)


def test_a_missing_line_end_is_an_error_although_the_tree_has_no_node_for_it():
    before, after = "package a\n\nvar x = 1\n", "func f() {}\n"
    assert kept_of("go", before, "var y = 2", after) == ""
    assert kept_of("go", before, "var y = 2\n", after) == "var y = 2\n"
    assert kept_of("go", before, "var y = 2\nvar z = 3", after) == "var y = 2\n"


@pytest.mark.parametrize("lines_between", [0, 200], ids=["near", "beyond the horizon"])
def test_right_text_stays_whole_in_a_file_in_which_a_line_end_is_missing_elsewhere(lines_between):
    before = "package a\n\nfunc f() {\n\t"
    after = "\n}\n" + "var c = 3\n" * lines_between + "var a = 1 var b = 2\n"
    assert kept_of("go", before, "x := g()\n\ty := h(x)", after) == "x := g()\n\ty := h(x)"
    constraint = GrammarConstraint(GRAMMARS, "go", before, after, GrammarMode.STRICT)
    assert stays_whole(constraint, "if x {")
    assert constraint.growing_cut(b"if x {", 0, Missing.ANYTHING) == len(b"if x {")


@pytest.mark.parametrize(
    ("language", "before", "after", "middle"),
    [
        ("python", "def f(xs):\n    ", "\n\n\ndef g(:\n    pass\n", "return sum("),
        ("go", "package a\n\nfunc f() {\n\t", "\n}\n\nfunc g() {\n\tx :=\n}\n", "if x {"),
        ("rust", "fn f() {\n    ", "\n}\n\nfn g() {\n    let x = ;\n}\n", "for x in xs {"),
        ("java", "class A {\n  void f() {\n    ", "\n  }\n\n  int x = ;\n}\n", "if (x) {"),
    ],
)
def test_an_error_elsewhere_leaves_what_later_lines_close(language, before, after, middle):
    constraint = GrammarConstraint(GRAMMARS, language, before, after, GrammarMode.STRICT)
    assert stays_whole(constraint, middle)
    assert constraint.growing_cut(middle.encode(), 0, Missing.ANYTHING) == len(middle)
    assert not stays_whole(constraint, middle, Missing.AS_BEFORE)


@pytest.mark.parametrize(("typed", "middle"), [("", "void f() {"), ("vo", "id f() {")])
def test_in_a_class_whose_semicolon_is_missing_a_method_may_begin(typed, middle):
    before, after = f"class A {{\n    {typed}", "\n}\n"  # as an editor closes it
    constraint = GrammarConstraint(GRAMMARS, "cpp", before, after, GrammarMode.STRICT)
    assert stays_whole(constraint, middle)


def test_an_error_of_the_cursors_line_must_be_mended():
    constraint = GrammarConstraint(GRAMMARS, "c", "int f(void) {\n    int x = ;", "\n}\n", GrammarMode.STRICT)
    assert not stays_whole(constraint, " g(")


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("css", "@custom-media --{} (min-width: 30em) and (max-width: 60em);"),  # which the grammar does not know
        ("c", "BEGIN({}) int x; int y; END"),
        ("go", "package {} extends a"),
    ],
)
def test_a_line_like_one_above_that_cannot_be_read_may_follow_it(language, line):
    begun, _, rest = line.partition("{}")
    before, after = f"{line.format('first')}\n{begun}", f"\n{line.format('last')}\n"
    constraint = GrammarConstraint(GRAMMARS, language, before, after, GrammarMode.STRICT)
    assert constraint.off_reason is OffReason.BROKEN_BEFORE_CURSOR
    assert stays_whole(constraint, f"next{rest}")


@pytest.mark.parametrize(
    ("language", "before", "middle"),
    [
        ("c", "int x;\n", "#include <stdio.h>"),
        ("cpp", "", "#define N 1"),
        ("go", "package a\n\n", "var x = 1"),
        ("python", "def f():\n    ", "return 1"),
    ],
)
def test_the_last_line_of_a_file_needs_no_line_end(language, before, middle):
    assert kept_of(language, before, middle, "") == middle


@pytest.mark.parametrize(
    ("language", "before", "after", "broken", "head", "wrong"),
    [
        ("typescript", "function f() {\n  ", "\n  g();\n}\n", "const x = ;\n", "if (!user) {", "if (!user {"),
        ("javascript", "f(() => {\n  ", "\n});\n", "g(a, \n}\n", "const a = ", "const = "),
        ("go", "package a\n\nfunc f() {\n\t", "\n}\n", "var x = ;\n", "for x > 0 {", "for x > 0 ) {"),
        ("python", "def f():\n    ", "\n    g()\n", "x = = 1\n", "y = g(", "y = g(]"),
    ],
)
def test_text_that_is_still_to_be_closed_stays_whole_in_a_file_that_is_broken_elsewhere(
    language, before, after, broken, head, wrong
):
    for prefix, suffix in ((before, after), (before, after + broken)):
        constraint = GrammarConstraint(GRAMMARS, language, prefix, suffix, GrammarMode.STRICT)
        assert stays_whole(constraint, head)
        assert constraint.growing_cut(head.encode(), 0, Missing.ANYTHING) == len(head)
        assert not stays_whole(constraint, wrong)


def test_text_does_not_take_the_place_of_an_error_at_the_cursor_by_another_one():
    text = b"function f() {\n  g(\n}\n"
    at = text.index(b"g(") + len(b"g(")
    check = JoinedCheck(load_documents("typescript").document(text), at, at)
    assert check.verdict(b"a)") >= Verdict.MENDS
    assert check.verdict(b"a b)") < Verdict.MENDS


def test_what_is_missing_at_the_start_of_a_file_is_an_error():
    check = JoinedCheck(load_documents("go").document(b""), 0, 0)
    assert check.verdict(b"= x") is Verdict.ADDS_ERRORS


@pytest.mark.parametrize("word", ["i", "if"])
def test_before_code_the_word_at_the_cursor_is_no_error_that_another_one_may_replace(word):
    """The text wrote the rest of the line anew: `A if b => c,` before ` => d,`."""
    before, after = "fn f(a: A) {\n    match a {\n        A::B ", "=> d(),\n    }\n}\n"
    text, start = (before + word + after).encode(), len(before)
    check = JoinedCheck(load_documents("rust").document(text), start, start + len(word))
    assert check.verdict(b"if c() => d(),") is Verdict.ADDS_ERRORS
    assert check.verdict(b"if c() ") >= Verdict.MENDS


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("def f(x):\n    ", "if x:", "\n    return 1\n"),
        ("def f(x):\n    y = x\n    ", "for a in x:", "\n\n    return 1\n"),
        ("class A:\n    def f(self):\n        ", "with a:", "\n        return 1\n\n    def g(self):\n        pass\n"),
        ("x = 1\n", "return x", "\ny = 2\n"),
        ("", "def f(a, b, a):\n    pass", "\n"),
        ("for a in b:\n    ", "c()\nbreak", "\n"),
        ("def f():\n    a = 1\n    def g():\n        ", "nonlocal b", "\n        a = 2\n"),
    ],
)
def test_what_python_refuses_because_of_a_completion_is_its_error_on_whatever_line_it_is_named(before, middle, after):
    document = (before + after).encode()
    check = JoinedCheck(load_documents("python").document(document), len(before), len(before), has_compiler=True)
    assert check.verdict(middle.encode()) is Verdict.ADDS_ERRORS


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        ("def f(x):\n    ", "y = x", "\n    if x:\n    return 1\n"),  # the document's own error, on a line below
        ("def f(x):\n    if x:\n    return 1\n\n\ny = ", "g()", "\n"),  # above
        ("return 1\n", "x = 1", "\n"),
        ("", "x = await y()", "\n"),
        ("def f(x):\n", "    if x:", "\n        return 1\n    else:\n    return 2\n"),
        ("def f():\n    a = 1\n    def g():\n        nonlocal a\n        ", "a = 2", "\n"),
    ],
)
def test_what_python_refuses_without_a_completion_is_no_error_of_it(before, middle, after):
    document = (before + after).encode()
    check = JoinedCheck(load_documents("python").document(document), len(before), len(before), has_compiler=True)
    assert check.verdict(middle.encode()) >= Verdict.ADDS_NONE
