"""Thirty cursors, and the suggestion that the engine has at each: what every client must make of it."""

from __future__ import annotations

from dataclasses import dataclass

CURSOR = "‸"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A document with a cursor, and the suggestion there.

    Attributes:
        file: Name of the file; its ending is the language.
        before: Text before the cursor.
        after: Text after the cursor.
        text: What the engine suggests.
        replaced: Number of characters after the cursor that the suggestion replaces.
    """

    file: str
    before: str
    after: str
    text: str
    replaced: int

    @property
    def accepted(self) -> str:
        """The document after the acceptance of the whole suggestion."""
        return self.before + self.text + self.after[self.replaced :]

    def verdict(self, document: str, in_plugin: str) -> str:
        """Return how a client's document compares with the one in our own plugin."""
        if document == in_plugin:
            return "equal"
        if document == self.before + self.after:
            return "nothing"
        end = len(document) - len(self.after)
        is_insertion = document.startswith(self.before) and document.endswith(self.after) and end > len(self.before)
        return "shorter" if is_insertion and in_plugin.startswith(document[:end]) else "wrong"


def _cursor(file: str, text: str, suggestion: str, replaced: int = 0) -> Cursor:
    before, after = text.split(CURSOR)
    return Cursor(file, before, after, suggestion, replaced)


BEFORE_CLOSERS = (
    _cursor("a.py", "print(‸)\n", "name)", 1),
    _cursor("a.py", "x = f(a[‸])\n", "0])", 2),
    _cursor("a.py", "y = f(b[‸])\n", "0], b)", 2),
    _cursor("a.py", 'handle = open("‸")\n', 'a.txt")', 2),
    _cursor("a.py", "total = sum(values[‸])\n", "1:", 0),
    _cursor("a.py", "def add(‸)\n\n\nadd(1, 2)\n", "a, b):\n    return a + b", 1),
    _cursor("a.js", "if (‸) {\n}\n", "x > 0) {", 3),
    _cursor("a.js", "const xs = [1, 2, ‸];\n", "3];", 2),
    _cursor("a.js", "call({ a: ‸ });\n", "1 });", 4),
    _cursor("a.c", "void f(void)\n{\n\tfoo(‸);\n}\n", "1, 2);", 2),
    _cursor("a.java", "class A {\n    void f() {\n        print(‸);\n    }\n}\n", '"done");', 2),
    _cursor("a.css", "a { color: ‸; }\n", "red;", 1),
)
WITHIN_WORDS = (
    _cursor("a.py", "import os\n\nos.pat‸\n", "h.join(a, b)"),
    _cursor("a.py", "def f(value):\n    retu‸\n", "rn value"),
    _cursor("a.py", "print(my_na‸)\n", "me)", 1),
    _cursor("a.py", "class A:\n    def f(self, name):\n        self.na‸\n", "me = name\n        self.age = 1"),
    _cursor("a.js", "console.lo‸\n", "g(value);"),
    _cursor("a.c", "int f(void)\n{\n\tint cou‸ = 0;\n}\n", "nter"),
)
SEVERAL_LINES = (
    _cursor("a.py", "def f(x):\n    ‸\n", "if x:\n        return 1\n    return 2"),
    _cursor("a.py", "def f(x):\n    ‸\n\n\nf(1)\n", "a = 1\n\n    b = 2"),
    _cursor("a.py", "for i in range(10):‸\n", "\n    print(i)"),
    _cursor("a.js", "function f(x) {\n  ‸\n}\n", "if (x) {\n    return 1;\n  }\n  return 2;"),
    _cursor("a.c", "int f(int x)\n{\n\t‸\n}\n", "if (x) {\n\t\treturn 1;\n\t}\n\treturn 2;"),
    _cursor("a.java", "class A {\n    ‸\n}\n", "int f() {\n        return 1;\n    }"),
)
CRLF = (
    _cursor("a.py", "x = 1\r\nprint(‸)\r\n", "name)", 1),
    _cursor("a.py", "def f(x):\r\n    ‸\r\n\r\nf(1)\r\n", "if x:\r\n        return 1\r\n    return 2"),
    _cursor("a.js", "let a = 1;\r\nconsole.lo‸\r\n", "g(value);"),
)
EMOJI = (
    _cursor("a.py", 's = "😀"; print(‸)\n', "s)", 1),
    _cursor("a.py", '# 👩‍👩‍👧 é\nname = "𝒳" + na‸\n', "me"),
    _cursor("a.py", 'print("é‸")\n', '😀 hi")', 2),
)
CURSORS = (*BEFORE_CLOSERS, *WITHIN_WORDS, *SEVERAL_LINES, *CRLF, *EMOJI)
