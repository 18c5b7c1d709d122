"""The host's replies: streams, errors with codes, health, metrics."""

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest
from httpx_sse import aconnect_sse

from completion.errors import EngineUnavailableError, ModelNotFoundError
from completion.host.server import HostSettings
from completion.host.wire import decode_event, encode
from completion.request import CompletionEvent, CompletionRequest, StopReason
from lsp_server.cli.complete import read_position, request_at
from tests.completion.host.conftest import running_host, until_ready
from tests.completion.host.paced_engine import PacedEngine


def body(prefix: str = "one two", **fields: object) -> dict[str, object]:
    return {"prefix": prefix, "max_tokens": 3, **fields}


async def read_events(client: httpx.AsyncClient, request: dict[str, object], query: str = "") -> list[tuple[str, dict]]:
    async with aconnect_sse(client, "POST", f"/v1/complete{query}", json=request) as source:
        assert source.response.status_code == 200, await source.response.aread()
        return [(event.event, json.loads(event.data)) async for event in source.aiter_sse()]


async def acquire(semaphore: threading.Semaphore) -> None:
    assert await asyncio.to_thread(semaphore.acquire, timeout=60)


async def until_waiting(client: httpx.AsyncClient, count: int) -> None:
    """Return once `count` requests wait for the engine. The host does not announce it, so its metrics are polled.

    A request also waits for a moment before its start and between its steps. So the engine must be paused.
    """
    async with asyncio.timeout(60):
        while f"draftline_queue_length {count}.0" not in (await client.get("/metrics")).text:
            pass


async def running_and_waiting(
    engine: PacedEngine, client: httpx.AsyncClient, permits: int, older: dict[str, object], newer: dict[str, object]
) -> list[asyncio.Task[list[tuple[str, dict]]]]:
    """Send two requests: the older one runs for `permits` steps and then pauses, the newer one waits."""
    engine.permits.release(permits)
    tasks = [asyncio.create_task(read_events(client, older))]
    await acquire(engine.paused)
    tasks.append(asyncio.create_task(read_events(client, newer)))
    await until_waiting(client, 1)
    return tasks


async def test_a_completion_streams_growing_text_and_ends_with_statistics(start_host):
    client = await start_host(PacedEngine())
    events = [decode_event(data) for name, data in await read_events(client, body()) if name == "message"]
    texts = [event.suggestions[0].text for event in events]
    assert texts == [" 0", " 0 1", " 0 1 2", " 0 1 2"]
    assert [event.done for event in events] == [False, False, False, True]
    assert events[-1].stop_reason is StopReason.MAX_TOKENS
    assert events[-1].statistics.generated_tokens == 3
    assert events[-1].suggestions[0].pieces == (("model", " 0 1 2"),)


def test_decoding_an_encoded_event_gives_the_same_event():
    event = CompletionEvent((), done=True, dropped="empty", stop_reason=StopReason.LINE_END)
    assert decode_event(json.loads(encode(event))) == event


def test_a_lone_surrogate_is_encoded_as_a_question_mark():
    assert json.loads(encode(CompletionRequest("a\ud800b")))["prefix"] == "a?b"


async def test_errors_about_invalid_fields_name_the_field_and_never_its_value(start_host):
    client = await start_host(PacedEngine())
    bodies = [
        (body(prefixx="secret-source"), "prefixx"),
        (body(max_tokens="secret-source"), "max_tokens"),
        (body(max_tokens=0), "max_tokens"),
        (body(sampling={"temprature": 1}), "sampling.temprature"),
        (body(layout="upside_down"), "layout"),
        ({"suffix": "no prefix"}, "prefix"),
    ]
    for wrong, name in bodies:
        reply = await client.post("/v1/complete", json=wrong)
        assert reply.status_code == 422, wrong
        assert reply.json()["code"] == "invalid_request"
        assert name in reply.json()["message"]
        assert "secret-source" not in reply.text
    reply = await client.post("/v1/complete", content=b"{nonsense")
    assert reply.status_code == 422


async def test_unknown_addresses_and_methods_get_json_errors(start_host):
    client = await start_host(PacedEngine())
    missing = await client.get("/v2/nothing")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong_method = await client.get("/v1/complete")
    assert (wrong_method.status_code, wrong_method.json()["code"]) == (405, "not_found")


async def test_an_error_of_the_engine_ends_the_stream_with_its_code(start_host):
    client = await start_host(PacedEngine())
    assert await read_events(client, body("too long")) == [
        ("error", {"code": "prompt_too_long", "message": "The prompt is too long. Send less text."})
    ]


async def test_an_unexpected_exception_is_an_internal_error_and_the_host_continues(start_host, caplog):
    client = await start_host(PacedEngine())
    [(name, error)] = await read_events(client, body("crash", suffix="def secret_source(): pass"))
    assert name == "error"
    assert error["code"] == "internal"
    assert "secret_source" not in error["message"]
    assert len(await read_events(client, body())) == 4


async def test_a_request_while_the_model_loads_gets_503_or_waits_if_asked_to(runtime):
    engine, may_load = PacedEngine(), threading.Event()

    def load(progress):
        progress("Converting the model.", 0.25)
        assert may_load.wait(60)
        return engine.load(progress)

    async with running_host(runtime, load, HostSettings()) as client:
        refused = await client.post("/v1/complete", json=body())
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["code"] == "loading"
        assert (await client.post("/v1/workspace", json={"workspace": "w"})).status_code == 202
        waiting = asyncio.create_task(read_events(client, body(), "?wait=1"))
        async with aconnect_sse(client, "GET", "/v1/lease") as lease:
            async for event in lease.aiter_sse():
                health = json.loads(event.data)
                if health["state"] == "loading" and health["percent"] == 25.0:
                    assert health["sentence"] == "Converting the model."
                    may_load.set()
                if health["state"] == "ready":
                    break
        assert len(await waiting) == 4
        for _ in range(2):  # the request and the update
            await acquire(engine.ended)
    assert [update.workspace for update in engine.updates] == ["w"]


async def test_a_model_that_is_loaded_once_the_host_has_stopped_is_not_announced(runtime, caplog):
    """The executor that would be used then has ended, and a lease must not see a host that stops become ready."""
    engine, may_load = PacedEngine(), threading.Event()
    caplog.set_level("INFO", "completion.host.server")

    def load(progress):
        assert may_load.wait(60)
        return engine.load(progress)

    async with running_host(runtime, load, HostSettings()) as client:
        assert (await client.get("/health")).json()["state"] == "loading"
    [loading] = [thread for thread in threading.enumerate() if thread.name == "engine"]
    may_load.set()
    await asyncio.to_thread(loading.join)
    assert "Listening" in caplog.text
    assert "Ready" not in caplog.text


async def test_a_model_that_fails_to_load_is_reported_with_code_and_message(runtime):
    def load(_progress):
        raise ModelNotFoundError("No source has the model. Install draftline[default-model].")

    async with running_host(runtime, load, HostSettings()) as client:
        [(name, error)] = await read_events(client, body(), "?wait=1")
        assert (name, error["code"]) == ("error", "model_not_found")
        refused = await client.post("/v1/complete", json=body())
        assert refused.status_code == 503
        assert "Install draftline[default-model]" in refused.json()["message"]
        assert (await client.get("/health")).json()["state"] == "error"


async def test_alternatives_are_cut_short_when_another_documents_request_waits(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    many, one = body(document="a", max_tokens=1, suggestions=16), body(document="b", max_tokens=1)
    older, newer = await running_and_waiting(engine, client, 2, many, one)
    engine.permits.release(100)
    last = decode_event((await older)[-1][1])
    assert last.done
    assert last.suggestions[0].text == " 0"
    assert len(last.suggestions) < 16
    assert decode_event((await newer)[-1][1]).done


async def test_two_commands_that_complete_one_file_do_not_end_each_other(start_host, tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    document = request_at(read_position(f"{path}:1:1")).document
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    both = [body(document=document, max_tokens=3)] * 2
    answers = await running_and_waiting(engine, client, 1, *both)
    engine.permits.release(10)
    assert [decode_event((await each)[-1][1]).suggestions[0].text for each in answers] == [" 0 1 2"] * 2


async def test_a_newer_request_of_the_same_document_supersedes_the_older_one(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    long, short = body(document="d", max_tokens=100), body(document="d", max_tokens=1)
    older, newer = await running_and_waiting(engine, client, 1, long, short)
    engine.permits.release(10)
    last = decode_event((await older)[-1][1])
    assert (last.done, last.dropped) == (True, "superseded")
    assert decode_event((await newer)[-1][1]).stop_reason is StopReason.MAX_TOKENS


async def test_requests_of_other_documents_wait_in_order_and_too_many_get_429(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine, HostSettings(queue_limit=2))
    running = asyncio.create_task(read_events(client, body(document="a", max_tokens=1)))
    await acquire(engine.began)
    waiting = []
    for count, name in enumerate("bc", start=1):
        waiting.append(asyncio.create_task(read_events(client, body(document=name, max_tokens=1))))
        await until_waiting(client, count)
    refused = await client.post("/v1/complete", json=body(document="e"))
    assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
    engine.permits.release(3)
    for task in (running, *waiting):
        assert decode_event((await task)[-1][1]).done
    assert engine.started == ["a", "b", "c"]


async def test_closing_the_stream_frees_the_engine_within_one_step(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    async with client.stream("POST", "/v1/complete", json=body(max_tokens=1000)) as reply:
        engine.permits.release()
        async for _ in reply.aiter_lines():
            break
    async with asyncio.timeout(60):
        while 'busy":true' in (await client.get("/health")).text:
            pass  # until the host notices the closed connection; no step is permitted meanwhile
    steps = engine.steps
    engine.permits.release()
    await acquire(engine.ended)
    assert engine.steps <= steps + 1
    engine.permits.release(3)
    assert decode_event((await read_events(client, body(max_tokens=1)))[-1][1]).done


@pytest.mark.parametrize(
    "where",
    [
        {"document": "b"},
        {"document": "a", "prefix": "import zstandard\r\n\r\nx = zstd"},
        {"document": "a", "prefix": "import os\n\nimport zstandard\n\nx = zstd", "suffix": ".open(1)"},
    ],
    ids=["another document", "the same text", "the same cell below another one"],
)
async def test_a_completion_interrupts_a_request_for_next_edits_which_is_answered_after_it(start_host, where):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    edit = {"line": 0, "old": ["import zstd"], "new": ["import zstandard"]}
    wanted = {"lines": ["import zstandard", "", "x = zstd.open(1)"], "edits": [edit], "document": "a"}
    asked = asyncio.create_task(client.post("/v1/next-edit", json=wanted))
    await acquire(engine.began)
    completed = asyncio.create_task(read_events(client, body(max_tokens=1, **where)))
    await until_waiting(client, 1)
    engine.permits.release(3)
    assert decode_event((await completed)[-1][1]).done
    found = (await asked).json()["edits"]
    assert [each["new"] for each in found] == [["x = zstandard.open(1)"]]


@pytest.mark.parametrize(
    "prefix",
    [
        "import zstandard\n\nx = zstd.open(1)k",
        "import zstandard\n\n\nx",
        "import os\n\nimport zstandard\n\nx = zstd.open(1)k",
    ],
)
async def test_the_completion_after_a_key_supersedes_a_request_for_next_edits_of_the_text_before(start_host, prefix):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    edit = {"line": 0, "old": ["import zstd"], "new": ["import zstandard"]}
    wanted = {"lines": ["import zstandard", "", "x = zstd.open(1)"], "edits": [edit], "document": "a"}
    asked = asyncio.create_task(client.post("/v1/next-edit", json=wanted))
    await acquire(engine.began)
    completed = asyncio.create_task(read_events(client, body(prefix, document="a", max_tokens=1)))
    await until_waiting(client, 1)
    engine.permits.release(3)
    assert decode_event((await completed)[-1][1]).done
    assert (await asked).json()["edits"] == []
    metrics = (await client.get("/metrics")).text
    assert 'draftline_requests_total{kind="next_edit",outcome="superseded"} 1.0' in metrics


async def test_a_completion_supersedes_preparations_and_runs_before_workspace_updates(start_host):
    engine = PacedEngine(gated=True)
    engine.gated_files = True
    client = await start_host(engine)
    assert (await client.post("/v1/prepare", json=body(document="a"))).status_code == 202
    await acquire(engine.readying)
    update = {"workspace": "w", "changed": [{"path": "a.py", "text": "x = 1\n", "open": True}], "removed": ["b.py"]}
    assert (await client.post("/v1/workspace", json=update)).status_code == 202
    running = asyncio.create_task(read_events(client, body(document="b", max_tokens=1)))
    await until_waiting(client, 2)
    engine.permits.release(2)  # the end of the preparation's step, and the completion's step
    assert decode_event((await running)[-1][1]).done
    assert (engine.prepared, engine.files) == ([], [])
    engine.permits.release()
    for _ in range(2):
        await acquire(engine.ended)
    metrics = (await client.get("/metrics")).text
    assert 'draftline_requests_total{kind="prepare",outcome="superseded"} 1.0' in metrics
    assert 'draftline_requests_total{kind="complete",outcome="done"} 1.0' in metrics
    assert [(u.workspace, u.changed[0].path, u.removed) for u in engine.updates] == [("w", "a.py", ("b.py",))]


async def test_a_completion_in_advance_ends_when_a_user_waits_for_any_document(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    ahead, wanted = body(document="a", max_tokens=100, ahead=True), body(document="b", max_tokens=1)
    in_advance, users = await running_and_waiting(engine, client, 1, ahead, wanted)
    engine.permits.release(2)  # the end of the step that runs, and the step of the user's request
    assert decode_event((await users)[-1][1]).stop_reason is StopReason.MAX_TOKENS
    assert decode_event((await in_advance)[-1][1]).dropped == "superseded"
    assert engine.steps == 3


async def test_a_completion_in_advance_runs_after_every_other_request(start_host):
    engine = PacedEngine(gated=True)
    client = await start_host(engine)
    ahead = body(document="c", max_tokens=1, ahead=True)
    tasks = await running_and_waiting(engine, client, 1, body(document="a", max_tokens=2), ahead)
    assert (await client.post("/v1/prepare", json=body(document="b"))).status_code == 202
    engine.permits.release(3)
    for task in tasks:
        assert decode_event((await task)[-1][1]).stop_reason is StopReason.MAX_TOKENS
    assert (engine.started, engine.prepared) == (["a", "c"], ["b"])


async def test_metrics_count_tokens_by_drafter_and_latencies(start_host):
    client = await start_host(PacedEngine())
    await read_events(client, body())
    metrics = (await client.get("/metrics")).text
    for line in (
        'draftline_accepted_tokens_total{drafter="prompt_lookup"} 2.0',
        "draftline_generated_tokens_total 3.0",
        "draftline_drafted_tokens_total 3.0",
        "draftline_first_text_seconds_count 1.0",
        "draftline_ready 1.0",
    ):
        assert line in metrics


async def test_health_reports_the_model_the_device_and_the_memory(start_host):
    client = await start_host(PacedEngine())
    health = (await client.get("/health")).json()
    assert (health["state"], health["model"], health["device"]) == ("ready", "paced", "test")
    assert health["memory_bytes"] > 1_000_000
    assert health["context_tokens"] == 1000


async def test_bodies_over_the_size_limit_get_413(start_host):
    client = await start_host(PacedEngine(), HostSettings(body_limit_bytes=1000))
    declared = await client.post("/v1/complete", json=body("x" * 2000))
    assert (declared.status_code, declared.json()["code"]) == (413, "too_large")

    async def chunks():
        for _ in range(3):
            yield b'{"prefix": "' + b"x" * 500

    streamed = await client.post("/v1/complete", content=chunks())
    assert (streamed.status_code, streamed.json()["code"]) == (413, "too_large")


async def test_a_request_is_served_between_two_files_of_one_workspace_update(start_host):
    engine = PacedEngine(gated=True)
    engine.gated_files = True
    client = await start_host(engine)
    files = [{"path": path, "text": ""} for path in "abc"]
    assert (await client.post("/v1/workspace", json={"workspace": "w", "changed": files})).status_code == 202
    await acquire(engine.began)  # the first file
    request = asyncio.create_task(read_events(client, body(max_tokens=1)))
    await until_waiting(client, 1)
    engine.permits.release(2)
    assert decode_event((await request)[-1][1]).done
    assert engine.files == ["a"]
    assert (await client.post("/v1/workspace", json={"workspace": "later"})).status_code == 202
    engine.permits.release(3)  # two files, and the last request
    for _ in range(3):  # the request, and two updates
        await acquire(engine.ended)
    await read_events(client, body(max_tokens=1))  # the host counts an update after its end, before the next job
    assert engine.files == ["a", "b", "c"]
    assert [update.workspace for update in engine.updates] == ["w", "later"]
    metrics = (await client.get("/metrics")).text
    assert 'draftline_requests_total{kind="workspace",outcome="done"} 2.0' in metrics


async def test_an_engine_whose_device_fails_ends_its_host_with_an_error_that_clients_repeat(runtime):
    engine = PacedEngine()

    def load(progress):
        return replace(engine.load(progress), device_failed=lambda error: isinstance(error, ValueError))

    async with running_host(runtime, load, HostSettings()) as client:
        await until_ready(client)
        events = await read_events(client, body("crash"))
        assert events[-1][0] == "error"
        assert events[-1][1]["code"] == EngineUnavailableError.code
        async with asyncio.timeout(60):
            with suppress(httpx.TransportError):  # the host closes its socket
                while True:
                    await client.get("/health")
    assert engine.closed.is_set()
