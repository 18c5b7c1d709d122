"""An item written beside another one is whole: with its head and its end, however its neighbours begin and end."""

import pytest

from completion.postprocess import Dropped, apply_filters, stable_prefix
from completion.request import CompletionRequest, Suggestion
from completion.stopping.mode import cursor_context
from completion.stopping.rules import Stop, StopRules


def suggested(language, document, written):
    """Return the text that is suggested at the bar, and the part of `written` that is generated for it."""
    before, after = document.split("|")
    request = CompletionRequest(before, after, language)
    context = cursor_context(request)
    rules, shown = StopRules(request, context), ""
    for length in range(1, len(written) + 1):
        stop = rules.text_end(written[:length])
        if stop is not None:
            break
        shown = max(shown, stable_prefix(written[:length], context), key=len)
    stop = stop or Stop(length, None)
    result = apply_filters(Suggestion(written[: stop.length]), context)
    text = "" if isinstance(result, Dropped) else result.text
    assert text.startswith(shown), (shown, text)
    return text, written[:length]


OUTERMOST = [
    pytest.param("ruby", "def f(a)\n  a\nend", id="end"),
    pytest.param("ruby", "begin\n  a\nrescue Foo\n  b\nensure\n  c\nend", id="rescue and ensure"),
    pytest.param("ruby", "if a\n  b\nelsif c\n  d\nend", id="elsif"),
    pytest.param("ruby", "case a\nwhen 1\n  b\nelse\n  c\nend", id="when"),
    pytest.param("lua", "if a then\n  b()\nelseif c then\n  d()\nelse\n  c()\nend", id="elseif"),
    pytest.param("lua", "repeat\n  b()\nuntil c", id="until"),
    pytest.param("shellscript", "for i in 1 2; do\n  echo $i\ndone", id="done"),
    pytest.param("shellscript", "if a\nthen\n  b\nelse\n  c\nfi", id="then and fi"),
    pytest.param("shellscript", "case $a in\n  (b) c ;;\nesac", id="esac"),
    pytest.param("python", "try:\n    a\nexcept B:\n    c\nfinally:\n    d", id="except and finally"),
    pytest.param("python", "class A:\n\n    b = 1", id="a blank line after the head"),
    pytest.param("python", "# Why\n@cache\n@other(\n    1,\n)\ndef f():\n    pass", id="comment and decorators"),
    pytest.param("csharp", "public class A\n{\n    int b;\n}", id="a brace on its own line, C#"),
    pytest.param("c", "int f(int a,\n      int b)\n{\n    return a;\n}", id="a brace on its own line, C"),
    pytest.param("c", "#ifdef A\n#define B 1\n#endif", id="preprocessor lines"),
    pytest.param("sql", "SELECT *\nFROM a\nWHERE id = 1;", id="a statement of SQL"),
    pytest.param("sql", "SELECT\n  a\nFROM b -- c; d\nWHERE id = 1; -- e", id="indented columns, and comments"),
    pytest.param("html", "<ul>\n  <li>a</li>\n</ul>", id="an element"),
]


@pytest.mark.parametrize(("language", "written"), OUTERMOST)
@pytest.mark.parametrize("rest", ["", "\n", "\nz = 1\n", "\n\nz = 1\n"], ids=["end", "line end", "line", "blank line"])
def test_a_block_at_the_outermost_level_is_whole(language, written, rest):
    assert suggested(language, "first\n\n|\n", written + rest)[0] == written


BODIES = [
    pytest.param("c", "int f() {|\n}\n", "\n    int b = 0;\n#ifdef D\n    p(a);\n#endif\n    return b;", id="#ifdef"),
    pytest.param("shellscript", "f() {|\n}\n", "\n  cat <<EOF\nIt's: $0\nEOF\n  exit 1", id="heredoc in shell"),
    pytest.param("php", "function f() {|\n}\n", "\n  $a = <<<EOT\nb {\nEOT;\n  return $a;", id="heredoc in PHP"),
]


@pytest.mark.parametrize(("language", "document", "written"), BODIES)
def test_a_line_that_may_have_any_indentation_does_not_end_a_body(language, document, written):
    assert suggested(language, document, written + "\n}\nz\n")[0] == written


def test_words_that_begin_a_statement_of_their_own_end_a_block():
    assert suggested("python", "|\n", "a = 1\nwhile b:\n    c()\n")[0] == "a = 1"
    assert suggested("python", "|\n", "def f():\n    return 1\nend = 2\n")[0] == "def f():\n    return 1"
    assert suggested("ruby", "|\n", "def f\n  a << B\nend\nz\n")[0] == "def f\n  a << B\nend"
    assert suggested("ruby", "|\n", "def f\n  a\nend_of = 1\n")[0] == "def f\n  a"
