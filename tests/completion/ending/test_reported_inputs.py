"""Inputs that users reported, of this product or of others: the document that each becomes, asked for or not."""

from dataclasses import replace

import pytest

from completion.decoding.stop_rules import StopRules
from completion.ending.context import cursor_context
from completion.ending.decision import finished, shown
from completion.ending.rule import DropReason
from completion.request import CompletionRequest, Suggestion

PARSE = "fn parse(line: &str) -> Option<(String, i32)> {\n    let mut parts = line.split('=');\n"
PARSED = "\n    let value = parts.next()?.trim().parse().ok()?;\n    Some((key, value))\n}\n"
PARTS = 'function parse(line) {\n  const parts = line.split("=");\n  const key = parts[0].trim();\n  ‸\n'
SIDES = "class N4 {\n    int area(int[] a) {\n        int width = a[0];\n        ‸\n        int height = a[1];\n"
COLOURS = '"blue", "yellow", "purple", "orange", "pink", "gray", "white", "black", "maroon", "navy", "olive"'
NAMED = '" + name + "'
CUT = "…"  # where a maximum ended the text
FLAGS = '🇬🇧", ' + ", ".join(['"🇪🇸"'] * 22)

INPUTS = [
    (
        "java",
        'class Q {\n    String greet(String name) {\n        return "Hello, ‸!";\n    }\n}\n',
        NAMED,
        NAMED,
    ),
    ("python", 'def greet(name):\n    return "Hello, ‸!"\n', NAMED, NAMED),
    ("javascript", 'function row(name) {\n  return "<td class=\\"name\\">‸</td>";\n}\n', NAMED, NAMED),
    (
        "java",
        'class E {\n    void f(String name) {\n        s = "{\\"name\\": \\"‸\\"}";\n',
        NAMED,
        NAMED,
    ),
    ("c", 'int main(void) {\n    printf("He said \\"‸\\"\\n", name);\n}\n', '%s\\"\\n", name);', "%s"),
    ("python", 'name = "Ida"\nprint("He said \\"‸\\"\\n")\n', 'Hello\\"', "Hello"),
    ("markdown", "| name | size |\n|---|---|\n| small | 1 |\n| medium | ‸ |\n", "2 |", "2"),
    ("markdown", "| name | size | colour |\n|---|---|---|\n| medium | ‸ | green |\n", "2 | blue |", "2"),
    ("python", 'state = {"call": "N0"}\ncommand = f\'MY {‸}\'\nprint(command)\n', 'state["call"]} {', 'state["call"]'),
    ("typescript", 'const primary: string[] = ["red", "green", ‸];\n', f"{COLOURS}, …", COLOURS),
    ("python", 'flags = ["🇩🇪", "🇫🇷", "‸"]\n', FLAGS, '🇬🇧", "🇪🇸'),
    ("go", 'var colours = []string{"red", "green", "‸"}\n', f'{COLOURS.removeprefix(chr(34))}, "co…', COLOURS[1:-1]),
    ("rust", f"{PARSE}    ‸{PARSED}", "let value = parts.next()?.trim().parse::<i32>().ok()?;", ""),
    ("javascript", f"{PARTS}  const value = parts[1].trim();\n}}\n", "const value = parts[1].trim().trim();", ""),
    ("javascript", f"{PARTS}  const value = parts[1].trim();\n}}\n", "return", ""),
    ("java", f"{SIDES}        return width * height;\n    }}\n}}\n", "return width * a[1];", ""),
    ("python", "values = [1, 2, 3]\ntotal = su‸m(values)\nprint(total)\n", "me", ""),
    ("javascript", 'conso‸le.log("hi");\n', 'le.log("hello");', ""),
    ("python", 'class Stack:\n    """‸"""\n\n    def __init__(self):\n        self.items = []\n', '"', ""),
    ("python", 'def mean(values):\n    """‸"""\n    return 1\n', "\n    Return it.\n    ", "\n    Return it."),
]


@pytest.mark.parametrize(("language", "document", "written", "expected"), INPUTS)
@pytest.mark.parametrize("invoked", [False, True])
def test_what_is_suggested_for_a_reported_input(language, document, written, expected, invoked):
    request = CompletionRequest(*document.split("‸"), language, invoked=invoked)
    context = cursor_context(request)
    rules, seen, cut_short = StopRules(request, context), "", written.endswith(CUT)
    written = written.removesuffix(CUT)
    for end in range(1, len(written) + 1):
        stop = rules.text_end(written[:end])
        if stop is not None:
            written = written[: stop.length]
            break
        seen = max(seen, shown(written[:end], context), key=len)
    result = finished(Suggestion(written), replace(context, cut_short=cut_short))
    document = "" if isinstance(result, DropReason) else result.text + request.suffix[result.replace_after :]
    assert document == (expected + request.suffix if expected else "")
    assert (expected + request.suffix).startswith(seen)
