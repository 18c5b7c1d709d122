"""Kinds of texts that once left a document broken or empty: each is right in every language that has it."""

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.decoding.stop_rules import StopRules
from completion.ending.context import Context, cursor_context
from completion.ending.decision import finished, shown, stop
from completion.ending.rule import DropReason
from completion.request import CompletionRequest, Mode, StopReason, Suggestion
from completion.syntax.brackets import scan

JOINED_BY = {
    **dict.fromkeys(["python", "javascript", "typescript", "java", "csharp", "go", "kotlin", "swift", "dart"], " + "),
    "cpp": " + ",
    "lua": " .. ",
    "php": " . ",
    "elixir": " <> ",
}
LANGUAGES = st.sampled_from([*JOINED_BY, "rust", "ruby"])
STRINGS = st.sampled_from([('f("Hello, ', '!");\n'), ('x = "Hello, ', '!"\n'), ('x = "{\\"name\\": \\"', '\\"}";\n')])
VALUES = st.sampled_from(["name", "f(x)", 'f("x")', "a[1]", "user.name"])


def context_at(prefix, suffix, language, **changes):
    return Context.of(prefix, suffix, language, Mode.LINE, **changes)


def finished_text(text, context):
    result = finished(Suggestion(text), context)
    return "" if isinstance(result, DropReason) else result.text


def all_shown(text, context):
    return {shown(text[:end], context) for end in range(len(text) + 1)}


@given(st.sampled_from(sorted(JOINED_BY.items())), STRINGS, VALUES, st.sampled_from(["", "!", '!"', '!");\n']))
def test_a_text_may_close_a_string_add_a_value_and_open_the_string_again(language, string, value, further):
    name, operator = language
    context = context_at(*string, name)
    text = f'"{operator}{value}{operator}"'
    assert finished_text(text + further, context).startswith(text)
    for each in all_shown(text + further, context):
        assert text.startswith(each) or each.startswith(text)
        line = string[0] + each + string[1].partition("\n")[0]
        assert scan(line, name).string == ""
        assert each == "" or each.count('"') % 2 == 0


PHRASES = {
    "latin": '"one", ',
    "cyrillic": '"да", ',
    "chinese": "你好世界，",
    "hindi": '"नमस्ते", ',
    "flags": '"🇪🇸", ',
    "emoji": '"👩\u200d💻", ',
    "one emoji": "🙂" * 4,
    "arabic": "مرحبا، ",
    "greek": "λόγος; ",
    "long": ", ".join(f'"word {number}"' for number in range(20)) + ", ",
}


@pytest.mark.parametrize("phrase", PHRASES.values(), ids=PHRASES)
@given(LANGUAGES)
@settings(max_examples=8)
def test_a_loop_of_any_script_and_length_ends_after_its_first_run(phrase, language):
    context = context_at("x = [", "]\n", language)
    text = phrase * max(8, 80 // len(phrase))
    ends = (stop(text[:end], context) for end in range(0, len(text) + 1, 5))
    end = next(filter(None, ends))
    assert end.reason is StopReason.REPETITION
    assert end.length <= 2 * len(phrase)


@given(LANGUAGES, st.sampled_from(["null", "0x00", "f(a, 1)", '"да"', "да", "[1, 2]"]), st.sampled_from(["", "; "]))
def test_a_loop_leaves_no_separator_before_a_closer(language, value, rest):
    context = context_at("x = [1, ", f"]{rest}\n", language)
    text = f"{value}, " * 20
    ends = (stop(text[:end], context) for end in range(len(text) + 1))
    assert finished_text(text[: next(filter(None, ends)).length], context).rstrip()[-1] == value[-1]
    assert not any(each.endswith(",") for each in all_shown(text, context))


@given(LANGUAGES, st.integers(9, 20))
def test_a_loop_of_many_lines_ends_after_its_first_run(language, count):
    run = "".join(f"    call_{number}(a)\n" for number in range(count))
    context = Context.of("f {\n", "\n", language, Mode.BLOCK)
    end = stop(run * 3 + "    ", context)
    assert (end.length, end.reason) == (len(run) - 1, StopReason.REPETITION)


@given(
    LANGUAGES,
    st.lists(st.sampled_from(["🇪🇸", "👩\u200d💻", "e\u0301", "नि", "क्षि", "👍🏽", "x", " ", "+ "]), max_size=9),
)
def test_nothing_that_is_shown_ends_inside_a_cluster(language, parts):
    text, context = "".join(parts), context_at("# ", "\n", language)
    ends = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    for limit in range(len(text) + 1):
        now = shown(text, context, limit)
        assert len(text) - len(text.lstrip()) + len(now) in ends or len(now) in ends


@given(LANGUAGES, st.sampled_from(["", '"']))
@settings(max_examples=20)
def test_what_a_maximum_cuts_leaves_nothing_that_only_begins(language, quote):
    text = f'red{quote}, "green", f(a, "blue"), [3, "yellow"], {{1: "orange"}}'
    context = context_at(f"x = [{quote}", f"{quote}]\n", language, cut_short=True)
    for end in range(len(text)):
        kept = finished(Suggestion(text[:end]), context)
        if isinstance(kept, Suggestion):
            assert kept.text.rstrip()[-1] not in "([{,"
            line = f"x = [{quote}{kept.text}{quote[kept.replace_after :]}]"
            assert scan(line, language).string == ""
            assert '""' not in line


TRIPLE = ["python", "kotlin", "swift", "java", "dart", "scala", "julia", "elixir", "groovy"]


@pytest.mark.parametrize("language", TRIPLE)
@pytest.mark.parametrize("closer", ['"""', ""])
def test_a_text_between_triple_quotes_begins_on_the_next_line(language, closer):
    request = CompletionRequest('class A {\n    x = """', f"{closer}\n    y = 1\n", language, invoked=True)
    context = cursor_context(request)
    text = '\n    One sentence.\n    """\n'
    end = StopRules(request, context).text_end(text)
    assert finished_text(text[: end.length], context) == "\n    One sentence."


@pytest.mark.parametrize("language", TRIPLE)
@pytest.mark.parametrize("text", ['"', '""', '"""'])
def test_between_triple_quotes_a_lone_quote_is_nothing(language, text):
    context = context_at('x = """', '"""\n', language, invoked=True)
    assert finished_text(text, context) == ""


@given(
    LANGUAGES,
    st.sampled_from(["le.log(2)", "le.log(2);", "le = f()", "lex", "led", "lest(a)"]),
    st.sampled_from(["conso", "titles = [ti", "x.app"]),
)
def test_a_manual_request_within_a_word_does_not_say_its_tail_again(language, text, before):
    context = context_at(before, "le.log(1)\n", language, invoked=True)
    assert finished(Suggestion(text), context) == DropReason.MID_WORD


@given(LANGUAGES, st.sampled_from(["ab", "ab(1) + ", "lend.ab_"]))
def test_another_text_of_a_manual_request_within_a_word_stays(language, text):
    context = context_at("conso", "le.log(1)\n", language, invoked=True)
    assert finished_text(text, context).rstrip() == text.rstrip()


DECLARED = {
    "javascript": ("const ", ";"), "typescript": ("let ", ";"), "rust": ("let ", ";"), "java": ("int ", ";"),
    "kotlin": ("val ", ""), "swift": ("let ", ""), "go": ("", ""), "python": ("", ""), "ruby": ("", ""),
    "csharp": ("var ", ";"), "cpp": ("auto ", ";"), "lua": ("local ", ""), "php": ("$", ";"), "dart": ("final ", ";"),
}  # fmt: skip


@given(st.sampled_from(sorted(DECLARED.items())), st.sampled_from(["value", "height", "β"]))
def test_what_the_next_line_defines_is_not_defined_above_it(declared, name):
    language, (before, after) = declared
    context = context_at("f {\n    ", f"\n    {before}{name} = parts[1].trim(){after}\n", language, invoked=True)
    text = f"{before}{name} = parts[2].trim().size(){after}"
    assert finished_text(text, context) == ""
    assert all_shown(text, context) <= {""}
    assert finished_text(f"{before.strip('abcdefghijklmnopqrstuvwxyz ')}{name} = 2{after}", context) == ""
    other = f"{before}other = parts[2].trim(){after}"
    assert finished_text(other, context) == other


@given(
    st.sampled_from(sorted(set(DECLARED) - {"elixir"})),
    st.sampled_from(["return", "return a", "return a[1]", "break", "continue"]),
    st.sampled_from(["call(a)", "x = a[1]", "log.info(a)"]),
)
def test_no_jump_comes_before_a_statement_beside_it(language, jump, below):
    context = context_at("f {\n    ", f"\n    {below}\n", language, invoked=True)
    assert finished_text(jump, context) == ""
    deeper = context_at("f {\n        ", f"\n    {below}\n", language, invoked=True)
    assert finished_text(jump, deeper) == jump


@given(
    st.sampled_from(["markdown", "restructuredtext", "asciidoc", "plaintext", "org", "latex", "html", "python"]),
    st.lists(st.sampled_from(["red", "12", "да", "名", "a b"]), min_size=1, max_size=4, unique=True),
)
def test_a_cell_of_a_table_does_not_bring_the_cells_after_it(language, cells):
    rest = "".join(f" | {cell}" for cell in cells) + " |"
    context = context_at("| one | two |\n| medium | ", f"{rest}\n", language)
    others = "".join(f" | {cell}x" for cell in cells) + " |"
    for text in (f"2{rest}", f"2{others}", f"2{rest}\n", "2 |", "2"):
        assert finished_text(text, context) == "2"
        assert all_shown(text, context) <= {"", "2"}


@given(LANGUAGES, st.sampled_from(["%s", "Hello", "a b", "名"]), st.sampled_from(["", "\\n", ", ok"]))
def test_an_escaped_quote_after_the_cursor_is_not_written_again(language, text, between):
    rest = f'\\"{between}", name);'
    context = context_at('f("He said \\"', f"{rest}\n", language)
    for further in (rest, '\\"', f'\\".{between}", name);', ""):
        assert finished_text(text + further, context) == text


@given(LANGUAGES, st.sampled_from([("", 'x(a, b) + f("c")'), (" ", "+ offset.x * 2"), ("", ", timeout=3, size=[1])")]))
def test_the_rest_of_the_line_is_not_said_again_with_other_blanks(language, rest):
    blanks, code = rest
    prefix = "y = g(" if code.startswith(",") else "y = "
    context = context_at(prefix, f"{blanks}{code}\n", language, invoked=True)
    said = code.replace(" + ", "+").replace(", ", " ,  ")
    assert (prefix + finished_text(f"value{blanks}{said}", context)).rstrip() in (f"{prefix}value", prefix)


@given(
    LANGUAGES,
    st.sampled_from([" for e in values if e > limit]", ".total(self.offset, size) + 1", " >= other.count() * 2"]),
    st.sampled_from(["\n", "\nprint(check)\n", "\n\n# a test\nassert check(1)\n"]),
)
def test_the_rest_of_the_line_is_not_said_again_before_further_lines(language, rest, further):
    context = context_at("    x = ", f"{rest}\n", language, invoked=True)
    assert finished_text(f"value{rest}{further}", context) == "value"


@given(LANGUAGES, st.sampled_from(["); \\", ");", ") {", ")], \\"]))
def test_marks_after_the_cursor_are_not_written_again(language, rest):
    prefix = "    x = [(16, d" if "]" in rest else "    if (d"
    context = context_at(prefix, f"{rest}\n", language, invoked=True)
    result = finished(Suggestion(f"ata{rest}"), context)
    assert prefix + result.text + rest[result.replace_after :] == f"{prefix}ata{rest}"


@given(LANGUAGES, st.sampled_from(["1); } }", "1); }", "1);", "1)"]), st.booleans())
def test_closers_between_other_marks_are_not_written_again(language, text, invoked):
    context = context_at("class A { void f() { g(", "); } }\n", language, invoked=invoked)
    result = finished(Suggestion(text), context)
    assert result.text + "); } }"[result.replace_after :] == "1); } }"


@given(
    LANGUAGES,
    st.sampled_from([("f'MY {", "}'"), ("x = [", "];"), ("call(", ")"), ("{ a: {", "} }")]),
    st.sampled_from(['state["call"]', "a + b", "name"]),
)
def test_what_the_document_closes_is_not_closed_to_begin_the_same_again(language, around, text):
    context = context_at(around[0], f"{around[1]}\n", language, invoked=True)
    closer, opener = around[1][0], around[0][-1]
    assert finished_text(f"{text}{closer} {opener}", context) == text


@given(LANGUAGES, st.integers(1, 12))
def test_no_rule_ends_a_text_within_a_flag(language, rounds):
    context = context_at('flags = ["🇩🇪", "🇫🇷", "', '"]\n', language, invoked=True)
    text = '🇬🇧", ' + '"🇪🇸", ' * rounds + '"🇪🇸'
    for end in range(1, len(text) + 1):
        found = stop(text[:end], context)
        kept = finished_text(text[:end] if found is None else text[: found.length], context)
        whole = {0, *(match.end() for match in regex.finditer(r"\X", text[:end]))}
        assert len(kept) in whole


@given(LANGUAGES, st.sampled_from(["🇬", "👩", "👩‍", "e\u0301", "名"]))
def test_a_text_that_was_cut_short_does_not_end_with_what_might_have_gone_on(language, last):
    context = context_at('flags = ["🇩🇪", "🇫🇷", "', '"]\n', language, cut_short=True)
    assert finished_text(f'🇬🇧", "{last}', context) in ("🇬🇧", '🇬🇧"')  # whose quote is the document's


STRINGS_OF_LINES = [
    *((language, quote) for quote in "\"'" for language in ("shellscript", "ruby", "sql", "r", "perl", "elixir")),
    *((language, '"') for language in ("rust", "clojure", "julia", "nix", "ocaml", "cmake")),
    *((language, "`") for language in ("javascript", "typescript", "go", "vue")),
]


@pytest.mark.parametrize(("language", "quote"), STRINGS_OF_LINES)
def test_a_string_that_ends_on_a_later_line_is_not_ended_before(language, quote):
    usage = f"usage={quote}Usage: x "
    context = context_at(usage, f"\n  -h  help{quote}\nf({quote}a{quote})\n", language)
    assert finished_text("[options]", context) == "[options]"
    assert finished_text(f"[options]{quote}", context) == "[options]"
    for below in (f"\nf({quote}a{quote})\n", f"\nb={quote}a\n{quote}\n", "\n"):
        begun = context_at(usage, below, language)
        assert finished_text(f"[options]{quote}", begun) == f"[options]{quote}"


HEREDOCS = {
    "shellscript": "cat <<EOF",
    "ruby": "x = <<~EOF",
    "php": "$x = <<<EOF",
    "terraform": "x = <<-EOF",
    "dockerfile": "RUN cat <<EOF",
}


@pytest.mark.parametrize("language", HEREDOCS)
@pytest.mark.parametrize("text", ["it's me", 'say "hi'])
def test_a_quote_in_a_heredoc_begins_no_string(language, text):
    context = context_at(f"{HEREDOCS[language]}\nHello ", "\nEOF\n", language)
    assert shown(f"{text} and", context) == text
    end = stop(f"{text}\n", context)
    assert (end.length, end.reason) == (len(text), StopReason.LINE_END)
