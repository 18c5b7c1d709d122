"""Line or block, by the syntax at the cursor (the cursor is `|`)."""

import pytest

from completion.mode import decide
from completion.request import Mode

BLOCK = [
    ("python", "def f(a):|\n"),
    ("python", "def f(a):\n    |\n    return a\n"),
    ("python", "for a in b:\n    c()\n|\n"),
    ("python", "class A:\n    def f(self):|\n\n    def g(self):\n        pass\n"),
    ("javascript", "function f() {|}\n"),
    ("javascript", "a.map((b) => {|});\n"),
    ("typescript", "interface A {\n  |\n}\n"),
    ("go", "func f() {\n\t|\n}\n"),
    ("rust", "impl A {\n    |\n}\n"),
    ("java", "class A {\n    void f() {|\n    }\n}\n"),
    ("c", "int main(void) {\r\n    |\r\n}\r\n"),
    ("cpp", "struct A {\n  |\n};\n"),
    ("ruby", "def f\n  |\nend\n"),
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
]


@pytest.mark.parametrize(("language", "document"), BLOCK)
def test_a_block_behind_an_opener_and_on_an_empty_line(language, document):
    assert decide(*document.split("|"), language) is Mode.BLOCK


@pytest.mark.parametrize(("language", "document"), LINE)
def test_a_line_inside_expressions_strings_and_statements(language, document):
    assert decide(*document.split("|"), language) is Mode.LINE
