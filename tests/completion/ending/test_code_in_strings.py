"""Code within a string: what the document closes after the cursor stands there once, whatever the text closes."""

import pytest

from completion.ending.context import Context
from completion.ending.decision import finished
from completion.ending.rule import DropReason
from completion.request import Mode, Suggestion

STRINGS = {
    "python": 'x = f"a {‸}"',
    "javascript": "x = `a ${‸}`;",
    "typescriptreact": "x = `a ${‸}`;",
    "kotlin": 'x = "a ${‸}"',
    "swift": 'x = "a \\(‸)"',
    "ruby": 'x = "a #{‸}"',
    "shellscript": 'x="a $(‸)"',
    "csharp": 'x = $"a {‸}";',
    "php": '$x = "a {$b[‸]}";',
    "dart": "x = 'a ${‸}';",
    "julia": 'x = "a $(‸)"',
    "elixir": 'x = "a #{‸}"',
    "terraform": 'x = "a ${‸}"',
}
VALUES = ["name", 'f(b["k"])', "f(b, c)", 'f("it\'s")']


def document_with(text, language, after):
    before, _, closers = STRINGS[language].partition("‸")
    suffix = f"{closers if after else ''}\ny = 1\n"
    result = finished(Suggestion(text), Context.of(before, suffix, language, Mode.LINE))
    assert not isinstance(result, DropReason)
    return (before + result.text + suffix[result.replace_after :]).partition("\n")[0]


@pytest.mark.parametrize("language", STRINGS)
@pytest.mark.parametrize("value", VALUES)
def test_a_text_with_or_without_the_closers_of_the_code_around_it(language, value):
    closers = STRINGS[language].partition("‸")[2].rstrip(";")
    right = STRINGS[language].replace("‸", value)
    assert document_with(value, language, after=True) == right
    assert document_with(value + closers, language, after=True) == right
    assert document_with(value + closers, language, after=False) == right.rstrip(";")


@pytest.mark.parametrize("language", STRINGS)
def test_a_text_that_goes_on_in_the_string_leaves_its_end(language):
    before, _, closers = STRINGS[language].partition("‸")
    text = f"name{closers.rstrip(';')[:-1]} b"
    assert document_with(text, language, after=True) == before + text + closers[len(closers.rstrip(";")) - 1 :]
