"""What edits teach, and where it applies."""

import pytest

from completion.edits import Diagnostic, LineEdit
from completion.errors import CancelledError
from completion.next_edit.candidates import MAX_EDITS, candidates
from completion.next_edit.rewrites import REPORTED
from completion.next_edit.taught_rewrites import rewrites


def proposed(edit: tuple[str, str], *lines: str) -> set[tuple[str, str]]:
    """Return what becomes of the other lines after a line was changed."""
    old, new = edit
    found = candidates([new, *lines], [LineEdit(0, (old,), (new,))])
    return {(candidate.old[0], "\n".join(candidate.new)) for candidate in found}


@pytest.mark.parametrize(
    ("edit", "line", "expected"),
    [
        (("import zstd", "import zstandard"), "x = zstd.open(zstd)", "x = zstandard.open(zstandard)"),
        (("a: Optional[str]", "a: str | None"), "b: Optional[list[int]] = 1", "b: list[int] | None = 1"),
        (("a: Union[str, Path]", "a: str | Path"), "b: Union[int, None]", "b: int | None"),
        (("f(self.port or 443)", "f(port)"), "g(self.port or 443)", "g(port)"),
        (
            ("ups.origin = processOrigin(ups.origin)", "ups.origin = style(processOrigin, ups.origin)"),
            "  ups.shape = processShape(ups.shape)",
            "  ups.shape = style(processShape, ups.shape)",
        ),
        (("add(new, doc.strip(), on)", "add(new, doc, on)"), "add(all, doc.strip(), on)", "add(all, doc, on)"),
    ],
)
def test_an_edit_is_proposed_for_lines_like_the_edited_one(edit: tuple[str, str], line: str, expected: str) -> None:
    assert (line, expected) in proposed(edit, line)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (("count = 1", "total = 1"), "discount = counter"),
        (("x = load(path)", "x = await load(path)"), "y = await load(path)"),
        (("return a", "return b"), "return c"),
        (("a = Optional[str]", "a = str | None"), "b = Optional[str"),
    ],
)
def test_other_words_finished_lines_and_open_brackets_are_left_alone(edit: tuple[str, str], line: str) -> None:
    assert proposed(edit, line) == set()


def test_a_line_that_was_inserted_is_proposed_after_the_same_line_elsewhere() -> None:
    lines = ["run(a, b)", "log(a, b)", "x", "  run(a, b)"]
    (candidate,) = candidates(lines, [LineEdit(1, (), ("log(a, b)",))])
    assert (candidate.line, candidate.new) == (3, ("  run(a, b)", "  log(a, b)"))


def test_lines_that_were_edited_get_the_edits_that_they_still_lack() -> None:
    lines = ["import zstandard", "x = zstd"]
    edits = [LineEdit(1, ("y = zstd",), ("x = zstd",)), LineEdit(0, ("import zstd",), ("import zstandard",))]
    (candidate,) = candidates(lines, edits)
    assert (candidate.line, candidate.new) == (1, ("x = zstandard",))


def test_a_rule_that_matches_everywhere_proposes_nothing() -> None:
    assert proposed(("if a in b:", "if a not in b:"), *(f"if a in c{number}:" for number in range(50))) == set()


def test_a_diagnostic_that_names_a_replaced_word_refers_to_older_edits_and_to_words_that_are_everywhere() -> None:
    uses = [f"item.price += {number}" for number in range(60)]
    others = [f"value_{number} = 1" for number in range(MAX_EDITS)]
    lines = ["cost: int", *others, *uses]
    rename = LineEdit(0, ("price: int",), ("cost: int",))
    edits = [rename, *(LineEdit(1 + number, (), (line,)) for number, line in enumerate(others))]
    line = len(lines) - 1
    told = [Diagnostic(line, 'Cannot access attribute "price" for class "Item"'), Diagnostic(20, "line too long")]
    assert candidates(lines, [rename]) == candidates(lines, edits) == []
    (candidate,) = candidates(lines, edits, diagnostics=told)
    assert (candidate.line, candidate.new) == (line, ("item.cost += 59",))
    assert REPORTED in candidate.kinds
    everywhere = [Diagnostic(number, "price") for number in range(len(lines))]
    assert len(candidates(lines, edits, diagnostics=everywhere)) == len(uses)
    assert candidates(["cost: int"], [rename], diagnostics=told) == []


def test_the_context_of_an_edit_stays_within_unchanged_text() -> None:
    assert [rewrite.old for rewrite in rewrites("ab + 1, cd", "ab - 1,")] == [("ab", "+")]


def test_a_large_document_is_searched_with_many_checks_for_a_cancellation() -> None:
    lines = ["import zstandard", *(f"value_{number} = {number}" for number in range(10_000)), "x = zstd.open(1)"]
    checks = []
    edits = [LineEdit(0, ("import zstd",), ("import zstandard",))]
    (candidate,) = candidates(lines, edits, lambda: checks.append(1))
    assert candidate.new == ("x = zstandard.open(1)",)
    assert len(checks) > 10_000 // 1_000

    def cancelled() -> None:
        raise CancelledError("nobody waits")

    with pytest.raises(CancelledError):
        candidates(lines, edits, cancelled)


def test_long_lines_of_an_edit_are_compared_with_a_check_before_each_pair() -> None:
    prose = "It reads the next lines of a text, and tells what they mean. " * 4
    old = tuple(f"{number} {prose}" for number in range(12))
    new = tuple(line.replace("a text", "the document") for line in old[1:])
    checks = []
    candidates(new, [LineEdit(0, old, new)], lambda: checks.append(1))
    assert len(checks) > len(old)


def test_no_candidate_takes_the_users_own_edit_back() -> None:
    lines = ["total = price", "x = cost", "y = price"]
    edits = [
        LineEdit(1, ("x = price",), ("x = cost",)),  # taught: price → cost
        LineEdit(0, ("total = cost",), ("total = price",)),  # taught: cost → price
    ]
    assert {(each.line, each.new) for each in candidates(lines, edits)} == {(2, ("y = cost",))}
    deleted = [LineEdit(1, ("log(b, 1)",), ()), LineEdit(2, ("log(c, 1)", "end"), ("end",))]
    inserted = LineEdit(1, (), ("log(a, 1)",))
    found = candidates(["run(a, 1)", "log(a, 1)", "end", "run(a, 1)", "end"], [*deleted, inserted])
    assert all("log(b, 1)" not in each.new for each in found)


def test_a_name_that_moves_to_another_line_of_the_edits_is_renamed() -> None:
    edit = LineEdit(0, ("from compat import brotli, zstd",), ("import brotli", "import zstandard"))
    found = candidates([*edit.new, "x = zstd.open(1)"], [edit])
    assert ("x = zstandard.open(1)",) in {each.new for each in found}


def test_of_words_that_change_together_each_is_renamed_alone() -> None:
    assert ("print(age)", "print(height)") in proposed(("int age = 1;", "double height = 1;"), "print(age)")


def test_a_line_is_inserted_after_a_line_with_other_words_if_it_repeats_them() -> None:
    lines = ["set(alpha, 1)", "log(alpha)", "", "set(beta, 1)", "set(2, alpha)"]
    (candidate,) = candidates(lines, [LineEdit(1, (), ("log(alpha)",))])
    assert (candidate.line, candidate.new) == (3, ("set(beta, 1)", "log(beta)"))
    assert candidates(["set(alpha, 1)", "log(1)", "set(beta, 1)"], [LineEdit(1, (), ("log(1)",))]) == []


@pytest.mark.parametrize(
    ("taught", "line", "wrong", "expected"),
    [
        ("load(one) → load(ctx, one)", "load()", {"load(ctx, )"}, "load(ctx, three)"),
        ("load(one) → load(one, ctx)", "load()", {"load(, ctx)"}, "load(three, ctx)"),
        (
            "one.load() → one.load(ctx)",
            "four.load(sock)",
            {"four.load(sockctx)", "four.load(ctxsock)"},
            "three.load(ctx)",
        ),
    ],
)
def test_an_argument_is_added_only_where_it_is_separated_from_others(taught, line, wrong, expected) -> None:
    old, new = taught.split(" → ")
    pairs = [(old, new), (old.replace("one", "two"), new.replace("one", "two"))]
    lines = [*(after for _, after in pairs), line, old.replace("one", "three")]
    found = candidates(lines, [LineEdit(number, (before,), (after,)) for number, (before, after) in enumerate(pairs)])
    texts = {each.new[0] for each in found}
    assert expected in texts
    assert texts.isdisjoint(wrong)
