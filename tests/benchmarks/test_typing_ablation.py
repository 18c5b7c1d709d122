"""The requests of the ablation: each prefix and the missing part of its line are a start of the finished text."""

from benchmarks.typing.scripts import Passage, Script
from benchmarks.typing_ablation import ALL, ROWS, Tally, figures, questions

SCRIPT = Script(
    "id", "python", "a.py", "a = 1\nold\nb = 2\n", (Passage(5, 0, "\nc = 3\n\nd"), Passage(15, 3, "new_name")), 16
)
FINISHED = "a = 1\nc = 3\n\nd\nnew_name\nb = 2\n"


def test_each_question_lacks_the_rest_of_its_line():
    asked = list(questions(SCRIPT, 1, 99))
    assert [lacking for _, lacking in asked][:5] == ["c = 3", " = 3", "= 3", " 3", "3"]
    for request, lacking in asked:
        written = request.prefix + lacking
        assert FINISHED.startswith(written)
        assert FINISHED[len(written) :][:1] in ("\n", "")


def test_no_request_where_the_line_is_complete_and_none_above_the_maximum():
    lacking = [lacking for _, lacking in questions(SCRIPT, 1, 99)]
    assert all(one.strip() for one in lacking)
    assert len(list(questions(SCRIPT, 2, 3))) == 3


def test_figures_compare_each_part_with_all():
    tallies = {row: Tally([10.0, 20.0], [20.0], 2.0, 2, 1, 2, 0) for row in ROWS}
    tallies["no drafts"].cpu_s, tallies["no grammar"].broken = 3.0, 1
    found = figures(tallies)
    assert found["drafts_cpu_ratio"] == 1.5
    assert (found["grammar_broken_with"], found["grammar_broken_without"]) == (0, 1)
    assert found["alternatives_right_won"] == 1
    assert next(iter(ROWS)) == ALL
