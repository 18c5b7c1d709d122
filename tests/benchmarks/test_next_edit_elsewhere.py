"""The benchmark of next edits in other files than the edited one."""

from benchmarks.next_edit.__main__ import labelled
from benchmarks.next_edit.choosing import Way, by_rules, constant
from benchmarks.next_edit.elsewhere import pairs, summary
from benchmarks.next_edit.renames import run
from completion.next_edit.gate import SHOWN_FROM, Gate

DEFINED, USED = "def {0}(path):\n    return path\n", "from store import {0}\n\n\nprint({0}('a'))\n"
SHIPPED = Way(by_rules(Gate.shipped()), constant(SHOWN_FROM))


def record(path: str, text: str, new: str, source: str = "shop==1->2") -> dict[str, str]:
    before, after = (text.format(name) for name in ("load_all", new))
    name = f"{source}:{path}"
    return {"id": name, "source": source, "language": "python", "path": path, "before": before, "after": after}


def figures(*records: dict[str, str]) -> dict[str, float | None]:
    replays = list(pairs(records))
    return summary(replays, list(labelled(replays)), SHIPPED)


def test_what_a_release_renames_in_another_file_is_covered_and_the_finished_file_is_quiet():
    found = figures(record("store.py", DEFINED, "read_all"), record("main.py", USED, "read_all"))
    assert (found["shown_other_files"], found["precision_other_files"]) == (2, 1.0)
    assert found["coverage_other_files"] == round(2 / 3, 4), "the definition does not follow from its uses"
    assert found["quiet_other_files"] == 1.0


def test_what_a_release_renames_otherwise_in_another_file_is_wrong():
    found = figures(record("store.py", DEFINED, "read_all"), record("main.py", USED, "find_all"))
    assert (found["precision_other_files"], found["coverage_other_files"]) == (0.0, 0.0)


def test_files_of_different_releases_are_no_pairs():
    assert figures(record("a.py", DEFINED, "b"), record("b.py", USED, "b", "other==1->2"))["pairs_of_files"] == 0


def test_renames_counts_the_files_of_which_all_uses_are_shown():
    context = [{"path": "shop/store.py", "text": DEFINED.format("load_all")}]
    used = {"prefix": USED.format("load_all"), "reference": "", "suffix": "", "language": "python"}
    comment = used | {"suffix": "\n# load_all\n"}
    records = [{"symbol": "load_all", "context": context} | each for each in (used, comment)]
    assert run(records) == {"files": 2, "complete": 1, "lines": 5, "right": 4, "wrong": 0}
