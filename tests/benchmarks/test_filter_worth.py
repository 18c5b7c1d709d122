"""benchmarks.filter_worth counts the documents that a rule mends and harms, and names a rule that mends none."""

from benchmarks.filter_worth import report, worths
from benchmarks.quality.tasks import Task
from benchmarks.replay_answers.answers import Answer, Token
from completion.ending.decision import RULES


def asked(id_: str, language: str, prefix: str, suffix: str, reference: str, *tokens: str) -> tuple[Task, Answer]:
    """Return a place with a recorded answer that the model ended itself."""
    task = Task(id_, "mid_line", language, "", prefix, suffix, reference)
    rows = tuple(Token(number, data, -0.01) for number, data in enumerate(tokens))
    return task, Answer(id_, "m", "", rows, "stop_token", len(rows), -0.01 * len(rows), (), 0.1)


def test_a_rule_mends_what_is_worse_without_it_in_its_language():
    places = [
        asked("a", "python", "x = f(", ")\ny = 2\n", "1", "1", ")", "\n", "y = 2", "\n"),
        asked("b", "crystal", "def f\n  g(", ")\nend\n", "1", "1", ")"),  # which no grammar cuts
        asked("c", "go", "package a\n\nvar x = ", "\n", "1", "1"),
    ]
    found = list(worths(places, invoked=True))
    assert [rule.name for rule in found] == [*(rule.__name__ for rule in RULES), "grammar"]
    figures = report(found)
    overlap = figures["rules"]["resync"]["languages"]
    assert overlap["crystal"] == {"mended": 1, "harmed": 0}
    assert "go" not in overlap
    assert "resync" not in figures["without_benefit"]
    assert "code_fence" in figures["without_benefit"]
