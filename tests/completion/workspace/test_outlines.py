"""Outlines have one-line signatures and public members, no bodies and no comments."""

import pytest

from completion.syntax.parsing.process import ParserProcess
from completion.workspace.definitions import MAX_OUTLINE_CHARACTERS, definitions

RUST = """
pub struct Table<'a> { pub rows: u8, hidden: Vec<u8> }
pub enum Value { Text(String), Pair { a: u8,
    b: u8 }, None }
impl Value {
    pub fn text(&self) -> &str { "" }
    fn hidden(&self) {}
}
impl Iterator for Table<'_> { fn next(&mut self) -> Option<u8> { None } }
pub struct Point(pub u8, u8);
fn long(
    a: u8,
    b: u8,
) -> u8 { 1 }
struct Secret { a: u8 }
impl Secret { fn b() {} }
#[cfg(test)]
mod tests { pub fn helper() {} }
"""

SCRIPT = """
export class Table {
  private rows: number; #more = 1;
  // a comment
  constructor(readonly a: B) {}
  private find(): void {}
  async get(a: number): Promise<void> { }
}
export const useTable = (
  a: number,
) => { return a }
export const double = (a: number) => a * 2
export type Options = {
  /** Said in
   * two lines. */
  a: string
  // why
  b: "x // y"
}
"""

PYTHON = '''
class Table(Base):
    """Rows."""

    size: int = 1
    _cache = {}

    def __init__(self, a, *,
                 b=1) -> None:
        self.a = a

    @property
    def rows(self): return self._rows

    @rows.setter
    def rows(self, rows): self._rows = rows

    @classmethod
    @traced("load")
    def load(cls, path): return cls(path)

    def _find(self): pass
'''

CPP = """
class Box {
  int secret_;
  void hidden();
 public:
  explicit Box(int w);
  int width() const { return width_; }
 protected:
  virtual void draw();
 private:
  int width_;
  void recompute();
};
struct Pair {
  int first;
private:
  int second;
};
class Key { int value; };
"""

JAVA = """
public enum Level {
    LOW(1), HIGH(10) { int weight() { return 2; } };

    private final int weight;
    // why
    Level(int weight) { this.weight = weight; }

    public int weight() { return weight; }
    public static Level of(int weight) { return LOW; }
}
enum Mark { ONE; Mark(int... x) {} }
"""

SHOWN = [
    ("rust", RUST, "Table", ("pub struct Table<'a>\n    pub rows: u8\nimpl Iterator for Table<'_>\n"
     "    fn next(&mut self) -> Option<u8>")),
    ("rust", RUST, "Value", ("pub enum Value\n    Text(String)\n    Pair { a: u8, b: u8 }\n    None\n"
     "impl Value\n    pub fn text(&self) -> &str")),
    ("rust", RUST, "Point", "pub struct Point(pub u8, u8);"),
    ("rust", RUST, "long", "fn long(a: u8, b: u8) -> u8"),
    ("rust", RUST, "Secret", "struct Secret { a: u8 }"),
    ("typescript", SCRIPT, "Table", ("class Table\n    constructor(readonly a: B)\n"
     "    async get(a: number): Promise<void>")),
    ("typescript", SCRIPT, "useTable", "useTable = (a: number) =>"),
    ("typescript", SCRIPT, "double", "double = (a: number) => a * 2"),
    ("typescript", SCRIPT, "Options", 'type Options = {\n  a: string\n  b: "x // y"\n}'),
    ("python", PYTHON, "Table", ("class Table(Base):\n    size: int = 1\n"
     "    def __init__(self, a, *, b=1) -> None:\n    @property\n    def rows(self):\n"
     "    @classmethod\n    def load(cls, path):")),
    ("cpp", CPP, "Box", ("class Box\n    explicit Box(int w);\n    int width() const\n"
     "    protected: virtual void draw();")),
    ("cpp", CPP, "Pair", "struct Pair\n    int first;"),
    ("cpp", CPP, "Key", "class Key { int value; }"),
    ("java", "@interface Route { String path(); int port() default 80; }", "Route",
     "@interface Route\n    String path();\n    int port() default 80;"),
    ("rust", "pub union Word { pub whole: u32, real: f32 }", "Word", "pub union Word\n    pub whole: u32"),
    ("java", JAVA, "Level", ("public enum Level\n    LOW(1)\n    HIGH(10)\n    public int weight()\n"
     "    public static Level of(int weight)")),
    ("java", JAVA, "Mark", "enum Mark\n    ONE"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "name", "outline"), SHOWN, ids=[f"{s[0]} {s[2]}" for s in SHOWN])
def test_an_outline_shows_the_public_parts_of_a_definition(language, text, name, outline):
    found = {definition.name: definition.outline for definition in definitions(text, language)}
    assert found[name] == outline


KINDS = [
    ("python", "type UserId = int\n", ["UserId"]),
    ("python", "type Pair[T] = tuple[T, T]\n", ["Pair"]),
    ("python", "A, B = 1, 2\n", ["A", "B"]),
    ("python", "[A, B] = f()\n", ["A", "B"]),
    ("c", "typedef int (*compare_fn)(const void *, const void *);", ["compare_fn"]),
    ("c", "int a, *b[2], (*c[3])(int);", ["a", "b", "c"]),
    ("c", "union Value { int whole; float real; };", ["Value"]),
    ("cpp", "using Id = std::uint64_t;", ["Id"]),
    ("cpp", "template <class T> using Rows = std::vector<T>;", ["Rows"]),
    ("cpp", "template <class T> concept Shape = requires(T t) { t.area(); };", ["Shape"]),
    ("cpp", "const std::string &name(int a);", ["name"]),
    ("go", "package a\n\ntype ID = string\n", ["ID"]),
    ("go", "package a\n\nvar X, Y = 1, 2\n", ["X", "Y"]),
    ("go", "package a\n\nconst (\n\tX, Y = 1, 2\n)\n", ["X", "Y"]),
    ("go", "package a\n\nvar (\n\tErrClosed = errors.New(s)\n)\n", ["ErrClosed"]),
    ("rust", "pub union Value { pub whole: u32, real: f32 }", ["Value"]),
    ("java", "public @interface Route { String value(); }", ["Route"]),
]


@pytest.mark.parametrize(("language", "text", "names"), KINDS, ids=[f"{kind[0]} {kind[1].split()}" for kind in KINDS])
def test_a_definition_of_any_kind_is_found_by_each_of_its_names(language, text, names):
    assert [definition.name for definition in definitions(text, language)] == names


def test_a_long_type_without_public_members_is_shown_as_its_head():
    body = "\n".join(f"    def _step_{i}(self):\n        return {i}\n" for i in range(9))
    (found,) = definitions(f"class Machine(Base):\n{body}", "python")
    assert found.outline == "class Machine(Base):"


def test_an_outline_is_not_cut_between_a_decorator_and_its_method():
    fields = "".join(f"    field_{number:02}: int\n" for number in range(20))
    (found,) = definitions(f"class A:\n{fields}    @property\n    def rows(self): return 1\n", "python")
    assert found.outline == f"class A:\n{fields}".rstrip("\n")


def test_modules_compiled_only_for_tests_have_no_definitions():
    assert "helper" not in {definition.name for definition in definitions(RUST, "rust")}


@pytest.fixture
def parser():
    process = ParserProcess(cpu_limit_s=3.0)
    yield process
    process.close()


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("typescript", "const A = `\n" + "/*\n" * 50_000 + "`;\n", "A"),
        ("typescript", "const A = `\n" + "/* */ a\n" * 20_000 + "`;\n", "A"),
        ("python", "def f(a): pass\n" * 12_000, "f"),
    ],
    ids=["comment openers in a template", "comments before code", "one name many times"],
)
def test_a_long_definition_takes_linear_time(language, text, name, parser):
    """A quadratic search takes 25 s of CPU time for each text; the parser's limit is 3 s."""
    found = {definition.name: definition.outline for definition in parser(definitions, text, language)}
    assert len(found[name]) <= MAX_OUTLINE_CHARACTERS


def test_definitions_inside_a_thousand_blocks_are_ignored():
    assert definitions("{" * 2_000 + "function f() {}" + "}" * 2_000, "javascript") == ()


def test_comment_lines_are_omitted_from_an_outline():
    (found,) = definitions("type A =\n  /* one */\n  | B // two\n  // three\n  | C;\n", "typescript")
    assert found.outline == "type A =\n  | B // two\n  | C;"
