"""The choice between a line and a block by the syntax at the cursor, which is marked as `|`."""

import pytest

from completion.ending.context import cursor_context
from completion.prompt.line_endings import normalised
from completion.request import CompletionRequest, Mode

BLOCK = [
    ("python", "def f(a):|\n"),
    ("python", "def f(a):\n    x = a\n    |\n"),
    ("python", "def f(a):\n    x = a\n|\n\n\ndef g():\n    pass\n"),
    ("python", "def f(a):\n    if a:\n        |\n    return a\n"),
    ("python", "for a in b:\n    c()\n|\n"),
    ("python", "class A:\n    def f(self):|\n\n    def g(self):\n        pass\n"),
    ("javascript", "function f() {|}\n"),
    ("javascript", "a.map((b) => {|});\n"),
    ("typescript", "interface A {\n  |\n}\n"),
    ("go", "func f() {\n\t|\n}\n"),
    ("rust", "impl A {\n    |\n}\n"),
    ("java", "class A {\n    void f() {|\n    }\n}\n"),
    ("c", "int main(void) {\n    |\n}\n"),
    ("cpp", "struct A {\n  |\n};\n"),
    ("ruby", "def f\n  |\nend\n"),
    ("ruby", "def f(a)|\n"),
    ("lua", "f(function()\n  |\nend)\n"),
    ("lua", "f(function()|)\n"),
    ("shellscript", "cat <<A\nit's\nA\nif a; then|\n"),
    ("elixir", "def a do|\n"),
    ("cmake", "if(A)|\n"),
    ("latex", "\\begin{a}|\n"),
    ("yaml", "a:|\n"),
    ("makefile", "a:|\n"),
    ("haskell", "main = do|\n"),
    ("html", "<p>:(</p>\n|\n"),
]
LINE = [
    ("python", "x = |\n"),
    ("python", "x = foo(|)\n"),
    ("python", "x = foo(\n    |\n)\n"),
    ("python", "x = {\n    |\n}\n"),
    ("python", "x = a[b:|]\n"),
    ("python", '"""\n|\n"""\n'),
    ("python", "f = lambda:|\n"),
    ("python", "|x = 1\n"),
    ("javascript", "const x = {|};\n"),
    ("javascript", "import {|} from 'a';\n"),
    ("javascript", "/*\n|\n*/\n"),
    ("go", "x := f(\n\t|\n)\n"),
    ("rust", "let x = a.|;\n"),
    ("java", "int x = |;\n"),
    ("c", "int a[] = {|};\n"),
    ("", "some text |\n"),
    ("ruby", "if a|\n"),
    ("lua", "f(\n  |\n)\n"),
    ("shellscript", "a=(\n  |\n)\n"),
    ("yaml", "a: |\n"),
    ("markdown", "a:|\n"),
    ("python", "def f(a):\n    |\n    return a\n"),
    ("python", "def f(a):\n|\n    return a\n"),
    ("python", "a = 1\n|\nb = 2\n"),
    ("javascript", "function f() {\n\t|\n\n\treturn 1;\n}\n"),
    ("rust", "fn f() {\n    let a = 1;\n|\n    a\n}\n"),
]


def mode_at(document, language):
    request = CompletionRequest(*document.split("|"), language)
    return cursor_context(normalised(request)).mode


@pytest.mark.parametrize(("language", "document"), BLOCK)
def test_a_block_is_completed_after_an_opener_and_where_a_block_ends(language, document):
    assert mode_at(document, language) is Mode.BLOCK


@pytest.mark.parametrize(("language", "document"), LINE)
def test_a_line_is_completed_in_expressions_strings_and_statements_and_between_lines(language, document):
    assert mode_at(document, language) is Mode.LINE
