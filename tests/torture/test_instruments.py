"""The clock of deafness finds a deaf event loop, on a busy machine too, and there no loop that gets no processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.tally import Round
from tests.torture.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the times that threads wait are in Linux's /proc")

LOOP, TURNS = (Path(__file__).with_name(f"{name}_process.py") for name in ("deaf", "turns"))


def findings(how, *, is_busy, process=LOOP):
    """Return what is found of a process that is deaf in some way."""
    tally = Round("test", 0, is_busy)
    with World(tally) as world:
        subprocess.run([sys.executable, process, how], env={**os.environ, **world.environment}, check=True)
    return [finding.what for finding in tally.findings]


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize(("how", "kind"), [("computes", "computed"), ("blocks", "blocked")])
def test_a_deaf_event_loop_is_found(how, kind, is_busy):
    assert any(f"event loop {kind if is_busy else 'deaf'} for" in found for found in findings(how, is_busy=is_busy))


def test_on_a_busy_machine_an_event_loop_that_gets_no_processor_is_not_deaf():
    """Its turn takes longer than every bound of deafness."""
    assert findings("starves", is_busy=True) == []


def test_a_job_is_not_deaf_while_it_waits_for_another_that_listens():
    assert findings("listens", is_busy=True, process=TURNS) == []


def test_a_job_that_does_not_listen_in_its_turn_is_found():
    (found,) = findings("computes", is_busy=True, process=TURNS)
    assert "engine's thread: workspace computed for" in found
