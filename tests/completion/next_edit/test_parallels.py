"""An element that was added to one list, and what it lacks in the lists that its neighbours are in."""

import pytest

from completion.edits import LineEdit
from completion.next_edit.candidates import GAP
from completion.next_edit.parallels import parallels


def lacking(before: str, line: str, added: str, language: str = "") -> dict[str, str]:
    """Return what becomes of lines after a line became `added`, with a mark where the model is to write."""
    lines = before.strip("\n").split("\n")
    at = lines.index(line)
    new = added.split("\n")
    lines[at : at + 1] = new
    found = parallels(lines, [LineEdit(at, (line,), tuple(new))], 0, language, lambda: None)
    return {"\n".join(each.old): "\n".join(each.new).replace(GAP, "…") for each in found}


PYTHON = """
class Color(Enum):
    RED = "red"
    GREEN = "green"

def name(color):
    match color:
        case Color.RED:
            return "red light"
        case Color.GREEN:
            return "green light"

WIDTHS = {
    Color.RED: narrow,
    Color.GREEN: 20 + offset,
}
"""
ARM = "        case Color"
RUST = """
pub enum Shape {
    Circle,
    Square,
}
fn name(shape: &Shape) -> &str {
    match shape {
        Shape::Circle => "circle",
        Shape::Square => "square",
    }
}
"""
JAVA = """
class User {
    private final String name;
    private final int age;

    User(String name, int age) {
        this.name = name;
        this.age = age;
    }
}
"""
TYPESCRIPT = """
type Kind =
  | "circle"
  | "square";
const AREA = {
  circle: areaOfCircle,
  square: areaOfSquare
};
"""
POINT = """
class Point {
  x: number;
  y: number;
  static same(a: Point, b: Point) {
    return a.x === b.x && a.y === b.y;
  }
  static size(a: Point) {
    return Math.sqrt(a.x ** 2 + a.y ** 2);
  }
}
"""
GO = """
type Config struct {
	MaxHosts int
	MaxPorts int
}
func Default() Config {
	return Config{MaxHosts: max_hosts, MaxPorts: max_ports}
}
"""


@pytest.mark.parametrize(
    ("before", "line", "added", "expected"),
    [
        pytest.param(
            PYTHON,
            '    GREEN = "green"',
            '    GREEN = "green"\n    BLUE = "blue"',
            {
                f'{ARM}.GREEN:\n            return "green light"': f'{ARM}.GREEN:\n            return "green light"\n'
                f'{ARM}.BLUE:\n            return "blue light"',
                "    Color.GREEN: 20 + offset,": "    Color.GREEN: 20 + offset,\n    Color.BLUE:…,",
            },
            id="arm, and an entry whose value must be written",
        ),
        pytest.param(
            RUST,
            "    Square,",
            "    Square,\n    Triangle,",
            {
                '        Shape::Square => "square",': '        Shape::Square => "square",\n'
                '        Shape::Triangle => "triangle",'
            },
            id="arm",
        ),
        pytest.param(
            RUST,
            "    Circle,",
            "    Triangle,\n    Circle,",
            {
                '        Shape::Circle => "circle",': '        Shape::Triangle => "triangle",\n'
                '        Shape::Circle => "circle",'
            },
            id="before the first one",
        ),
        pytest.param(
            JAVA,
            "    private final int age;",
            "    private final int age;\n    private final String email;",
            {
                "    User(String name, int age) {": "    User(String name, int age, String email) {",
                "        this.age = age;": "        this.age = age;\n        this.email = email;",
            },
            id="parameter and assignment of a field",
        ),
        pytest.param(
            TYPESCRIPT,
            '  | "square";',
            '  | "square"\n  | "triangle";',
            {"  square: areaOfSquare": "  square: areaOfSquare,\n  triangle: areaOfTriangle"},
            id="separator of the last one",
        ),
        pytest.param(
            GO,
            "\tMaxPorts int",
            "\tMaxPorts int\n\tMaxIdleTime int",
            {
                "\treturn Config{MaxHosts: max_hosts, MaxPorts: max_ports}": "\treturn Config{MaxHosts: max_hosts,"
                " MaxPorts: max_ports, MaxIdleTime: max_idle_time}"
            },
            id="other spelling in the brackets of a line",
        ),
        pytest.param(
            POINT,
            "  y: number;",
            "  y: number;\n  z: number;",
            {
                "    return a.x === b.x && a.y === b.y;": "    return a.x === b.x && a.y === b.y && a.z === b.z;",
                "    return Math.sqrt(a.x ** 2 + a.y ** 2);": "    return Math.sqrt(a.x ** 2 + a.y ** 2 + a.z ** 2);",
            },
            id="between operators",
        ),
    ],
)
def test_an_added_element_gets_what_its_neighbours_have(
    before: str, line: str, added: str, expected: dict[str, str]
) -> None:
    assert lacking(before, line, added) == expected


def test_a_list_that_was_broken_into_lines_has_only_the_elements_that_are_new() -> None:
    before = "def __init__(self, host, port):\n    self.host = host\n    self.port = port"
    after = "def __init__(\n    self,\n    host,\n    port,\n    path,\n):"
    assert lacking(before, before.split("\n", maxsplit=1)[0], after) == {
        "    self.port = port": "    self.port = port\n    self.path = path"
    }


def test_comments_are_no_elements() -> None:
    documented = RUST.replace("    Square", "    /// Four sides.\n    Square")
    found = lacking(documented, "    Square,", "    Square,\n    /// Three\n    /// sides.\n    Triangle,", "rust")
    assert list(found) == ['        Shape::Square => "square",']


@pytest.mark.parametrize(
    ("before", "line", "added"),
    [
        pytest.param(RUST, "    Square,", "    Rectangle,", id="renamed"),
        pytest.param(RUST.replace("    Circle,\n", ""), "    Square,", "    Square,\n    Triangle,", id="no proof"),
        pytest.param(
            RUST + "// Shape::Triangle\n", "    Square,", "    Square,\n    Triangle,", id="the name is not new"
        ),
        pytest.param(RUST.replace('"square"', "side()"), "    Circle,", "    Circle,\n\n", id="nothing added"),
        pytest.param(
            "import json\nimport pickle\nimport os\nclass Kind:\n    json = 'json'\n    pickle = 'pickle'",
            "import os",
            "import os\nimport re",
            id="a list with few of the neighbours",
        ),
        pytest.param("import a\nimport b\nimport c", "import c", "import c\nimport d", id="the same list"),
        pytest.param("a = 0xAB\nb = 0xCD\nf(a, b)", "b = 0xCD", "b = 0xCD\nc1 = 1e5x", id="numbers are no words"),
        pytest.param("a = f(x, y)\nb = g(y)", "a = f(x, y)", "a = f(x, y, z)", id="one of two neighbours alone"),
    ],
)
def test_without_proof_or_a_new_name_there_is_nothing(before: str, line: str, added: str) -> None:
    assert lacking(before, line, added) == {}


def test_what_the_element_has_already_is_not_proposed_again() -> None:
    done = RUST.replace('"square",\n', '"square",\n        Shape::Triangle => "triangle",\n')
    lines = done.strip("\n").split("\n")
    lines.insert(3, "    Triangle,")
    assert list(parallels(lines, [LineEdit(3, (), ("    Triangle,",))], 0, "rust", lambda: None)) == []
