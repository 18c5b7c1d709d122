"""The event loop of a test: waiting until nothing can go on by itself, and setting its clock forward."""

import asyncio

import pytest


async def settle():
    """Wait until no task can continue without a timer or an outside event."""
    loop = asyncio.get_running_loop()
    while loop._ready:
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


@pytest.fixture
async def pass_time(monkeypatch):
    """Return a coroutine function that advances the event loop's clock, on which all timers depend, by seconds."""
    loop = asyncio.get_running_loop()
    clock, ahead = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead)

    async def later(seconds):
        nonlocal ahead
        ahead += seconds
        turn = loop.create_future()
        loop.call_later(0, turn.set_result, None)  # runs after every timer that is due by now
        await turn
        await settle()

    return later
