"""Comments and strings around a cursor (the bar), in whole and unfinished code."""

import pytest

from completion.syntax.brackets import Literal, enclosing_literal, scan

NAMES = {Literal.COMMENT: "comment", Literal.STRING: "string", None: ""}
CASES = [
    ("python", "x = 1  # a|", "comment"),
    ("python", "# a|\ny = 1", "comment"),
    ("python", "|# a\n", ""),
    ("python", "# a\n|", ""),
    ("python", 'x = "a|"', "string"),
    ("python", 'x = "|"', "string"),
    ("python", 'x = "a"|', ""),
    ("python", 'x = |"a"', ""),
    ("python", 'x = "a|\ny = 2', "string"),
    ("python", 'x = f"a {b|} c"', ""),
    ("python", 'x = f"a {b} c|"', "string"),
    ("python", 'def f():\n    """Doc |\n    """\n', "string"),
    ("python", 'def f():\n    """Doc |\n    return 1\n', "string"),
    ("python", 'x = f("a" |"b")', ""),
    ("python", "it = 'it#s|'", "string"),
    ("python", "é = 'é|'", "string"),
    ("javascript", "const a = `b ${c|} d`", ""),
    ("javascript", "const a = `b ${c} d|`", "string"),
    ("javascript", "/* a|", "comment"),
    ("javascript", "/* a */|", ""),
    ("javascript", "/** a\n * |\n */", "comment"),
    ("javascript", "const a = 'b|\nfoo()", "string"),
    ("typescript", "// x|", "comment"),
    ("typescriptreact", "const a = <p>it's |</p>", ""),
    ("typescriptreact", "const a = <p c='x|'>b</p>", "string"),
    ("go", 'a := "b|"', "string"),
    ("go", "a := `b|`", "string"),
    ("go", "// b|\n", "comment"),
    ("rust", 'let a = r#"b|"#;', "string"),
    ("rust", 'println!("a|");', "string"),
    ("rust", "/// doc |\nfn f() {}", "comment"),
    ("rust", "/// doc\n|fn f() {}", ""),
    ("rust", "fn f<'a|>() {}", ""),
    ("java", "/* b|", "comment"),
    ("java", 'String a = "b|";', "string"),
    ("c", "/* a | */", "comment"),
    ("c", "#include <a|>", ""),
    ("c", 'printf("a|\n', "string"),
    ("cpp", 'auto a = R"(b|)";', "string"),
    ("json", '{"a": "b|"}', "string"),
    ("json", '{"a": |}', ""),
    ("ruby", "# a|", "comment"),
    ("ruby", 'x = "#{a + |}"', ""),
    ("rust", 'let a = r##"b"# |"##;', "string"),
    ("kotlin", '"""\n a|', "string"),
    ("html", "<!-- a|", ""),
    ("", "# a|", ""),
]


@pytest.mark.parametrize(("language", "text", "expected"), CASES)
def test_what_the_cursor_is_inside(language, text, expected):
    before = text.partition("|")[0]
    assert NAMES[enclosing_literal(before, language)] == expected


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("shellscript", 'a "$(b ', ('"', ")")),
        ("shellscript", 'a "$(b "$c" ', ('"', ")")),
        ("shellscript", 'a "$(b "$(c "', ('"', ")", '"', ")", '"')),
        ("shellscript", 'a "$(b)" "', ()),
        ("shellscript", "a '$(b ", ()),
        ("shellscript", 'a "\\$(b ', ()),
        ("ruby", 'f("#{a[', (")", '"', "}", "]")),
        ("ruby", "f(#{a", ()),
        ("kotlin", 'f("${a["', (")", '"', "}", "]", '"')),
        ("kotlin", 'f("$(a', ()),
        ("swift", 'print("\\(a["', (")", '"', ")", "]", '"')),
        ("dart", "f('${a['", (")", "'", "}", "]", "'")),
        ("dart", "f(\"${a['", (")", '"', "}", "]", "'")),
        ("kotlin", "f('${a[", ()),
        ("scala", 'f(s"${a("', (")", '"', "}", ")", '"')),
        ("terraform", 'a = "${b("', ('"', "}", ")", '"')),
        ("python", 'f(f"{a["', (")", '"', "}", "]", '"')),
        ("python", 'f("{a["', ()),
        ("python", 'f"{{a["', ()),
        ("javascript", "f(`${a['", (")", "`", "}", "]", "'")),
        ("csharp", 'f($"{a["', (")", '"', "}", "]", '"')),
        ("php", 'f("{$a[', (")", '"', "}", "]")),
    ],
)
def test_what_is_open_around_code_in_a_string(language, line, expected):
    assert scan(line, language).waiting == expected
