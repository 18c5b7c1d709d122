"""The figures of benchmarks.families."""

from benchmarks.families.__main__ import largest


def test_a_family_without_a_figure_leaves_none_for_all():
    rows = [{"own_forward_pass": True, "logit_difference": 0.1}, {"own_forward_pass": True, "logit_difference": 0.3}]
    assert largest(rows, "logit_difference") == 0.3
    assert largest([*rows, {"own_forward_pass": False}], "logit_difference") is None
