"""The choice of a model: described machines, what was measured, and what is installed."""

import platform
from dataclasses import replace

import pytest

from benchmarks.model_choice.machines import MACHINES
from completion.errors import ModelError
from completion.model.choice import KNOWN, Machine, Measured, choose, is_installed, measured_folder, measured_here
from completion.model.store.converted_models import Source, convert_once
from completion.model.store.fetched_packages import folder_of
from completion.model.store.packaged_models import LARGER_PACKAGE
from completion.progress import silent

SMALL, LARGER, THREE, SEVEN = KNOWN
GOOD = Measured(SMALL.name, "q4", "cpu", 0, tuple(8.0 + 2 * row for row in range(16)), platform.node())
ROOMY = Machine(32_000_000_000)

EXPECTED = {
    "nothing measured yet: a first start": (SMALL, None),
    "laptop of 2015: two cores, AVX2": (SMALL, None),
    "two cores of a server": (SMALL, None),
    "laptop with eight cores": (LARGER, None),
    "the same, on battery": (SMALL, None),
    "the same, while a compiler runs": (SMALL, None),
    "the same, 1.2 GB free": (SMALL, None),
    "Apple M2 Pro": (THREE, None),
    "the same, default model alone": (SMALL, THREE),
    "workstation with sixteen cores": (LARGER, None),
    "server with 64 cores": (SEVEN, None),
    "graphics card with 8 GB": (THREE, None),
    "graphics card with 24 GB": (SEVEN, None),
    "the same, after the card was lost": (SMALL, None),
}


def everything(_model):
    return True


def only(*models):
    return lambda model: model in models


@pytest.mark.parametrize("described", MACHINES, ids=lambda described: described.what)
def test_a_described_machine_gets_the_largest_model_that_is_quick_enough_there(described):
    choice = described.choice()
    assert (choice.model, choice.offer) == EXPECTED[described.what]
    assert choice.reason.endswith(".")


def test_a_larger_budget_never_chooses_a_smaller_model():
    chosen = [choose(ROOMY, [GOOD], everything, budget).model.weights for budget in (1, 20, 40, 80, 160, 320, 640)]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (SMALL.weights, SEVEN.weights)


def test_battery_load_and_a_lost_gpu_choose_smaller_models_and_say_so():
    budget = 1.1 * GOOD.first_text_ms(LARGER)
    calm = choose(ROOMY, [GOOD], everything, budget)
    assert (calm.model, calm.remark) == (LARGER, "")
    on_battery = choose(replace(ROOMY, saves_battery=True), [GOOD], everything, budget)
    assert on_battery.remark == f"On battery, {SMALL.name} serves in the place of {LARGER.name}."
    busy = choose(replace(ROOMY, load=3.0), [GOOD], everything, budget)
    assert busy.remark == f"While other programs are busy, {SMALL.name} serves in the place of {LARGER.name}."
    on_gpu = Measured(SMALL.name, "plain", "cuda", 0, (0.5,) * 16)
    lost = choose(ROOMY, [GOOD, on_gpu], everything, budget)
    assert lost.remark == f"Without the GPU, {LARGER.name} serves in the place of {SEVEN.name}."
    assert [each.model for each in (on_battery, busy, lost)] == [SMALL, SMALL, LARGER]
    assert on_battery.offer is busy.offer is None


def test_the_model_that_serves_stays_where_its_forecast_is_at_the_edge_of_the_budget():
    edge = 1.02 * GOOD.first_text_ms(LARGER)
    assert choose(ROOMY, [GOOD], everything, edge, serving=SMALL.name).model is SMALL
    assert choose(ROOMY, [GOOD], everything, edge, serving=LARGER.name).model is LARGER
    assert choose(ROOMY, [GOOD], everything, 2 * edge, serving=SMALL.name).model is not SMALL


def test_what_was_measured_for_a_model_counts_more_than_a_forecast():
    slow = replace(GOOD, model=LARGER.name, costs_ms=(500.0,) * 16)
    assert choose(ROOMY, [GOOD], only(SMALL, LARGER), 120).model is LARGER
    assert choose(ROOMY, [slow, GOOD], only(SMALL, LARGER), 120).model is SMALL


def test_only_what_was_measured_with_the_same_threads_device_and_form_counts():
    for other in (replace(GOOD, threads=1), replace(GOOD, device="cuda"), replace(GOOD, form="int8")):
        choice = choose(ROOMY, [other], only(SMALL, LARGER), 120, "q4")
        assert (choice.model, dict(choice.forecasts_ms)) == (SMALL, {})


def test_a_model_that_is_not_installed_is_offered_and_does_not_serve():
    choice = choose(ROOMY, [GOOD], only(SMALL), 150)
    assert choice.model is SMALL
    assert choice.offer is not None
    assert choice.offer.weights > SMALL.weights
    assert choose(ROOMY, [GOOD], everything, 150).offer is None


def test_only_measurements_of_this_machine_and_of_known_models_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    assert measured_here() == []
    measured_folder().mkdir()
    for number, one in enumerate((replace(GOOD, machine="another"), GOOD, replace(GOOD, model="other"))):
        (measured_folder() / f"{number}.json").write_text(one.to_json())
    (measured_folder() / "damaged.json").write_text('{"costs_ms": [1')
    (measured_folder() / "another.json").write_text("[1.0, 2.0]")
    assert measured_here() == [GOOD]


def test_a_model_is_installed_once_its_conversion_is_complete(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    source = Source(LARGER_PACKAGE.name, LARGER_PACKAGE.sha256)
    assert not is_installed(LARGER)

    def stop(_folder, _progress):
        raise ModelError("interrupted")

    with pytest.raises(ModelError):
        convert_once(source, stop, silent)
    assert not is_installed(LARGER)
    convert_once(source, lambda folder, _progress: str((folder / "config.json").write_text("{}")), silent)
    assert is_installed(LARGER)


def test_a_model_is_installed_once_its_last_package_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLINE_CACHE_DIR", str(tmp_path))
    folder = folder_of(LARGER_PACKAGE)
    folder.mkdir(parents=True)
    for distribution, _ in LARGER_PACKAGE.parts:
        assert not is_installed(LARGER)
        (folder / f"{distribution}-{LARGER_PACKAGE.version}.whl").touch()
    assert is_installed(LARGER)
