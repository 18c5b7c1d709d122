"""Every item of a stage is claimed once, whichever threads arrive; a thread takes neighbours as long as it can."""

import numpy as np
import pytest
from numba import njit

from completion.model.int8.kernels.sizes import COUNTERS
from completion.model.int8.kernels.work_sharing import claim_near
from completion.model.transformer import has_int8_instructions

pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@njit
def next_item(counters, stage, items, thread, ranges):
    return claim_near(counters.ctypes.data, stage, items, thread, ranges)


def claimed(items, ranges, order):
    """Return the items in the order of their claims, by threads that take turns as in `order`."""
    counters, found = np.zeros((2, COUNTERS), np.int64), []
    for thread in order:
        item = next_item(counters, 1, items, thread, ranges)
        if item < items:
            found.append((thread, item))
    assert not counters[0].any()
    return found


@pytest.mark.parametrize("ranges", [1, 2, 3, 8, 24])
@pytest.mark.parametrize("items", [0, 1, 2, 7, 14, 152])
def test_every_item_is_claimed_once_by_threads_in_any_order(items, ranges):
    order = np.random.default_rng(items).integers(0, ranges, 40 * (items + 1))
    found = claimed(items, ranges, [*order.tolist(), *[0] * items])
    assert sorted(item for _, item in found) == list(range(items))


@pytest.mark.parametrize("thread", [0, 1, 3])
def test_a_thread_that_is_alone_claims_every_item(thread):
    found = claimed(14, 4, [thread] * 20)
    assert sorted(item for _, item in found) == list(range(14))


def test_each_thread_claims_neighbours_and_then_what_the_others_left():
    found = claimed(10, 2, [0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1])
    assert [item for thread, item in found if thread == 0] == [0, 1, 2, 3, 4, 7, 8, 9]
    assert [item for thread, item in found if thread == 1] == [5, 6]
