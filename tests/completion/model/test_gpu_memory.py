"""torch's GPU is found, the most exact format that fits is taken, and the parts really take the reckoned memory."""

import dataclasses
import sys
from functools import partial
from types import SimpleNamespace

import pynvml
import pytest
import torch

from benchmarks.gpu.weights import SHAPES, random_weights
from completion.memory import trim_gpu
from completion.model.dense.dense_transformer import DenseTransformer
from completion.model.dense.held_tensors import tensors_in
from completion.model.gpu_memory import (
    CACHE_SLOTS,
    WORKING_BYTES,
    Gpu,
    gpu_of_driver,
    needed_bytes,
    plan_for,
)

GIB = 1 << 30


class Driver:
    """CUDA's driver with a card that is fast, in a machine whose management library lists another one first."""

    def __init__(self, fault=0):
        self.fault = fault

    def cuInit(self, _flags):
        return self.fault

    def cuDeviceGet(self, device, index):
        device._obj.value = 7 + index
        return 0

    def cuDeviceGetName(self, name, size, device):
        name.value = f"fast card {device.value}".encode()[:size]
        return 0

    def cuDeviceTotalMem_v2(self, size, device):
        size._obj.value = 24 * GIB
        return 0


@pytest.fixture
def managed(monkeypatch):
    """Stand for NVIDIA's management library, whose first card drives the screen."""
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "570.86")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda _card: "card of the screen")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda _card: SimpleNamespace(total=2 * GIB))


def without_memory_of_its_own(_card):
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


@pytest.mark.usefixtures("managed")
def test_the_gpu_is_the_one_that_torch_takes_and_not_the_first_of_the_management_library():
    assert gpu_of_driver(Driver()) == Gpu("cuda", "fast card 7", "570.86", 24 * GIB)


@pytest.mark.usefixtures("managed")
def test_a_gpu_that_shares_the_memory_of_the_processor_is_found(monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", without_memory_of_its_own)
    assert gpu_of_driver(Driver()).memory_bytes == 24 * GIB


@pytest.mark.usefixtures("managed")
def test_a_gpu_that_is_hidden_from_programs_is_none():
    assert gpu_of_driver(Driver(fault=100)) is None


@pytest.mark.usefixtures("managed")
def test_a_card_that_its_driver_cannot_use_is_found_so_that_torch_says_why():
    assert gpu_of_driver(Driver(fault=999)) == Gpu("cuda", "card of the screen", "570.86", 2 * GIB)


def test_without_the_management_library_the_driver_is_enough_and_a_faulty_one_has_no_gpu(monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: without_memory_of_its_own(0))
    assert gpu_of_driver(Driver()) == Gpu("cuda", "fast card 7", "", 24 * GIB)
    assert gpu_of_driver(Driver(fault=999)) is None


@pytest.mark.parametrize(
    ("size", "memory_gib", "share", "plan"),
    [
        ("0.5B", 4, 0.8, ("plain", False)),
        ("1.5B", 4, 0.8, ("int8", False)),
        ("7B", 24, 0.8, ("plain", False)),
        ("7B", 16, 0.8, ("int8", False)),
        ("7B", 8, 0.8, ("q4", False)),
        ("7B", 8, 0.75, ("q4", True)),
    ],
)
def test_auto_takes_the_most_exact_format_that_fits(size, memory_gib, share, plan):
    found = plan_for(SHAPES[size], "auto", memory_gib * GIB, share)
    assert (found.weights, found.int8_cache, found.memory_share) == (*plan, share)


def test_no_plan_fits_where_even_the_smallest_format_is_too_large():
    assert plan_for(SHAPES["7B"], "auto", 8 * GIB, 0.5) is None
    assert plan_for(SHAPES["7B"], "bf16", 8 * GIB, 1.0) is None


@pytest.mark.parametrize("kind", ["plain", "int8", "q4"])
@pytest.mark.parametrize("int8_cache", [False, True])
def test_the_reckoned_memory_is_that_of_weights_and_cache(kind, int8_cache):
    architecture = dataclasses.replace(SHAPES["0.5B"], layers=1, vocabulary_size=512)
    weights = random_weights(architecture, torch.bfloat16, "cpu", kind)
    store = DenseTransformer(architecture, weights, int8_cache=int8_cache).store()
    store.resize(CACHE_SLOTS)
    parts = weights.layers, weights.embeddings, weights.head  # the last two may be one
    taken = sum(each.nbytes for part in (*parts, *store.tensors.values()) for each in tensors_in(part))
    reckoned = needed_bytes(architecture, kind, int8_cache=int8_cache) - WORKING_BYTES
    assert taken == pytest.approx(reckoned, rel=0.02)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_freed_memory_of_a_gpu_in_use_is_returned(monkeypatch, kind):
    returned, used = [], {kind}
    libraries = {
        name: SimpleNamespace(empty_cache=partial(returned.append, name), is_initialized=lambda: "cuda" in used)
        for name in ("cuda", "mps")
    }
    mps = SimpleNamespace(is_available=lambda: "mps" in used)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**libraries, backends=SimpleNamespace(mps=mps)))
    trim_gpu()
    used.clear()
    trim_gpu()
    monkeypatch.delitem(sys.modules, "torch")
    trim_gpu()
    assert returned == [kind]
