"""Step costs are measured once for a model and a machine."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from completion.decoding.step_costs import keep_quicker_costs, load_or_measure_costs, measure_costs
from completion.model.choice import Measured


@pytest.fixture
def costs_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    return tmp_path / "measured"


def test_the_second_start_uses_the_costs_that_the_first_one_saved(costs_folder, tiny_model):
    first = load_or_measure_costs(tiny_model, 8)
    [path] = costs_folder.iterdir()
    saved = Measured.from_json(path.read_text())
    path.write_text(replace(saved, costs_ms=tuple(float(1 + size) for size in range(9))).to_json())
    second = load_or_measure_costs(tiny_model, 8)
    assert first.max_nodes == second.max_nodes == 8
    assert second.costs_ms.tolist() == [float(1 + size) for size in range(9)]


@pytest.mark.parametrize(
    "damage", ["", "nonsense", "[]", '{"costs_ms": [1.0, 2.0]}', "{}", '{"costs_ms": [0.0, 1, 1, 1, 1, 1, 1, 1, 1]}']
)
def test_the_costs_in_a_damaged_file_are_measured_again(costs_folder, tiny_model, damage):
    load_or_measure_costs(tiny_model, 8)
    [path] = costs_folder.iterdir()
    path.write_text(damage)
    assert load_or_measure_costs(tiny_model, 8).costs_ms.min() > 0
    assert path.read_text() != damage


def test_costs_of_a_busy_start_give_way_to_quicker_steps_and_never_to_slower_ones(costs_folder, tiny_model):
    costs = load_or_measure_costs(tiny_model, 4)
    [path] = costs_folder.iterdir()
    saved = Measured.from_json(path.read_text())
    path.write_text(replace(saved, costs_ms=(10.0, 11.0, 12.0, 13.0, 14.0)).to_json())
    for step_ms, expected in ((30.0, 10.0), (10.0, 10.0), (2.0, 2.0)):
        costs = load_or_measure_costs(tiny_model, 4)
        for _ in range(40):
            costs.observe(0, step_ms)
        keep_quicker_costs(tiny_model, 4, costs)
        assert Measured.from_json(path.read_text()).costs_ms[0] == pytest.approx(expected, rel=0.1)


def test_each_tree_size_has_its_own_file(costs_folder, tiny_model):
    load_or_measure_costs(tiny_model, 4)
    load_or_measure_costs(tiny_model, 8)
    assert len(list(costs_folder.iterdir())) == 2


def test_each_number_of_threads_has_its_own_file(costs_folder, tiny_model):
    load_or_measure_costs(replace(tiny_model, threads=1), 4)
    load_or_measure_costs(replace(tiny_model, threads=2), 4)
    assert len(list(costs_folder.iterdir())) == 2


class LateLogits:
    """Logits of a device that computes after `score` has returned."""

    def __init__(self, sizes, size):
        self.sizes, self.size = sizes, size

    def argmax(self):
        self.sizes.append(self.size)


def test_a_step_is_timed_until_its_logits_are_there(tiny_model):
    scored, read = [], []

    def score(tokens, _parents, _cache):
        scored.append(len(tokens))
        return LateLogits(read, len(tokens))

    device = SimpleNamespace(new_cache=tiny_model.model.new_cache, prefill=tiny_model.model.prefill, score=score)
    measure_costs(device, 4)
    assert read == scored
    assert set(read) == {1, 2, 3, 4, 5}
