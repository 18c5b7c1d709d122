"""The rows of benchmarks.drafting: what they have seen before a request, and how they are paired."""

import json
from copy import copy

import numpy as np
import pytest

from benchmarks.drafting import __main__ as drafting
from benchmarks.drafting.records import Case, read_cases
from completion.request import CompletionRequest, GrammarMode, WorkspaceFile, WorkspaceUpdate
from drafting.calibration import NAMES


def case(name):
    request = CompletionRequest(
        prefix=f"def {name}(x):\n    return ",
        suffix="\n",
        language="python",
        document=name,
        workspace=name,
        max_tokens=12,
        grammar=GrammarMode.OFF,
        filters=False,
    )
    return Case("suite", "python", request, WorkspaceUpdate(name, (WorkspaceFile("a.py", "x = 1\n" * 20),)))


class _Noting(drafting.SwitchedDrafters):
    """Keeps a copy of the recycled tokens that each session of all drafters together starts with."""

    def __init__(self, *arguments):
        self.recycled = []
        super().__init__(*arguments)

    def session(self, prompt, workspace="", tail=(), *, single_line=False):
        if self.current == drafting.COMBINED:
            self.recycled.append([array.copy() for array in self.rows[self.current].recycling(workspace)])
        return super().session(prompt, workspace, tail, single_line=single_line)


@pytest.fixture(scope="module")
def bench(tiny_model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drafting, "SwitchedDrafters", _Noting)
        made = drafting.Bench(tiny_model)
    drafting.run(made, [case(name) for name in "abcdef"], 2)
    return made


def test_every_request_starts_with_what_any_workspace_recycles(bench):
    first, *others = bench.drafters.recycled
    assert len(others) == 11
    for recycled in others:
        assert all(np.array_equal(one, other) for one, other in zip(first, recycled, strict=True))


def test_each_row_is_paired_with_plain_decoding_of_the_same_request(bench):
    for row, count in ((drafting.COMBINED, 12), (drafting.COLD, 3)):
        pairs = bench.pairs(row)
        assert len(pairs) == count
        assert all(
            (plain.row, plain.case, plain.sampled) == (drafting.PLAIN, drafted.case, drafted.sampled)
            for plain, drafted in pairs
        )
    found = drafting.summary(bench)
    assert found["completions"] == 12
    assert found["identical_share"] == 1.0
    assert [*found["rows"]] == [*drafting.ROWS]
    assert [*found["adds"]] == [*NAMES]


def test_rows_differ_by_their_drafters_only(bench):
    made = bench.drafters.rows
    alone = [NAMES[np.flatnonzero(made[row].enabled)[0]] for row in drafting.LOOKUPS.values()]
    assert alone == [*drafting.LOOKUPS]
    assert all((~made[row].enabled).sum() == 1 for row in drafting.WITHOUT.values())
    bench.drafters.workspace("key").update("path", [1, 2, 3, 4])
    assert all(drafters.workspace("key").size_bytes > 0 for drafters in made.values())
    bench.drafters.close_workspace("key")


def test_all_drafters_together_are_what_is_compared_with_transformers_afterwards(bench):
    assert bench.drafters.current == drafting.COMBINED


def test_a_figure_without_completions_is_none(bench):
    empty = copy(bench)
    empty.results, empty.gaps = [], []
    found = drafting.summary(empty)
    assert found["completions"] == 0
    for name in ("speedup", "median_speedup", "worst_suite_slowdown", "drafting_ms_per_step"):
        assert found[name] is None
    drafting.print_table(empty)


def test_records_without_other_files_and_sources_are_cases(tmp_path):
    hole = {"id": "a", "language": "go", "prefix": "x := ", "suffix": "", "reference": "1"}
    change = {"id": "b", "language": "c", "before": "", "after": "int a;\r\n"}
    names = {"humaneval_infilling_even": hole, "repo_context": hole, "release_replay": change}
    for name, record in names.items():
        (tmp_path / f"open_{name}.jsonl.gz").write_text(json.dumps(record))
    cases = read_cases(10, str(tmp_path))
    assert {(case.suite, case.request.context) for case in cases} == {
        ("humaneval", ()), ("repository", ()), ("release", ())
    }  # fmt: skip
