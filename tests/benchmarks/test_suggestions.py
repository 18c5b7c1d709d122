"""The benchmark of several suggestions computes its figures as documented."""

from benchmarks.quality.scoring import Score
from benchmarks.quality.tasks import Task
from benchmarks.suggestions.report import Answer, figures, shared_start

TASK = Task("a", "single_line", "python", "a.py", "x = ", "\n", "total + 1")
RIGHT, WRONG = Score(1.0, 1.0, 1.0), Score(0.0, 0.5, 0.0)


def answer(row, *texts, total_ms=10.0, first_ms=8.0):
    scores = tuple(RIGHT if text == TASK.reference else WRONG for text in texts)
    return Answer(
        TASK, row, texts, scores or (WRONG,), (True,) * len(texts), (0.0,) * len(texts), first_ms, total_ms, 5.0
    )


def test_figures_compare_rows_on_the_same_questions():
    rows = [answer("one", "total - 1"), answer("greedy", "total + 1")]
    rows.append(answer("samples_3", "a", "a", "b", total_ms=30.0))
    for kind, total_ms in (("branches", 13.0), ("superposed", 26.0)):
        rows += [answer(f"{kind}_{k}", "total - 1", "total + 1", total_ms=total_ms) for k in (3, 5)]
    rows += [answer("plain_3", "a", "a", "b", total_ms=52.0), answer("samples_5", "a", total_ms=50.0)]
    found = figures(rows)
    assert found["time_ratio_cached_prompt_k3"] == 1.3
    assert found["branches_time_ratio_k3"] == found["time_ratio_k3"] == 1.2
    assert found["best_of_3_exact_match_gain"] == found["greedy_exact_match"] == 100.0
    assert found["first_exact_match"] == 0.0
    assert found["first_is_one"] == found["distinct_share"] == found["first_arrival_ratio"] == 1.0
    assert (found["speedup_over_samples"], found["speedup_over_drafted_samples"]) == (4.0, round(30 / 13, 3))
    assert figures(rows, "superposed")["speedup_over_samples"] == 2.0
    assert (found["whole_right_share"], found["shared_right_share"]) == (0.0, 1.0)


def test_a_shared_start_ends_with_a_word():
    assert shared_start(["total + 1", "total - 1"]) == "total "
    assert shared_start(["self.items", "self.index"]) == "self."
    assert shared_start(["abc", "abc"]) == "abc"
    assert shared_start(["value", "valid"]) == ""
