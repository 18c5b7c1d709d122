"""The constraint's snapshots, ends and cuts, and its reason where a request has no acceptor."""

import pytest

from completion.grammar.constraint import GrammarConstraint, OffReason
from completion.grammar.joining import Missing
from completion.grammar.lr.acceptor import Acceptor
from completion.prompt.healing import heal
from completion.request import GrammarMode
from completion.syntax.parsing import Parsing
from tests.completion.grammar.acceptors import GRAMMARS

STRICT = GrammarMode.STRICT


def opened(prefix, suffix="", language="python", healed=""):
    constraint = GrammarConstraint(GRAMMARS, language, prefix, suffix, STRICT, healed)
    assert constraint.root is not None, constraint.off_reason
    return constraint


@pytest.mark.parametrize(
    ("language", "prefix", "mode", "reason"),
    [
        ("python", "x = ", GrammarMode.OFF, OffReason.SWITCHED_OFF),
        ("cobol", "MOVE", STRICT, OffReason.NO_GRAMMAR),
        ("", "x", STRICT, OffReason.NO_GRAMMAR),
        ("python", "x = )\ny = ", STRICT, OffReason.BROKEN_BEFORE_CURSOR),
        ("json", "[" + "1,\n" * 100_000, STRICT, OffReason.TOO_LARGE),
    ],
)
def test_a_request_without_an_acceptor_gives_the_reason(language, prefix, mode, reason):
    off = GrammarConstraint(GRAMMARS, language, prefix, "", mode)
    assert off.root is None
    assert off.off_reason is reason


def test_a_byte_order_mark_is_no_part_of_the_text():
    constraint = opened("\ufeff[1, ", "]", "json")
    assert constraint.longest_passing_cut(b"2") == 1


@pytest.mark.parametrize(
    ("language", "word"),
    [("python", "impo"), ("go", "packa"), ("rust", "us"), ("java", "impo"), ("c", "in"), ("json", "tr")],
)
def test_a_byte_order_mark_before_the_first_word_leaves_the_grammar_on(language, word):
    healed = heal(f"\ufeff{word}")
    constraint = GrammarConstraint(GRAMMARS, language, healed.shown, "", STRICT, healed.run)
    assert constraint.advance(constraint.root, healed.forced) is not None


def test_checks_and_rejections_are_counted():
    constraint = opened("x = (")
    assert constraint.advance(constraint.root, b"1 +") is not None
    assert constraint.advance(constraint.root, b"]") is None
    assert (constraint.counters.checks, constraint.counters.rejections) == (2, 1)
    assert constraint.counters.elapsed_ms > 0


def test_a_completion_is_cut_to_where_the_suffix_parses():
    constraint = opened("x = f(", ")\ny = 1\n")
    assert constraint.longest_passing_cut(b"a, b") == len(b"a, b")
    assert constraint.longest_passing_cut(b"a, b)") == len(b"a, b")


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_cut_divides_no_three_quotes(quotes):
    constraint = opened(f"def f():\n    {quotes}Return a sum", f" of two.{quotes}\n    return 1\n")
    assert constraint.longest_passing_cut(f", or none.{quotes}".encode()) == len(", or none.")


def test_a_cut_in_the_healed_run_does_not_end_the_search_for_one_after_it():
    before, after = "def f():\n    if a", " and c:\n        pass\n"
    healed = GrammarConstraint(GRAMMARS, "python", before, after, GrammarMode.STRICT, healed=" >")
    assert healed.longest_passing_cut(b" > 0:") == len(b" > 0")


def test_the_longest_passing_cut_excludes_a_closer_that_the_suffix_has():
    constraint = opened("x = f(", ")\ny = 1\n")
    assert constraint.longest_passing_cut(b"a, b)") == len(b"a, b")


@pytest.mark.parametrize(
    ("language", "prefix", "middle", "suffix", "kept"),
    [
        ("javascript", "f(x, args.con", "cat(b}), c).then(({ d }) => {", "\n  g();\n});\n", "cat"),
        ("java", "class A {\n    A(Obj", "ect a) throws) E {", "\n        super(a);\n    }\n}\n", "ect a) throws"),
        ("rust", "fn f() {\n    let x = g(", "a]);", "\n    h();\n}\n", ""),
    ],
)
def test_a_broken_text_is_cut_where_something_joins_the_document_without_it(language, prefix, middle, suffix, kept):
    """The document has an error without it, too, as its line is not written yet."""
    assert opened(prefix, suffix, language).longest_passing_cut(middle.encode()) == len(kept)


def test_a_cut_never_adds_errors_to_a_sound_document():
    constraint = opened("def f():\n    pass\n", "def g():\n    pass\n")
    assert constraint.longest_passing_cut(b"if x:\n") == 0
    assert constraint.longest_passing_cut(b"y = 1\nif x:\n") == len(b"y = 1\n")


def test_a_sound_completion_stays_whole_in_a_document_that_is_broken_after_the_cursor():
    constraint = opened("x = ", "\ny = ]\n")
    assert constraint.longest_passing_cut(b"f(1)") == len(b"f(1)")


def test_the_joined_parse_cuts_without_an_acceptor():
    off = GrammarConstraint(GRAMMARS, "javascript", "let = = 2;\nfoo(", ");\n", STRICT)
    assert off.off_reason is OffReason.BROKEN_BEFORE_CURSOR
    assert off.longest_passing_cut(b"a, b") == 4
    assert off.longest_passing_cut(b"a))) b }}") == 0


class CountedCalls(Parsing):
    """Counts the calls of functions that parse."""

    count = 0

    def __call__(self, function, /, *arguments, **named):
        self.count += 1
        return super().__call__(function, *arguments, **named)


@pytest.mark.parametrize(
    ("language", "prefix", "missing"),
    [("kotlin", "fun f() {\n    ", Missing.ANYTHING), ("c", '    {"a", f, ROW},\n    {"b",', Missing.NOTHING)],
    ids=["no acceptor, anything may be missing", "not understood"],
)
def test_where_every_completion_passes_none_is_parsed(language, prefix, missing):
    calls = CountedCalls()
    constraint, middle = GrammarConstraint(GRAMMARS, language, prefix, "\n", STRICT, "", calls), b" ) g("
    opening = calls.count
    assert constraint.growing_cut(middle, 0, missing) == len(middle)
    assert constraint.longest_passing_cut(middle, 0, missing) == len(middle)
    assert calls.count == opening


def test_nothing_is_cut_where_tree_sitter_does_not_understand_the_document():
    rows_to_include = '    {"a", f, ROW},\n    {"b",'
    off = GrammarConstraint(GRAMMARS, "c", rows_to_include, "\n", STRICT)
    assert off.off_reason is OffReason.BROKEN_BEFORE_CURSOR
    assert off.longest_passing_cut(b" g, ROW},") == 9
    assert off.growing_cut(b" g, ROW},", 0) == 9


def test_python_errors_that_the_grammar_accepts_are_cut():
    constraint = opened("", "\nz = 1\n")
    assert constraint.longest_passing_cut(b"x = 1\nf(a=1, 2)") == len(b"x = 1\n")


def test_an_unfinished_completion_is_shown_up_to_the_first_error_in_the_document():
    constraint = opened("x = 1\n", "\ny = 2\n")
    assert constraint.growing_cut(b"a = b", 0) == len(b"a = b")
    assert constraint.growing_cut(b"a = bc", 5) == 5  # one more byte does not cause a parse
    assert constraint.growing_cut(b"a = bc + something_long", 5) == len(b"a = bc + something_long")
    broken = b"a = bc + something_long\nfor"
    assert constraint.growing_cut(broken, 23) == len(b"a = bc + something_long")


def test_the_healed_run_is_part_of_the_completion():
    constraint = opened("x = fo", "(1)\n", healed="o")
    assert constraint.longest_passing_cut(b"oo") == 2


@pytest.mark.parametrize(
    "line",
    ["        y = 1\n    z", "  z = 1\nx", "    y = 1\n   z"],
    ids=["over-indented", "dedent to no level", "between two levels"],
)
def test_a_python_line_outside_the_columns_of_its_blocks_is_rejected(line):
    constraint = opened("def f():\n    x = 1\n")
    assert constraint.advance(constraint.root, line.encode()) is None


def test_a_python_block_needs_a_body():
    constraint = opened("if x:\n")
    assert constraint.advance(constraint.root, b"y") is None
    assert constraint.advance(constraint.root, b"  y") is not None


def test_a_window_that_starts_inside_a_block_can_dedent_out_of_it():
    constraint = opened("    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n")
    assert constraint.advance(constraint.root, b"\nclass B:\n    pass\n") is not None


def test_after_a_keystroke_only_the_cursors_line_is_read_again(monkeypatch):
    prefix = "".join(f"def f{i}(a):\n    return a + {i}\n\n" for i in range(300))
    opened(prefix + "x = ")
    read, pieces = Acceptor.read, []
    monkeypatch.setattr(Acceptor, "read", lambda self, at, data: pieces.append(data) or read(self, at, data))
    opened(prefix + "x = (")
    assert b"".join(pieces) == b"x = ("


def test_the_search_for_an_accepted_token_is_bounded():
    constraint = opened("x = 1", language="c")
    rejected = [constraint.advance(constraint.root, b"] %d" % number) for number in range(3000)]
    assert not any(rejected)
    assert len(constraint.root.next_by_bytes) == 1000


def test_tried_guesses_leave_room_for_the_models_own_tokens():
    constraint = opened("x = 1", language="c")
    for number in range(3000):
        constraint.advance(constraint.root, b"] %d" % number, is_guess=True)
    assert constraint.advance(constraint.root, b" + 1;") is not None


def test_tokens_tried_in_one_request_do_not_count_in_the_next():
    for _ in range(3):
        constraint = opened("y = 0;\n", language="javascript")
        for number in range(500):
            constraint.advance(constraint.root, b")%d" % number)
        assert constraint.advance(constraint.root, b"x = 1") is not None


def test_a_guess_beyond_the_grammars_bounds_is_no_token_and_ends_nothing():
    """A draft that the model may never take must not change what the grammar allows afterwards."""
    constraint = opened("int a;\n/* " + "word " * 13_100, "\nint b;\n", "c")
    assert constraint.advance(constraint.root, b"x" * 60, is_guess=True) is None
    assert constraint.off_reason is None
    closed = constraint.advance(constraint.root, b"*/ int")
    assert constraint.advance(closed, b" ) ) (") is None
    assert constraint.advance(constraint.root, b"x" * 60) is constraint.root
    assert constraint.off_reason is OffReason.BOUND
