"""What is open at a cursor far down in a document, of which only the last part is scanned."""

import pytest

from completion.ending.context import SCAN_BEFORE, Context, near_before
from completion.ending.decision import finished
from completion.ending.rule import DropReason
from completion.request import Mode, Suggestion
from completion.syntax.brackets import scan

FUNCTION = '''def area(width, height):
    """Return the area.

    It isn't negative: (width, height
    """
    return width * height


'''
FUNCTIONS = FUNCTION * (2 * SCAN_BEFORE // len(FUNCTION))
SCRIPTS = {
    "python": FUNCTIONS,
    "typescript": "/** Doesn't `return */\nconst text = `\n  it's ${1} (\n`;\n" * (2 * SCAN_BEFORE // 60),
    "css": "/* Doesn't matter (at all */\na { b: c }\n" * (2 * SCAN_BEFORE // 40),
}


@pytest.mark.parametrize("language", SCRIPTS)
def test_the_scanned_part_of_a_long_document_begins_in_code(language):
    text = SCRIPTS[language]
    for end in range(len(text) - 400, len(text)):
        near, before = near_before(text[:end], language), text[:end]
        assert before.endswith(near)
        assert len(near) >= SCAN_BEFORE
        whole, part = scan(before, language), scan(near, language)
        assert (part.string, part.comment) == (whole.string, whole.comment)


@pytest.mark.parametrize("between", range(0, 2 * len(FUNCTION), 7))
def test_a_cursor_below_many_docstrings_is_in_code(between):
    prefix = FUNCTIONS + "#" * between + "\nclass Square(Sha"
    context = Context.of(prefix, "\n", "python", Mode.LINE)
    assert not context.before.string
    assert [each.character for each in context.open] == ["("]


def test_the_scanned_part_stays_the_same_while_a_line_is_typed():
    text = FUNCTIONS + "x"
    begins = {len(text[:end]) - len(near_before(text[:end], "python")) for end in range(len(text) - 40, len(text))}
    assert len(begins) <= 2


def test_a_quote_far_above_does_not_make_a_string_of_all_below_it():
    text = '"""' + "x = f(1)\n" * SCAN_BEFORE
    assert len(near_before(text, "python")) < 2 * SCAN_BEFORE


@pytest.mark.parametrize("head", ["class A {\n", "class A\n    extends B {\n"])
@pytest.mark.parametrize("language", ["dart", "swift", "kotlin"])
def test_a_class_that_goes_on_far_below_is_not_closed_in_its_middle(head, language):
    below = "\n" + "  int b = 1\n" * SCAN_BEFORE + "}\n"
    between = Context.of(f"{head}  int c = 1\n", below, language, Mode.BLOCK)
    assert finished(Suggestion("}\n"), between) == DropReason.DOUBLED_CLOSER
    begun = Context.of(f"{head}  f() {{", below, language, Mode.BLOCK)
    whole = finished(Suggestion("\n    g()\n  }\n}\n"), begun)
    assert isinstance(whole, Suggestion)
    assert whole.text == "\n    g()\n  }"


def test_a_block_whose_class_begins_far_above_needs_its_closer():
    above = "}\n" + "  int b = 1;\n" * SCAN_BEFORE
    context = Context.of(
        f"class A {{\n{above}\n  f() {{", "\n" + "  int b = 1;\n" * SCAN_BEFORE + "}\n", "dart", Mode.BLOCK
    )
    whole = finished(Suggestion("\n    g();\n  }\n}\n"), context)
    assert isinstance(whole, Suggestion)
    assert whole.text == "\n    g();\n  }"
