"""Code that is written from top to bottom: nothing of it is cut because what follows is not written yet."""

import re
from pathlib import Path

import pytest

from completion.decoding.constraints import open_grammar
from completion.decoding.finishing import Finisher
from completion.ending.context import cursor_context
from completion.ending.rule import DropReason
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, StopReason, Suggestion
from completion.syntax.brackets import scan
from completion.syntax.lexer import CLOSER_OF
from tests.completion.grammar.acceptors import GRAMMARS

PROGRAMS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "programs_written").glob("*.txt"))}
INDENT = re.compile(r"[ \t]*")


def lines_of(program):
    """Yield offset and text of each line with code."""
    offset = 0
    for line in program.splitlines():
        if line.strip():
            yield offset, line
        offset += len(line) + 1


def starts_of(line):
    """Return where a person may be in a line: at its first character, in its first word, after it."""
    indent = INDENT.match(line).end()
    word = re.match(r"\s*\w+", line)
    found = {indent, indent + 1, indent + 2, word.end() if word else indent}
    return sorted(start for start in found if start < len(line))


def closed_by_the_editor(prefix, language):
    """Return the closers of the lines above, each on a line of its own, as an editor adds them."""
    found = "\n"
    for opener in reversed(scan(prefix, language).open):
        if "\n" in prefix[opener.offset :]:
            indent = INDENT.match(prefix, prefix.rfind("\n", 0, opener.offset) + 1).group()
            found += indent + CLOSER_OF[opener.character] + "\n"
    return found


def kept_of(prefix, suffix, language, text, *, invoked=False):
    """Return what is left of a suggestion that ends with its line."""
    request = CompletionRequest(prefix, suffix, language, invoked=invoked)
    finisher = Finisher(
        request, cursor_context(request), open_grammar(request, HealedPrefix(prefix, ""), GRAMMARS), b""
    )
    result = finisher.finish(Suggestion(text, token_log_probabilities=(-1.0,)), StopReason.LINE_END)
    return "" if isinstance(result, DropReason) else result.text


@pytest.mark.parametrize("is_closed", [False, True], ids=["nothing below", "closed by the editor"])
@pytest.mark.parametrize("language", PROGRAMS)
def test_no_line_of_a_program_is_cut_while_it_is_written(language, is_closed):
    program, cut = PROGRAMS[language], []
    for offset, line in lines_of(program):
        if is_closed and line.lstrip()[0] in ")]}":
            continue  # the editor has written it
        for start in starts_of(line):
            prefix, text = program[: offset + start], line[start:]
            suffix = closed_by_the_editor(prefix, language) if is_closed else "\n"
            if kept_of(prefix, suffix, language, text).strip() != text.strip():
                cut.append((line, start))
    assert cut == []


def openers_of(line):
    """Return where a person may be in a line right after a bracket or a quote that begins something."""
    return [mark.end() for mark in re.finditer(r"""[(\[{]|(?<![\w'"`])["'`]""", line) if mark.end() < len(line)]


@pytest.mark.parametrize("language", PROGRAMS)
def test_no_line_is_cut_after_an_opener_that_the_editor_has_closed(language):
    program, cut = PROGRAMS[language], []
    for offset, line in lines_of(program):
        for start in openers_of(line):
            begun = scan(line[:start], language)
            closers = begun.string + "".join(CLOSER_OF[opener.character] for opener in reversed(begun.open))
            prefix, text = program[: offset + start], line[start:]
            is_there = closers.startswith(text.strip())
            if closers and not is_there and kept_of(prefix, f"{closers}\n", language, text).strip() != text.strip():
                cut.append((line, start))
    assert cut == []


@pytest.mark.parametrize(
    ("prefix", "closers", "text", "shown"),
    [
        ("def f(", ")", "a: int) -> int:", ["a", "a: int", "a: int)", "a: int) -> int"]),
        ("class A:\n    @cache(", ")", "size=8)", ["size", "size=8"]),
        ("for i in range(", ")", "len(names)):", ["len", "len(names"]),
        ("x = f(", ")", "a).b(c)", ["a", "a).b", "a).b(c"]),
        ('try:\n    print(f"{', '}")', "name} {age}", ["name", "name} {age"]),
        ('def f():\n    """Return it (of ', ")", "usual size).", ["usual", "usual size"]),
        ('try:\n    print(f"{', '")', "name} {age}", ["name", "name} {age"]),
    ],
)
def test_a_line_with_closers_of_the_editor_grows(prefix, closers, text, shown):
    request = CompletionRequest(prefix, f"{closers}\n", "python")
    for start in shown:
        grammar = open_grammar(request, HealedPrefix(prefix, ""), GRAMMARS)
        assert Finisher(request, cursor_context(request), grammar, b"").visible_part(start, "") == start
    assert kept_of(prefix, f"{closers}\n", "python", text) == text


@pytest.mark.parametrize(
    ("prefix", "suffix", "text"),
    [("def f(", ")\n", "a: int] -> int:"), ("if f(", ")\n", "x]:"), ("print(f(", "))\n", "x))):")],
)
def test_what_breaks_a_line_is_cut_although_the_editor_has_closed_it(prefix, suffix, text):
    assert kept_of(prefix, suffix, "python", text) != text


def held_back(prefix, language, code, suffix="\n"):
    """Return the starts of a line, each up to a word or mark outside of strings, that are not shown while it grows."""
    ends = [word.end() for word in re.finditer(r"\w+|[^\w\s]+", code)]
    starts = [code[:end] for end in ends if end < len(code) and not scan(prefix + code[:end], language).string]
    request = CompletionRequest(prefix, suffix, language)
    found = []
    for start in starts:
        grammar = open_grammar(request, HealedPrefix(prefix, ""), GRAMMARS)
        if Finisher(request, cursor_context(request), grammar, b"").visible_part(start, "") != start:
            found.append(start)
    return found, len(starts)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_line_is_shown_word_by_word_while_it_grows(language):
    program = PROGRAMS[language]
    lines = [(program[: offset + INDENT.match(line).end()], line.lstrip()) for offset, line in lines_of(program)]
    counts = [held_back(prefix, language, code) for prefix, code in lines]
    held, starts = [start for each, _ in counts for start in each], sum(number for _, number in counts)
    assert starts > 100
    # Nothing closes the starts of Go's functions with type parameters, or of an `#include` at the top.
    assert len(held) <= 0.03 * starts, held


GO, SELECT, C = "package a\n\nfunc f() {\n\t", "package a\n\nfunc f() {\n\tselect {\n\t", "void f(int x) {\n    "
JAVA, RUST = "class A {\n    void f() {\n        ", "fn f() {\n    "


@pytest.mark.parametrize("is_closed", [False, True], ids=["nothing below", "closed by the editor"])
@pytest.mark.parametrize(
    ("language", "prefix", "code"),
    [
        ("go", f"{GO}switch x {{\n\t", "case modeCopy, modeMove:"),
        ("go", f"{GO}switch x {{\n\t", "default:"),
        ("go", SELECT, "case <-ctx.Done():"),
        ("go", SELECT, "case v, ok := <-ch:"),
        ("go", GO, "if err := run(x, y); err != nil {"),
        ("go", GO, "for i := 0; i < n; i++ {"),
        ("go", GO, "for _, v := range values {"),
        ("go", GO, "defer func() {"),
        ("go", GO, "v, err := strconv.Atoi(s)"),
        ("c", f"{C}switch (x) {{\n    ", "case FOO:"),
        ("c", C, "if (x == NULL)"),
        ("cpp", C, "std::vector<std::pair<int, std::string>> v;"),
        ("cpp", "", "using Map = std::unordered_map<std::string, std::vector<int>>;"),
        ("java", f"{JAVA}switch (c) {{\n            ", "case RED, GREEN -> 1;"),
        ("rust", f"{RUST}match x {{\n        ", "Some(n) if n > 0 => n,"),
        ("rust", f"{RUST}match x {{\n        ", "Kind::B { x, .. } => x,"),
        ("rust", RUST, "if let Some(x) = y {"),
        ("rust", RUST, "for (i, x) in v.iter().enumerate() {"),
        ("rust", "struct S {\n    ", "pub a: Option<Box<dyn Fn(u8) -> u8 + Send>>,"),
        ("rust", "", "type Result<T> = std::result::Result<T, Error>;"),
        ("typescript", "switch (x) {\n    ", "case Kind.A:"),
        ("c", C, "for (size_t i = 0; i < n; ++i) {"),
        ("c", "", "static const unsigned long limit = 5;"),
        ("cpp", C, "for (const auto& [key, value] : map) {"),
        ("cpp", C, "if (const auto it = m.find(k); it != m.end()) {"),
        ("cpp", C, "auto n = std::count_if(v.begin(), v.end(), [&](const auto& x) { return x.empty(); });"),
        ("cpp", C, "std::thread worker([this, n = n_] { Run(); });"),
        ("cpp", C, "const auto* found = x ? a : b;"),
        ("cpp", "", "class MapTest : public ::testing::Test {"),
        ("cpp", "", "template <typename T, int N>"),
        ("java", JAVA, "for (int i = 0; i < n; i++) {"),
        ("java", JAVA, "Map<String, List<Integer>> groups = new TreeMap<>(Comparator.reverseOrder());"),
        ("java", JAVA, "return Optional.ofNullable(x).map(Foo::y).orElseThrow(() -> new Failure(y));"),
        ("java", "class A {\n    ", "@Override"),
        ("rust", RUST, "let n: u32 = xs.iter().filter(|(_, x)| x.id > 3).map(|x| x.n).sum();"),
        ("rust", RUST, "let task = spawn(async move { run(x).await });"),
        ("rust", RUST, "let b = Box::new(move |x: u8| x + 1);"),
        ("rust", RUST, "let x = if a { b } else { c };"),
        ("rust", "", "impl<T: Display> fmt::Display for Wrapper<T> {"),
        ("typescript", "", "for (const [key, value] of Object.entries(o)) {"),
        ("typescript", "", "const load = createThunk(a, async (id: string): Promise<void> => {"),
        ("typescript", "", "const f = (a: number, b = 2): number => a + b;"),
        ("typescriptreact", "", "const x = items.length > 0 ? first(items) : undefined;"),
        ("go", GO, "t.Run(tt.name, func(t *testing.T) {"),
        ("go", GO, "tests := []struct {"),
        ("go", GO, "sort.Slice(xs, func(i, j int) bool { return xs[i].A < xs[j].A })"),
        ("python", "", "pairs = sorted(table.items(), key=lambda pair: pair[1])"),
        ("python", "", "x = a if b else c if d else e"),
        ("python", "", "f(a, b if c else d)"),
        ("python", "def f():\n    ", "return a if b else c"),
        ("python", "def f(\n    a: int = 1,\n    ", 'mode: Literal["r", "w"] = "r",'),
        ("python", "class A:\n    def f(\n        self,\n        a=1,\n        ", "retries: int | None = None,"),
        ("python", "def f(\n    a,\n    ", "*, b: int"),
        ("python", "x = f(\n    a=1,\n    ", "retries=g(2),"),
    ],
)
def test_every_start_of_a_usual_line_is_shown_while_it_grows(language, prefix, code, is_closed):
    suffix = closed_by_the_editor(prefix, language) if is_closed else "\n"
    held = held_back(prefix, language, code, suffix)[0]
    assert held == (["*,"] if is_closed and code.startswith("*,") else [])  # Python refuses a bare star without a name


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("c", "#include <stdlib.h>"),
        ("cpp", "#include <cstdlib>"),
        ("rust", "const CHANGE_DELETED: u8 = 1;"),
        ("rust", "pub fn run() {"),
        ("typescript", "import Handler from './handler';"),
        ("go", "func run(n int) error {"),
    ],
)
def test_usual_lines_grow_below_a_syntax_error_where_no_acceptor_chooses_what_may_follow(language, code):
    assert held_back(") ]\n", language, code)[0] == []


def test_a_parameter_is_added_word_by_word_below_others_that_have_a_default():
    suffix = "\n) -> None:\n    return a\n"
    assert held_back("def f(\n    a: int = 1,\n    ", "python", "b: str | None = None,", suffix)[0] == []
    assert held_back("x = f(\n    a=1,\n    ", "python", "b=g(2),", "\n)\n")[0] == []


@pytest.mark.parametrize("below", ["", "\n    Kind.C: 3,"])
@pytest.mark.parametrize("code", ["Kind.B: call(b),", '"name of": x'])
def test_a_key_of_a_dictionary_is_shown_word_by_word(below, code):
    assert held_back("KINDS = {\n    Kind.A: 1,\n    ", "python", code, f"{below}\n}}\n")[0] == []


@pytest.mark.parametrize(
    ("language", "prefix", "code", "below"),
    [
        ("typescript", "const names = {\n  ", 'uuid: "UUID",', '\n  guid: "GUID",\n};\n'),
        ("typescript", "const names = {\n  ", '"short-id": { name: "x", length: 3 },', "\n  guid: f(),\n};\n"),
        ("typescript", "export {\n  ", "_min as min,", '\n  _max as max,\n} from "./a.js";\n'),
        ("javascript", "const maps = [\n  ", "ctx.common.map(f),", "\n  ctx.other,\n];\n"),
        ("go", "package a\n\nvar names = []T{\n\t", 'T{A: "x", B: f(1)},', '\n\tT{A: "y"},\n}\n'),
        ("rust", "struct S {\n    ", "pub names: Vec<String>,", "\n    pub other: u8,\n}\n"),
        ("c", "int table[] = {\n    ", "f(A) + 1,", "\n    2,\n};\n"),
    ],
)
def test_an_item_is_shown_word_by_word_above_others(language, prefix, code, below):
    assert held_back(prefix, language, code, below)[0] == []


@pytest.mark.parametrize("code", ['"test:watch": "mocha --watch",', '"files": ["a", "b"],', '"private": true,'])
def test_a_pair_is_shown_word_by_word_above_others(code):
    assert held_back('{\n  "scripts": {\n    "a": "b",\n    ', "json", code, '\n    "c": "d"\n  }\n}\n')[0] == []


def test_a_lambda_in_a_call_whose_parentheses_the_editor_has_closed_is_shown_while_it_grows():
    suffix = ")\n}\n"
    assert held_back(f"{C}std::sort(", "cpp", "v.begin(), v.end(), [](int a, int b) { return a > b; }", suffix)[0] == []
    assert held_back(f"{RUST}items.sort_by(", "rust", "|a, b| b.n.cmp(&a.n)", suffix)[0] == []
    assert held_back(f"{JAVA}pool.submit(", "java", "() -> run(new Job(x))", f"){suffix[1:]}    }}\n}}\n")[0] == []


@pytest.mark.parametrize(
    ("prefix", "language", "text"),
    [
        ("try:\n    ", "python", "value = float(x)"),
        ("def f():\n    try:\n        with g():\n            ", "python", "return 1"),
        ("void f() {\n  try {\n    ", "cpp", "run();"),
        ("class A {\n  void f() {\n    do {\n      ", "java", "i++;"),
        ("try {\n  ", "javascript", "run();"),
    ],
)
def test_in_a_block_that_lacks_what_must_follow_it_requested_code_is_kept(prefix, language, text):
    assert kept_of(prefix, "\n", language, text, invoked=True) == text


@pytest.mark.parametrize("invoked", [False, True], ids=["automatic", "manual"])
@pytest.mark.parametrize("suffix", ["", "]"], ids=["nothing closed", "closed by the editor"])
@pytest.mark.parametrize(
    ("language", "prefix", "text", "below"),
    [
        ("rust", "enum Failure {\n    Missing,\n    #[", 'error("no {0}")', "\n}\n"),
        ("rust", "struct Cli {\n    root: String,\n    #[", "arg(long)", "\n}\n\nfn main() {}\n"),
        ("rust", "impl Cli {\n    #[", "inline", "\n}\n"),
    ],
)
def test_an_attribute_is_kept_whose_item_is_not_written_yet(language, prefix, text, below, suffix, invoked):
    text += "" if suffix else "]"
    assert kept_of(prefix, suffix + below, language, text, invoked=invoked) == text


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix"),
    [
        ("python", "class A:\n    @prop", "erty", "\n"),
        ("python", "@app", '.get("/")', "\n\n\nx = 1\n"),
        ("java", "class A {\n    @Over", "ride", "\n}\n"),
    ],
)
def test_a_requested_decorator_is_kept_whose_function_is_not_written_yet(language, prefix, text, suffix):
    assert kept_of(prefix, suffix, language, text, invoked=True) == text


def test_the_start_of_an_attribute_is_kept_if_the_user_did_not_ask_for_it():
    prefix, suffix = "enum Failure {\n    Missing,\n    ", "\n}\n"
    assert kept_of(prefix, suffix, "rust", "#[error(") == "#[error("
    assert kept_of(prefix, suffix, "rust", "#[error(", invoked=True) == ""
    assert kept_of(prefix + "#[", f"]{suffix}", "rust", "error(") == "error("


@pytest.mark.parametrize(
    ("language", "prefix", "text", "suffix"),
    [
        ("python", "x = 1\n", "return] 2", "\n"),
        ("python", "x = 1\n", "def f(:", "\n"),
        ("go", "package a\n\n", "func f) {", "\n"),
        ("java", "class A {\n", "    void f( {", "\n}\n"),
        ("typescriptreact", "const a = (\n", "  <div className=] />", "\n);\n"),
    ],
)
def test_what_no_text_completes_is_cut(language, prefix, text, suffix):
    assert kept_of(prefix, suffix, language, text) != text


@pytest.mark.parametrize(("invoked", "kept"), [(False, "fdef __cplusplus"), (True, "")])
def test_a_condition_of_the_preprocessor_opens_what_a_requested_text_must_close(invoked, kept):
    prefix, suffix = "#include <stdbool.h>\n\n#i", "\nint f(int a)\n{\n    return a;\n}\n"
    assert kept_of(prefix, suffix, "c", "fdef __cplusplus", invoked=invoked) == kept


def test_a_text_that_is_cut_after_a_line_does_not_end_with_an_empty_one():
    assert kept_of("def f():\n    ", "\n\nx = 1\n", "python", "a()\n    b = = 1\n    c()") == "a()"
