"""Places that depend on an edit by the grammar."""

import pytest

from completion.edits import LineEdit
from completion.syntax.dependent_places import MAX_PLACES, dependent_places


def places(language: str, before: str, old: str, new: str) -> dict[str, str]:
    """Return what becomes of the lines that depend on an edit of one line."""
    lines = before.strip("\n").split("\n")
    at = next(number for number, line in enumerate(lines) if old in line)
    edit = LineEdit(at, (lines[at],), (lines[at].replace(old, new),))
    lines[at : at + 1] = edit.new
    found = dependent_places(lines, [edit], language, "…")
    return {lines[change.line].strip(): "\n".join(change.new).strip() for _, change in found}


PYTHON = """
class Client:
    def __init__(self, host):
        self.host = host
    def fetch(self, url):
        return url
def run(port):
    client = Client("a")
    client.fetch(
        "b",
    )
"""
TYPESCRIPT = """
class Store {
  save<T>(item: T): void {}
  private all(item: string) {
    const x = this.save(item);
  }
}
"""
JAVA = "class A {\n  void send(String to) {}\n  void all() {\n    send(x);\n  }\n}"
RUST = "impl P {\n fn new(x: i32) -> P { P }\n}\nfn f() {\n let p = P::new(1);\n let q = Q::new(1);\n}"
GO = "func Load(p string) {}\nfunc run(ctx Ctx) {\n\tLoad(a)\n}"
CPP = "int add(int a) { return a; }\nint n = add(1);"


@pytest.mark.parametrize(
    ("language", "before", "old", "new", "expected"),
    [
        ("python", PYTHON, "self, host", "self, host, port", {'client = Client("a")': 'client = Client("a", port)'}),
        ("python", PYTHON, "self, url", "self, url, limit", {'"b",': '"b",\n        …,'}),
        (
            "python",
            PYTHON,
            'Client("a")',
            'Client("a", 1)',
            {"def __init__(self, host):": "def __init__(self, host, …):"},
        ),
        (
            "typescript",
            TYPESCRIPT,
            "(item: T)",
            "(item: T, force: boolean)",
            {"const x = this.save(item);": "const x = this.save(item, …);"},
        ),
        (
            "typescript",
            TYPESCRIPT,
            "save<T>",
            "async save<T>",
            {"const x = this.save(item);": "const x = … this.save(item);"},
        ),
        (
            "typescript",
            TYPESCRIPT.replace("  }\n}", "  }\n  async get() { return await load(); }\n}"),
            "= this",
            "= await this",
            {"private all(item: string) {": "private async all(item: string) {"},
        ),
        (
            "python",
            "async def load():\n    await get()\n\ndef run():\n    x = load()",
            "= load",
            "= await load",
            {"def run():": "async def run():"},
        ),
        ("go", GO, "(p ", "(ctx Ctx, p ", {"Load(a)": "Load(ctx, a)"}),
        ("java", JAVA, "String to", "String to, int n", {"send(x);": "send(x, …);"}),
        ("rust", RUST, "x: i32", "x: i32, y: i32", {"let p = P::new(1);": "let p = P::new(1, …);"}),
        ("cpp", CPP, "(int a", "(int a, int b", {"int n = add(1);": "int n = add(1, …);"}),
    ],
)
def test_the_other_side_of_a_name_gets_what_one_side_got(
    language: str, before: str, old: str, new: str, expected: dict[str, str]
) -> None:
    assert places(language, before, old, new) == expected


@pytest.mark.parametrize(
    ("language", "before", "old", "new"),
    [
        pytest.param("python", PYTHON, "self, url", "self, url, limit=1", id="optional"),
        pytest.param("python", PYTHON, "self, url", "self, link", id="renamed"),
        pytest.param("python", PYTHON, "self, url", "self, url, limit, more", id="two at once"),
        pytest.param(
            "python", "def f(a):\n    g(a)\nf(1)", "    g", "    return g", id="a keyword that marks no function"
        ),
        pytest.param("typescript", TYPESCRIPT, "= this", "= await this", id="no other function shows the mark"),
        pytest.param("python", "def f(a):\n    pass\nf(1, 2)", "f(a)", "f(a, b)", id="calls that pass it already"),
        pytest.param("python", "def f(a):\n    pass\n" + "f(1)\n" * (MAX_PLACES + 1), "f(a)", "f(a, b)", id="many"),
        pytest.param(
            "java", "class A {\n  void f() {}\n  void g() { f(); }\n}", "void f", "public void f", id="modifier"
        ),
        pytest.param("plaintext", "def f(a)\nf(1)", "f(a)", "f(a, b)", id="no grammar"),
    ],
)
def test_what_makes_nothing_necessary_elsewhere_has_no_places(language: str, before: str, old: str, new: str) -> None:
    assert places(language, before, old, new) == {}


def test_a_parameter_on_a_line_of_its_own_counts() -> None:
    lines = ["def f(", "    a,", "    b,", "):", "    pass", "", "f(1)", "f(2, 3)"]
    [(index, change)] = dependent_places(lines, [LineEdit(2, (), ("    b,",))], "python", "…")
    assert (index, change.line, change.new) == (0, 6, ("f(1, …)",))
