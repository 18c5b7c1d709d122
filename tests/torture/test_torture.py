"""Two minutes of every attack, with the same rounds each time; `make torture` goes on for longer with new ones."""

import os

import pytest

from tests.torture.campaign import PARTS, run_campaign

MINUTES = float(os.environ.get("TORTURE_MINUTES", "2"))
SEED = 19


@pytest.mark.torture
@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES + 600)
def test_two_minutes_of_attacks_find_nothing():
    tally = run_campaign(PARTS, 60 * MINUTES, SEED, jobs=2)
    assert [f"{one.what}; {one.replay}" for one in tally.total.findings] == []
    assert all(tally.rounds[part.name] for part in PARTS)
