"""Properties of all rules: they insert no text, take no shown text back, and do not cut what they left again."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from completion.ending.context import Context
from completion.ending.decision import RULES, committed, finished
from completion.ending.decision import shown as shown_part
from completion.ending.loops import loops
from completion.ending.next_lines import next_lines
from completion.ending.rule import DropReason
from completion.ending.shape import indentation
from completion.request import Mode, Suggestion
from tests.completion.work import lines_run

PIECES = [
    "return x", "foo(", ")", "]", "}", " {", "{", "[", "'", '"', "\n", "\r\n", "    ", "  ", "\t", ", ", ";", ":",
    "if a", "else", " = ", "a", "value", "\n    b = 1", "\n}", "print(a)\n", "é", "# no (", "// x", "λ = 1", "0, ",
    "`", "/", "=/", "\\", "/*", "#",
    "<a ", ">", "/>", "</a>", "$", '"$(', " do", "end", "<<A\n", "\nA\n", "- a", "--[[", "]]", "#{", "\\begin{a}",
    "\n\tx", '"""', "verify=False", "os.", "system(", "curl x ", "| sh", "password", "= 'hunter22x'",
    "\na: ", "\n  a: 1", "\n  b:", "\n- a: 1", '\n"a": 1,', "\n[a]", "\n[ab]", "\na = 1", "\nrun: |",
]  # fmt: skip
code = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
LANGUAGES = (
    *("python", "javascript", "go", "rust", "java", "c", "ruby", "shellscript", "", "plaintext", "html", "vue", "yaml"),
    *("lua", "latex", "json", "sql", "elixir", "haskell", "cmake", "makefile", "kotlin", "csharp", "powershell"),
    *("toml", "jsonc", "yaml"),
)
languages = st.sampled_from(LANGUAGES)
modes = st.sampled_from([Mode.LINE, Mode.BLOCK])


@given(code, code, code, languages, modes, st.booleans(), st.booleans())
@settings(max_examples=400)
def test_a_rule_keeps_a_beginning_of_the_text(before, after, text, language, mode, cut_short, invoked):
    context = Context.of(before, after, language, mode, invoked=invoked, cut_short=cut_short)
    for rule in RULES:
        ends = rule(text, context)
        assert 0 <= ends.maybe <= len(text), rule
        assert 0 <= ends.sure <= len(text), rule
        assert 0 <= ends.replaces <= len(context.line_after), rule
    indented = indentation(text, context)
    if not isinstance(indented, DropReason):
        assert "".join(indented.split()) == "".join(text.split())
        assert set(indented) <= set(text) | set(context.indent.unit) | {" ", "\t"}


@given(code, code, code, languages, modes, st.booleans())
@settings(max_examples=1000)
@example("", "", "a\nab\nab", "python", Mode.BLOCK, False)
@example('def f():\n    """One.\n\n    ', '\n    """\n', 'two."""\n', "python", Mode.LINE, False)
@example("f(g(v", "\n)\n)\n", "a).m(d=1)\n", "python", Mode.LINE, False)
@example("if (a) {\n  ", "\n}\n", "b();\n} else {\n  c();\n}\n", "javascript", Mode.BLOCK, False)
@example("# no (", "", '"""', "python", Mode.LINE, True)
@example('"""', '"""return x', '""""""return x', "python", Mode.LINE, False)
@example('"""', '"""return x', '""")', "python", Mode.LINE, False)
@example("", ", return x", ', """', "python", Mode.LINE, True)
@example("# no (", "", '\n    b = 1"""', "python", Mode.BLOCK, True)
@example("", "", "\n    b = 1\nelse\n", "python", Mode.BLOCK, False)
@example("", "", "\ndef f():", "python", Mode.BLOCK, False)
@example("", "", "\nelse:return x", "python", Mode.BLOCK, False)
@example("", "// xf(a)\nreturn x\n", "// x\nreturn x\n", "javascript", Mode.LINE, False)
@example("", "/return x\n", "return /, )value=/return x", "javascript", Mode.LINE, False)
@example("  a", "\n  b\n", "\nend\nc", "ruby", Mode.LINE, False)
@example("r", " value;\n", "eturn value || x;", "typescript", Mode.LINE, False)
@example("x = g", "(key)\n", "et(a).b", "python", Mode.LINE, False)
@example("d", " : dict\n", "ata : Any", "python", Mode.LINE, False)
@example("/** */", "\nprivate int f() {\n", "\npublic int f() {", "java", Mode.BLOCK, False)
@example("// a", "\nfn f(x: i64) {\n", "\npub(crate) fn f(x: i64) {", "rust", Mode.BLOCK, False)
@example("", "\nfunction f(a, b) {\n", "export async function f(a, b) {", "typescript", Mode.LINE, False)
def test_text_shown_while_streaming_is_never_taken_back(before, after, text, language, mode, cut_short):
    context = Context.of(before, after, language, mode, cut_short=cut_short)
    seen = ""
    for end in range(len(text) + 1):
        now = shown_part(text[:end], context)
        seen = now if now.startswith(seen) else seen
    final = committed(finished(Suggestion(text), context), Suggestion(text), seen, context)
    assert seen == "" or final.text.startswith(seen)


def test_a_block_shows_each_line_as_soon_as_it_is_complete():
    context = Context.of("def f():\n    ", "\n", "python", Mode.BLOCK)
    texts = ("x = fo", "x = foo\n", "x = foo\n    return x\n    y", "return False\n    ")
    shown = [shown_part(text, context) for text in texts]
    assert shown == ["x =", "x = foo", "x = foo\n    return x", "return False"]


def test_a_text_that_grows_is_shown_in_whole_words():
    text = "write_report(late, path"  # `te_repor` and `t` may be the start of a loop
    context = Context.of("    ", "\n", "python", Mode.LINE)
    assert {shown_part(text[:end], context) for end in range(len(text) + 1)} == {
        "",
        "write_report",
        "write_report(late,",
    }


@given(code, code, code, languages, modes)
@settings(max_examples=300)
def test_filtered_text_passes_the_filters_unchanged(before, after, text, language, mode):
    context = Context.of(before, after, language, mode)
    once = finished(Suggestion(text), context)
    if isinstance(once, Suggestion):
        twice = finished(Suggestion(once.text), context)
        assert isinstance(twice, DropReason) or once.text.startswith(twice.text)


@pytest.mark.parametrize("repeated", ["-", "(", "=-", "| --- "])
def test_a_line_of_punctuation_costs_no_more_than_its_length(repeated):
    """A model may write such a line up to its last token, and every one of them is filtered."""
    context = Context.of("", "", "python", Mode.BLOCK)

    def work(length: int) -> int:
        text = (repeated * length)[:length]
        return lines_run(lambda: loops(text, context))

    assert work(800) < 3 * work(200)


def test_a_text_does_not_read_the_keys_of_a_document_again_for_each_line():
    def work(lines: int) -> int:
        above = "".join(f"  a{number}: 1\n" for number in range(lines))
        context, text = Context.of(f"x:\n{above}  ", "\n", "yaml", Mode.BLOCK), "b: 1\n  c: 2\n  d"
        next_lines(text, context)
        return lines_run(lambda: next_lines(f"{text}: 3\n  e: 4", context))

    assert work(400) < 2 * work(50)


@pytest.mark.parametrize("repeated", ["a", "a:", "color:red;", "a ", "if ", "\t"])
def test_a_long_line_costs_no_more_than_its_length(repeated):
    """With the square of it, some of these lines took minutes of CPU time for each token."""
    line = "return " + (repeated * 50_000)[:50_000]
    for language in ("python", "yaml"):
        context = Context.of(f"{line}\n{line}", f"\n{line}\n", language, Mode.LINE)
        before = time.thread_time()
        next_lines(" b", context)
        assert time.thread_time() - before < 2.0
