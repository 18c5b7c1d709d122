"""An item written beside another one is whole: with its head and its end, however its neighbours begin and end."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from completion.decoding.stop_rules import StopRules
from completion.ending.context import cursor_context
from completion.ending.decision import committed, finished
from completion.ending.decision import shown as shown_part
from completion.ending.rule import DropReason, Stop
from completion.request import CompletionRequest, Suggestion


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
        shown = max(shown, shown_part(written[:length], context), key=len)
    stop = stop or Stop(length, None)
    raw = Suggestion(written[: stop.length])
    result = committed(finished(raw, context), raw, shown, context)
    text = "" if isinstance(result, DropReason) else result.text
    assert text.startswith(shown), (shown, text)
    return text, written[:length]


SIBLINGS = [
    pytest.param(
        "python",
        'parser.add_argument(\n    "--a",\n)\n|\nparser.add_argument(\n    "--c",\n)\n',
        'parser.add_argument(\n    "--b",\n)\n',
        id="a call over several lines",
    ),
    pytest.param(
        "python",
        "class A:\n    def a(self):\n        raise NotImplementedError\n\n    |\n\n"
        "    def c(self):\n        raise NotImplementedError\n",
        "def b(self):\n        raise NotImplementedError\n",
        id="a method with the body of the next one",
    ),
    pytest.param(
        "python",
        'def test_a(client):\n    |\n\n\ndef test_b(client):\n    response = client.get("/i")\n    assert response\n',
        'response = client.get("/i")\n    assert response\n',
        id="the first line of the next function's body",
    ),
    pytest.param(
        "python",
        "class A:\n    |\n\n    @abstractmethod\n    def c(self):\n        pass\n",
        "@abstractmethod\n    def b(self):\n        pass\n",
        id="a decorated method",
    ),
    pytest.param(
        "python",
        "class A:\n    |\n\n    def c(self):\n        pass\n",
        "@property\n    def b(self):\n        return 1\n",
        id="a property, with its function",
    ),
    pytest.param(
        "python",
        "class A:\n    |\n\n    def c(self):\n        pass\n",
        '@pytest.mark.parametrize(\n        "a",\n        [1],\n    )\n    def b(self, a):\n        pass\n',
        id="a decorator over several lines",
    ),
    pytest.param(
        "python",
        "|\n\n\n@pytest.fixture\ndef c():\n    return 3\n",
        "@pytest.fixture\ndef b():\n    return 2\n",
        id="a fixture at the outermost level",
    ),
    pytest.param(
        "java",
        "class A {\n    |\n\n    @Override\n    public int c() {\n        return 3;\n    }\n}\n",
        "@Override\n    public int b() {\n        return 2;\n    }\n",
        id="an annotated method",
    ),
    pytest.param(
        "rust",
        "mod t {\n    |\n\n    #[test]\n    fn c() {\n        h();\n    }\n}\n",
        "#[test]\n    fn b() {\n        g();\n    }\n",
        id="a test in Rust",
    ),
    pytest.param(
        "csharp",
        "class A {\n    |\n\n    [HttpGet]\n    public int C() {\n        return 3;\n    }\n}\n",
        "[HttpGet]\n    public int B() {\n        return 2;\n    }\n",
        id="a method with an attribute",
    ),
    pytest.param(
        "csharp",
        "class A {\n    |\n\n    /// <summary>\n    /// C.\n    /// </summary>\n    int C;\n}\n",
        "/// <summary>\n    /// B.\n    /// </summary>",
        id="the comment of a member",
    ),
    pytest.param("toml", '|\n\n[[bin]]\nname = "c"\n', '[[bin]]\nname = "b"\n', id="a table"),
    pytest.param(
        "html",
        "<table>\n|\n<tr>\n  <td>c</td>\n</tr>\n</table>\n",
        "<tr>\n  <td>b</td>\n</tr>\n",
        id="a row of a table",
    ),
    pytest.param(
        "javascript",
        "function f() {\n  |\n  try {\n    c();\n  } catch (e) {}\n}\n",
        "try {\n    a();\n  } catch (e) {}\n",
        id="a try statement",
    ),
]


@pytest.mark.parametrize(("language", "document", "written"), SIBLINGS)
def test_an_item_above_one_that_begins_alike_is_suggested(language, document, written):
    assert suggested(language, document, written)[0] == written.rstrip("\n")


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


REPETITIONS = [
    pytest.param("python", "|\ng(a, b)\nh()\n", "g(a, b)\n", 1, id="a statement, after its line"),
    pytest.param("python", "class A:\n    |\n\n    def c(s):\n        pass\n", "def c(s):\n        x\n", 1, id="def"),
    pytest.param(
        "python",
        "class A:\n    |\n\n    @property\n    def c(self):\n        pass\n",
        "@property\n    def c(self):\n        x\n",
        2,
        id="a decorator and its function, after the second line",
    ),
    pytest.param(
        "javascript",
        "function f() {\n  |\n  try {\n    c();\n  } catch (e) {\n  }\n}\n",
        "try {\n    c();\n  } finally {\n  }\n",
        2,
        id="a head, after the first line of its body",
    ),
]


@pytest.mark.parametrize(("language", "document", "written", "lines"), REPETITIONS)
def test_what_stands_below_is_not_suggested_again_and_costs_no_more_lines_than_needed(
    language, document, written, lines
):
    text, generated = suggested(language, document, written)
    assert text == ""
    assert generated.count("\n") == lines


def test_a_line_below_that_ends_the_text_is_not_suggested_again():
    assert suggested("html", "<ul>\n  |\n  <li>\n    c\n  </li>\n</ul>\n", "<li>")[0] == ""


def test_the_line_of_the_cursor_repeats_nothing_of_the_text_below_it():
    line = "if (isReady && isConnected) {"
    assert suggested("javascript", f"{line}|\n}}\n{line}\n  c();\n}}\n", "\n  b();\n}\n")[0] == "\n  b();"


LINES = ["@a", "  @a", "# a", "try {", "  b(), c(), d(), e(),", "f(", "  g", "", "}", "}, h", "def i():"]
some_lines = st.lists(st.sampled_from(LINES), max_size=7).map("\n".join)


@given(some_lines, some_lines, st.sampled_from(["python", "javascript", "ruby"]), st.sampled_from(["", "  ", "try {"]))
@settings(max_examples=300)
@example("f(\n  g\n", "f(\n  b(), c(), d(), e(),\n  g\n  g\n  g\n  g", "python", "")
def test_text_that_is_shown_before_lines_like_its_own_is_never_taken_back(below, written, language, line):
    suggested(language, f"{line}|\n{below}", f"{written}\n")
