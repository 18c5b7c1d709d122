"""A block's end is found as soon as the text determines it, and never changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.syntax.block_end import BlockEnd
from tests.completion.work import lines_run

LINES = [
    "if a:",
    "    b",
    "        c(",
    "        d)",
    "",
    "}",
    "{",
    "    }",
    "else {",
    '"""',
    "    x {",
    "def f():",
    "e",
    "end",
    "endless",
    "elsif",
    "  when",
    "do",
    "#if",
    "@a(",
    "<b>",
    "</b>",
    "cat <<E",
    "E",
    "f;",
    "- a",
    "a:",
    "  - b",
    "\\begin{a}",
    "\\end{a}",
    "if(A)",
    "endif()",
    "f(function()",
    "end)",
    "f() as $$",
    "$$;",
]
LANGUAGES = ["python", "javascript", "ruby", "shellscript", "c", "sql", "html", "yaml", "latex", "cmake", "lua"]
texts = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)
prefixes = st.sampled_from(
    [
        "",
        "<b>",
        "def f\n  ",
        "if a; then",
        "\\begin{a}",
        "f(function()\n  ",
        "def f():",
        "    ",
        "if (a) {",
        "    if (a) {\n        ",
        "\tfor {",
        "x = 1",
    ]
)


@given(prefixes, st.sampled_from(["", "\n", "\n}\n", "\n    }\n", "\n</b>\n"]), texts, st.sampled_from(LANGUAGES))
@settings(max_examples=1000)
def test_a_returned_end_never_changes(prefix, suffix, text, language):
    end = BlockEnd(prefix, suffix, language)
    ends = [end.end(text[:length]) for length in range(len(text) + 1)]
    known = [cut for cut in ends if cut is not None]
    assert len(set(known)) <= 1
    assert ends[len(ends) - len(known) :] == known


def test_the_end_is_found_at_the_first_character_outside_the_block():
    end = BlockEnd("def f():", "\n", "python")
    assert end.end("\n    return 1\n\n") is None
    assert end.end("\n    return 1\n\nx") == len("\n    return 1")


@pytest.mark.parametrize(
    ("language", "above", "body", "last"),
    [
        ("python", "def f():\n", "    if a:\n        b()\n\n    c()\n", "    for d in e:"),
        ("nim", "proc f() =\n", "    if a:\n        b()\n    c()\n", "    for d in e:"),
        ("javascript", "function f() {\n", "    if (a) {\n        b();\n    }\n    c();\n", "    for (d of e) {"),
        ("go", "func f() {\n", "    if a {\n        b()\n    }\n    c()\n", "    for d := range e {"),
        ("rust", "fn f() {\n", "    if a {\n        b();\n    }\n    c();\n", "    for d in e {"),
        ("java", "void f() {\n", "    if (a) {\n        b();\n    }\n    c();\n", "    for (var d : e) {"),
        ("ruby", "def f\n", "    if a\n        b\n    end\n    c\n", "    e.each do |d|"),
        ("lua", "function f()\n", "    if a then\n        b()\n    end\n    c()\n", "    for d in e do"),
    ],
)
def test_the_first_line_of_a_block_and_no_deeper_one_decides_what_is_in_it(language, above, body, last):
    below = "\n        g()\n"
    assert BlockEnd(above, below, language).end(body + last) is None
    assert BlockEnd(above, below, language).end(f"{body}{last}\nh()\n") is not None
    deeper = "        b()\n"
    assert BlockEnd(f"{above}    x\n", "\n    y\n", language).end(f"{deeper}    c()\n") == len(deeper) - 1


@pytest.mark.parametrize(
    ("language", "head", "tail"),
    [
        ("python", "    for d in e:", "    return c"),
        ("javascript", "    for (d of e) {", "    return c;"),
        ("rust", "    for d in e {", "    c"),
        ("ruby", "    e.each do |d|", "    c"),
    ],
)
def test_text_above_deeper_code_ends_where_that_can_follow(language, head, tail):
    end = BlockEnd("def f\n", "\n        g()\n", language)
    assert end.joint(f"    b\n{head}") == (len(f"    b\n{head}"),) * 2
    deeper = f"    b\n{head}\n        h()"
    assert end.joint(f"{deeper}\n{tail}") == (len(deeper),) * 2
    assert end.joint(f"{deeper}\n{head}") == (len(f"{deeper}\n{head}"), len(deeper))  # the last line may open nothing
    assert end.joint(f"    b\n{tail}") == (len(f"    b\n{tail}"),) * 2  # nowhere
    whole = f"{head}\n        h()\n{tail}"
    assert BlockEnd("def f\n", "\n    g()\n", language).joint(whole) == (len(whole),) * 2


@given(prefixes, texts, texts, st.sampled_from(LANGUAGES))
def test_where_the_code_below_can_follow_never_falls_while_a_text_grows(prefix, suffix, text, language):
    end = BlockEnd(prefix, f"\n        {suffix}", language)
    joints = [end.joint(text[:length]) for length in range(len(text) + 1)]
    assert all(sure <= joint for joint, sure in joints)
    sure = [each for _, each in joints]
    assert sure == sorted(sure)


def test_a_closer_that_the_document_lacks_belongs_to_the_block():
    text = "\n  return 1;\n}\n"
    assert BlockEnd("function f() {", "\n", "javascript").end(text) == len(text) - 1
    assert BlockEnd("function f() {", "\n}\n", "javascript").end(text) == len("\n  return 1;")


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "block"),
    [
        ("ruby", "class A\n  def b\n    ", "\nend\n", "c\n  end\n\n  def d\n", "c\n  end"),
        ("ruby", "def b\n  ", "\nend\n", "c\nend\n", "c"),
        ("ruby", "a.each do |b|\n  if c\n    ", "\nend\n", "d\n  else\n    e\n  end\nend\n", "d\n  else\n    e\n  end"),
        ("ruby", "a = b\n  .c\n  ", "\n", ".d\nend\n", ".d"),
        ("ruby", "if a\n  b\nelse\n  ", "\nend\n", "c\nend\n", "c"),
        ("ruby", "def a\nend\n\ndef b\n  ", "\n\ndef c\nend\n", "d\nend\n", "d\nend"),
        ("julia", "module A\n\nfunction b()\n  ", "\n\nend\n", "c\nend\n\nend", "c\nend"),
        ("julia", "module A\n\nfunction b()\n  ", "\nend\n\nend\n", "c\nend\n", "c"),
        ("html", "<div>\n</div>\n<ul>\n  ", "\n</ul>\n", "<li>a</li>\n</ul>\n<p>", "<li>a</li>"),
        ("latex", "\\begin{b}\n\\end{b}\n\\begin{a}\n  ", "\n\\end{a}\n", "c\n\\end{a}\nd", "c"),
        ("lua", "f(function()\n  ", "\n", "a()\nend)\nb()", "a()\nend)"),
        (
            "sql",
            "create ",
            "\n",
            "f() as $$\nbegin\n  a;\n\n  b;\nend;\n$$ c;\nd;",
            "f() as $$\nbegin\n  a;\n\n  b;\nend;\n$$ c;",
        ),
        ("sql", "f() as $a$\n", "\n", "begin\n  a;\nend;\n$a$ c;\nd;", "begin\n  a;\nend;\n$a$ c;"),
        ("sql", "f() as $$\n", "\nend;\n$$ b;\n", "declare\n  a;\nbegin\n", "declare\n  a;"),
        ("sql", "a ", "\n", "from b where c = $1;\nd = $2;\n", "from b where c = $1;"),
        ("elixir", "  def a do", "\nend\n", "\n    :b\n  end\n\n  def", "\n    :b\n  end"),
        ("elixir", "  def a(%B{", "})\nend\n", "c: c}) do\n    c\n  end\n\n  def", "c: c}) do\n    c\n  end"),
        ("elixir", "  def a(%B{", "})\n  end\nend\n", "c: c}) do\n    c\n  end\n", "c: c}) do\n    c"),
        (
            "elixir",
            "try do\n  ",
            "\n",
            "a\nrescue\n  _ -> b\nafter\n  c\nend\nd",
            "a\nrescue\n  _ -> b\nafter\n  c\nend",
        ),
        ("elixir", "try do\n  a\nafter\n  ", "\nend\n", "b\nend\n", "b"),
        ("ruby", "before do\n  a\nend\n", "\n", "after do\n  b\nend\nc", "after do\n  b\nend"),
        ("lua", "for a in b({", "})\n", "1}) do\n  c()\nend\nd()\n", "1}) do\n  c()\nend"),
        ("ruby", "def a(b = 1)\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "while (a = gets)\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "if a.end < b\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "@a ||= begin\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "a = case b\n", "\n", "when 1\n  c\nend\nd", "when 1\n  c\nend"),
        ("ruby", "memoize def a\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "loop do # it's b\n  ", "\n", "b\nend\nc", "b\nend"),
        ("ruby", "def a\n  f(\n    b,\n    if: c,\n  )\n  ", "\n", "d\nend\ne", "d\nend"),
        ("ruby", "def a(b) = b + 1\n\ndef c\n  ", "\nend\n", "d\nend\n", "d"),
        ("ruby", "def a; b; end\n\ndef c\n  ", "\nend\n", "d\nend\n", "d"),
        ("crystal", "def a(b : C)\n  ", "\n", "b\nend\nc", "b\nend"),
        ("lua", "if a then -- b\n  ", "\n", "c()\nend\nd()", "c()\nend"),
        ("luau", "function a(b: c): d\n  ", "\n", "c()\nend\nd()", "c()\nend"),
        ("julia", "for a in b[2:end]\n  ", "\n", "c\nend\nd", "c\nend"),
        ("julia", '@testset "a" begin\n  ', "\n", "c\nend\nd", "c\nend"),
        ("julia", "@inbounds for a in b\n  ", "\n", "c\nend\nd", "c\nend"),
        ("julia", "a = if b\n  ", "\n", "c\nend\nd", "c\nend"),
        ("julia", "struct A end\n\nfunction b(c)\n  ", "\nend\n", "d\nend\n", "d"),
        ("fish", "function a\n  ", "\n", "b\nend\nc", "b\nend"),
        ("vim", "function! s:a() abort\n  ", "\n", "b\nendfunction\nc", "b\nendfunction"),
        ("shellscript", "while [ $# -gt 0 ]; do # a\n  ", "\n", "b\ndone\nc", "b\ndone"),
        ("shellscript", "for a in b; do\n  ", "\n", "c\ndone\nd\n", "c\ndone"),
        ("shellscript", "if a; then\n  ", "\nelse\n  d\nfi\n", "b\nelse\n", "b"),
        ("cmake", "if(A)", "\n", "\n  b()\nendif()\nc()", "\n  b()\nendif()"),
        ("html", "<ul>\n  ", "\n", "<li>a</li>\n</ul>\n<p>", "<li>a</li>\n</ul>"),
        ("latex", "\\begin{a}", "\n", "\n\\item b\n\n\\item c\n\\end{a}\nx", "\n\\item b\n\n\\item c\n\\end{a}"),
        ("latex", "\\begin{a}\n  ", "\n", "\\item b\n\\end{a}\nc", "\\item b\n\\end{a}"),
        ("yaml", "", "\n", "a:\n- b\n- c\nd: e\n", "a:\n- b\n- c"),
        ("yaml", "- a\n", "\n", "- b\n- c\n", "- b"),
        ("makefile", "a:", "\nb:\n", "\n\tc\n\nd:\n", "\n\tc"),
    ],
)
def test_what_words_and_tags_open_ends_with_them_if_the_document_does_not_close_it(
    language, before, after, text, block
):
    end = BlockEnd(before, after, language).end(text)
    assert text[:end] == block


def test_a_block_has_no_end_with_text_after_the_cursor():
    assert BlockEnd("    x = foo(", " + 1)\n", "python").end("a)\nb = 1\n") is None


def test_a_growing_text_takes_linear_work():
    def work(lines):
        block_end, text = BlockEnd("f(\n", "", "javascript"), "  a,\n" * lines
        return lines_run(lambda: [block_end.end(text[:end]) for end in range(0, len(text), 5)])

    assert work(100) < 2.5 * work(50)
