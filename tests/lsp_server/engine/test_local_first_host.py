"""End to end: a real client, server and host with a local model, beside an emulated vLLM that dies in mid-stream."""

from __future__ import annotations

import pytest

from tests.completion.remote.test_local_first import PacedVllm

TEXT = "def add(first, second):\n    return "


@pytest.mark.timeout(300)
async def test_while_the_server_dies_suggestions_come_without_an_error_and_the_status_says_it(
    start_client, tiny_qwen2, tiny_model
):
    vllm = PacedVllm(tiny_model)
    try:
        client = await start_client(
            model=str(tiny_qwen2),
            backend="fp32",
            streaming=True,
            max_tokens=8,
            gate="off",
            grammar="off",
            engine_url=vllm.url,
            engine_kind="vllm",
            engine_mode="local_first",
            engine_send=["*"],
        )
        status = await client.ready(timeout_s=200)
        assert status.kind == "ready", status.message
        assert "The local model answers first" in status.message
        before, number = len(client.statuses), 0
        vllm.dies_after = 1
        while not any("The local model goes on alone." in status.message for status in client.statuses):
            number += 1
            uri = f"file:///nowhere/{number}/sums.py"
            client.open(uri, TEXT)
            assert await client.complete(uri, 1, 11, invoked=True)
        assert vllm.prompts
        assert all(status.kind in ("ready", "busy") for status in client.statuses[before:])
        vllm.dies_after = None
        while "The local model goes on alone." in client.statuses[-1].message:
            number += 1
            uri = f"file:///nowhere/{number}/sums.py"
            client.open(uri, TEXT)
            assert await client.complete(uri, 1, 11, invoked=True)
    finally:
        vllm.close()
