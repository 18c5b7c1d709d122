"""Plugin of pytest that makes each test's threads slow or quick to take turns, by a seed, for some time."""

import math
import os
import random
import sys
import threading
import time
from contextlib import suppress

import pytest

STARVED = 10
"""Niceness of a test's threads that get little time beside busy programs: about a tenth of a processor."""
INTERVALS_S = (1e-5, 0.005, 0.1)
"""Times after which a thread that computes lets another one run, in seconds; Python's own is the middle one."""

UNTIL = pytest.StashKey[float]()


def pytest_addoption(parser):
    group = parser.getgroup("load")
    group.addoption("--load-seed", type=int, default=0, help="of what happens to each test's threads")
    group.addoption("--load-seconds", type=float, default=math.inf, help="after which no test starts")


def pytest_collection_finish(session):
    session.config.stash[UNTIL] = time.monotonic() + session.config.option.load_seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    chance = random.Random(f"{item.config.option.load_seed} {item.nodeid}")
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(chance.choice(INTERVALS_S))
    threading.setprofile(chance.choice((None, starve)))
    try:
        return (yield)
    finally:
        threading.setprofile(None)
        sys.setswitchinterval(usual_s)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if time.monotonic() > item.config.stash[UNTIL]:
        pytest.skip("the time is over")


def starve(_frame, _event, _argument):
    """Lower the priority of a thread that starts; on Linux each thread has its own."""
    sys.setprofile(None)
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STARVED)
