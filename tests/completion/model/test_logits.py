"""Logits rank tokens by value, then by id, on the host and in torch."""

import numpy as np
import pytest
import torch

from completion.model.dense.torch_logits import TorchLogits
from completion.model.logits import DenseLogits, divergence


def test_top_ranks_equal_logits_by_id():
    values = np.random.default_rng(0).integers(0, 50, (5, 1000)).astype(np.float32)  # many equal values
    tokens, best = DenseLogits(values).top(8)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(values, expected, axis=1))


def test_argmax_is_the_lowest_id_among_equals():
    values = np.zeros((2, 700), dtype=np.float32)
    values[1, [600, 300, 650]] = 2.0
    assert DenseLogits(values).argmax().tolist() == [0, 300]


def test_torch_logits_rank_as_dense_logits_do():
    values = np.random.default_rng(1).normal(size=(3, 400)).astype(np.float32)
    values[0, [7, 90]] = 9.0
    tokens, best = TorchLogits(torch.from_numpy(values)).top(8)
    np.testing.assert_array_equal(tokens, DenseLogits(values).top(8)[0])
    np.testing.assert_array_equal(best, DenseLogits(values).top(8)[1])
    assert TorchLogits(torch.from_numpy(values)).argmax().tolist() == DenseLogits(values).argmax().tolist()


def test_the_best_tokens_of_all_rows_leave_the_device_in_one_copy(monkeypatch):
    copies, copy = [], torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.shape) or copy(tensor))
    logits = TorchLogits(torch.randn(5, 1000))
    first = logits.top(8)[0][:, 0]
    np.testing.assert_array_equal(logits.argmax(), first)
    assert logits.log_sum(2) == pytest.approx(DenseLogits(logits.row(2)[None]).log_sum(0), abs=1e-5)
    assert copies == [(5, 18), (1000,)]
    assert logits.row(2)[first[2]] == logits.row(2).max()
    assert copies == [(5, 18), (1000,)]


def test_the_best_tokens_are_sorted_once_for_all_that_ask(monkeypatch):
    logits = TorchLogits(torch.randn(5, 1000))
    tokens, best = logits.top(8)
    monkeypatch.setattr(np, "lexsort", None)  # a second sort would call it
    for count in (8, 3):
        np.testing.assert_array_equal(logits.top(count)[0], tokens[:, :count])
        np.testing.assert_array_equal(logits.top(count)[1], best[:, :count])


def test_divergence_is_zero_for_equal_predictions_and_the_entropy_difference_otherwise():
    even, sure = np.log(np.array([0.5, 0.5])), np.log(np.array([0.9, 0.1]))
    assert divergence([even, sure], [even + 3, sure]) == pytest.approx(0)
    expected = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1)
    assert divergence([even], [sure]) == pytest.approx(expected)
