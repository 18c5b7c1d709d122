"""The lexer: read on or anew, a text has the same strings, comments and brackets, which are those of its grammar."""

import random
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.syntax.brackets import Lexer, comments_and_strings, scan
from completion.syntax.trees import ancestors, parse

ROOT = Path(__file__).parents[3]
LANGUAGES = (
    *("python", "javascript", "typescript", "go", "rust", "java", "cpp", "csharp", "kotlin", "swift", "php", "ruby"),
    *("perl", "shellscript", "elixir", "julia", "scala", "yaml", "toml", "sql", "lua", "nix", "html", "markdown"),
)
PIECES = st.sampled_from(
    [
        *("a", " ", "\n", "\n  ", "it's", "x = ", "f", "r#", "$", "@", "\\", "\\\\", "/", "%w", "=pod\n", "=cut\n"),
        *('"', "'", "`", '"""', "'''", "''", "(", ")", "[", "]", "{", "}", "${", "#{", "$(", "\\(", "{{", "{$"),
        *("//", "/*", "*/", "#", "--", "--[[", "]]", "<!--", "-->", "<<EOF\n", "EOF\n", "EOF", "((", "<<<"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def seen(found):
    """All that a scan says."""
    return found, found.waiting


@given(st.sampled_from(LANGUAGES), TEXTS, st.lists(st.integers(0, 200), max_size=6))
def test_a_text_that_grows_and_is_cut_is_read_like_a_new_one(language, text, cuts):
    lexer = Lexer(language)
    for end in (*range(0, len(text) + 1, 3), *(min(cut, len(text)) for cut in cuts), len(text)):
        assert seen(lexer.scan(text[:end])) == seen(Lexer(language).scan(text[:end]))


@given(st.sampled_from(LANGUAGES), TEXTS, TEXTS)
def test_a_text_that_changes_in_the_middle_is_read_like_a_new_one(language, text, other):
    lexer = Lexer(language)
    for each in (text + other, text + "x" + other, other, text):
        assert seen(lexer.scan(each)) == seen(Lexer(language).scan(each))


@given(st.sampled_from(LANGUAGES), TEXTS, TEXTS)
def test_a_string_goes_on_after_a_cursor_as_if_there_were_none(language, before, after):
    begun = scan(f"{before}\n", language)
    whole, rest = scan(f"{before}\n{after}", language), scan(after, language, begun)
    if begun.string and not begun.in_heredoc:
        assert (rest.string, rest.waiting) == (whole.string, whole.waiting[-len(rest.waiting) :])


CODE_IN_STRINGS = {
    "python": 'f"{‸}"',
    "javascript": "`${‸}`",
    "typescript": "`${‸}`",
    "kotlin": '"${‸}"',
    "swift": '"\\(‸)"',
    "ruby": '"#{‸}"',
    "shellscript": '"$(‸)"',
    "csharp": '$"{‸}"',
    "php": '"{$a[‸]}"',
    "dart": "'${‸}'",
    "julia": '"$(‸)"',
    "elixir": '"#{‸}"',
    "scala": 's"${‸}"',
    "terraform": '"${‸}"',
}


@pytest.mark.parametrize("language", CODE_IN_STRINGS)
@given(st.lists(st.sampled_from(["a", "f(b)", '["c"]', "(", '"d"', '"', " + ", "[0]"]), max_size=6).map("".join))
def test_code_within_a_string_ends_where_its_brackets_do(language, code):
    begin, _, end = CODE_IN_STRINGS[language].partition("‸")
    inside = scan(f"x = ({begin}{code}", language)
    alone = scan(code, language)
    if not alone.string and not alone.open:
        assert inside.waiting[-len(end) :] == tuple(reversed(end))
        assert seen(scan(f"x = ({begin}{code}{end}", language)) == seen(scan("x = (", language))
        assert scan(end, language, inside).string_end == len(end)
    else:
        assert inside.string


def calls_of_appending(language, lines):
    """Number of calls of reading one more character after a text of so many lines."""
    lexer, text, calls = Lexer(language), 'x = f("a", [b])\n' * lines, 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    lexer.scan(text)
    sys.setprofile(count)
    lexer.scan(text + "y")
    sys.setprofile(None)
    return calls


@pytest.mark.parametrize("language", ["python", "rust", "shellscript"])
def test_reading_on_takes_the_time_of_what_is_new(language):
    assert calls_of_appending(language, 2_000) <= calls_of_appending(language, 20) + 20


SOURCES = {
    "python": [*(ROOT / "completion").rglob("*.py"), *Path(sysconfig.get_path("stdlib")).glob("[a-h]*.py")],
    "typescript": [*(ROOT / "ide_clients" / "vscode" / "src").glob("*.ts")],
    "javascript": [*Path(sysconfig.get_path("purelib")).glob("*/**/*.js")][:40],
    "c": [*Path(sysconfig.get_path("include")).glob("*.h")],
}
STRINGS = ("string", "template_string", "string_literal", "char_literal", "string_fragment", "string_content")
CODE = ("interpolation", "template_substitution")
UNPARSED = ("preproc_arg", "regex", "predefined_type")
MAX_CHARACTERS = 60_000
MARGIN = 5  # characters after the begin of a node: the longest prefix and quotes


def kind_at(tree, offset):
    """What the grammar says that an offset is inside of; None near a begin, and where it says nothing."""
    node = tree.root_node.descendant_for_byte_range(offset, offset + 1)
    for each in ancestors(node):
        inside = each.start_byte + MARGIN < offset
        if each.type in UNPARSED:
            return None
        if "comment" in each.type or each.type in STRINGS or each.type in CODE:
            kind = "comment" if "comment" in each.type else "code" if each.type in CODE else "string"
            return kind if inside else None
    return "code"


def kind_by_lexer(found):
    return "comment" if found.comment else "string" if found.string and not found.waiting else "code"


@pytest.mark.parametrize("language", SOURCES)
def test_real_files_have_the_strings_and_comments_of_their_grammar(language):
    compared, wrong = 0, []
    for path in sorted(SOURCES[language]):
        text = path.read_text(encoding="utf-8", errors="replace")
        tree = parse(text, language) if text.isascii() and 0 < len(text) < MAX_CHARACTERS else None
        if tree is None or tree.root_node.has_error:
            continue
        lexer, chance = Lexer(language), random.Random(path.name)
        for offset in sorted(chance.sample(range(len(text)), min(20, len(text)))):
            kind = kind_at(tree, offset) if text[offset] != "\n" else None
            if kind is not None:
                compared += 1
                wrong += [(path.name, offset)] if kind_by_lexer(lexer.scan(text[:offset])) != kind else []
    if not compared and language == "javascript":
        pytest.skip("no package with files in this language is installed")
    assert compared > 100
    assert len(wrong) <= compared // 500, wrong


@given(st.sampled_from(["python", "javascript", "ruby", "csharp", "shellscript", "rust"]), TEXTS)
def test_comments_and_strings_are_apart_and_in_order(language, text):
    spans = [(each.start, each.end) for each in comments_and_strings(text, language)]
    assert all(start < end <= len(text) for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
