"""Where a host's memory is: a real host with a tiny model, before and after requests, and after all is closed."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from completion.cancellation import CancelToken
from completion.host.engine_loader import load_engine
from completion.host.metrics import memory_account
from completion.host.server import HostSettings
from completion.memory import Held, MemoryPart
from completion.request import Closing, CompletionRequest
from tests.completion.host.conftest import running_host, until_ready

SOURCE = "import math\n\n\ndef area(radius):\n    return math.pi * radius ** 2\n\n\n" * 8
REQUEST = {"prefix": SOURCE + "def side(", "suffix": "", "language": "python", "max_tokens": 4, "document": "d"}
FILES = [{"path": f"{number}.py", "text": SOURCE.replace("area", f"area_{number}")} for number in range(20)]


async def gauges(client):
    """Return the parts of the host's memory that its metrics name, and its resident size."""
    families = {each.name: each for each in text_string_to_metric_families((await client.get("/metrics")).text)}
    parts = {sample.labels["part"]: sample.value for sample in families["draftline_memory_bytes"].samples}
    (resident,) = families["process_resident_memory_bytes"].samples
    return parts, resident.value


@pytest.fixture
def engine(tiny_qwen2):
    """A loaded engine of the tiny model."""
    loaded = load_engine(HostSettings(model=str(tiny_qwen2), backend="fp32"), lambda *_: None)
    yield loaded
    loaded.engine.close()


async def test_metrics_say_where_the_memory_of_a_host_is(runtime, engine):
    async with running_host(runtime, lambda _: engine, HostSettings()) as client:
        await until_ready(client)
        before, _ = await gauges(client)
        assert list(before) == [str(part) for part in MemoryPart]

        update = {"workspace": "w", "changed": FILES}
        assert (await client.post("/v1/workspace", json=update)).status_code == 202
        request = {**REQUEST, "workspace": "w"}
        reply = await client.post("/v1/complete", json=request)
        assert reply.status_code == 200
        during, resident = await gauges(client)
        held_bytes = engine.engine._sessions.open("d").cache.size_bytes

        grown = during["kv_sessions"] - before["kv_sessions"]
        assert 0.5 * held_bytes < grown <= held_bytes
        assert during["workspaces"] > before["workspaces"] + sum(len(file["text"]) for file in FILES)
        assert during["grammars"] > 0
        assert during["other"] > 0
        assert sum(during.values()) == pytest.approx(resident, rel=0.05)

        closing = {"documents": ["d"], "workspaces": ["w"]}
        assert (await client.post("/v1/close", json=closing)).status_code == 202
        while (await client.get("/health")).json()["busy"]:
            pass
        after, _ = await gauges(client)
        assert after["kv_sessions"] == 0
        assert after["workspaces"] <= before["workspaces"] + 10_000
        assert after["grammars"] < during["grammars"]


async def test_health_has_the_same_account_on_request(runtime, engine):
    async with running_host(runtime, lambda _: engine, HostSettings()) as client:
        await until_ready(client)
        assert "memory" not in (await client.get("/health")).json()
        memory = (await client.get("/health?memory=1")).json()["memory"]
        assert sum(memory["parts"].values()) == memory["resident"]
        assert memory["parts"]["weights"] > 0
        assert memory["gpu"] == {}
        assert memory["children"] > 1_000_000  # the parser's process


def test_the_weights_are_counted_as_what_they_are(engine):
    model = engine.engine.passes.model
    tensors = {(each.data_ptr(), each.nbytes) for each in _tensors(model.weights)}
    parts = memory_account(engine.engine.held).parts
    assert parts[MemoryPart.WEIGHTS] == pytest.approx(sum(size for _, size in tensors), rel=0.02)


def test_the_parts_are_the_resident_size_and_an_array_counts_in_its_own_part():
    array = np.ones(4 << 20)
    without = memory_account(dict)
    account = memory_account(lambda: {MemoryPart.WORKSPACES: Held.arrays([array])})

    assert account.parts[MemoryPart.WORKSPACES] == array.nbytes
    assert without.parts[MemoryPart.OTHER] - account.parts[MemoryPart.OTHER] == pytest.approx(array.nbytes, rel=0.05)
    assert account.resident == pytest.approx(psutil.Process().memory_info().rss, rel=0.02)


def test_what_is_on_a_gpu_is_not_memory_of_the_process():
    account = memory_account(lambda: {MemoryPart.WEIGHTS: Held(gpu_bytes=1 << 50)})

    assert account.gpu == {MemoryPart.WEIGHTS: 1 << 50}
    assert account.parts[MemoryPart.WEIGHTS] == 0


def test_closing_the_last_document_forgets_what_was_kept_of_texts(engine):
    found = engine.engine
    encoder = found._tokenizer.tables.encoder
    for document in ("first", "last"):
        found._sessions.open(document)
    found._tokenizer.encode("unusual words")

    found.forget(Closing(("first",)))
    assert "unusual" in encoder._known
    found.forget(Closing(("last",)))

    assert not encoder._known


def test_an_idle_host_ends_the_child_that_parses_and_completes_afterwards(tiny_qwen2):
    others = set(psutil.Process().children())
    loaded = load_engine(HostSettings(model=str(tiny_qwen2), backend="fp32"), lambda *_: None)
    (child,) = set(psutil.Process().children()) - others
    loaded.rest()
    child.wait(60)
    *_, last = loaded.engine.complete(CompletionRequest(SOURCE, language="python", max_tokens=1), CancelToken())
    assert last.done
    assert len(set(psutil.Process().children()) - others) == 1
    loaded.engine.close()


def _tensors(weights):
    from completion.model.dense.held_tensors import tensors_in

    return list(tensors_in(weights))
