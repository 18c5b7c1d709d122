"""Two replicas of the real vLLM under Ray Serve, as deploy/ray starts them: killed under load, they lose no request."""

from __future__ import annotations

import re
import ssl
import threading
import urllib.error
import urllib.request
from dataclasses import replace

import psutil
import pytest

from benchmarks.team.vllm_process import metrics_at
from completion.cancellation import CancelToken
from completion.errors import RemoteServerError
from completion.model.store.model_store import prepare
from completion.progress import silent
from completion.remote.address import RemoteAddress
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.model_server import Query
from completion.request import CompletionRequest, GrammarMode
from tests.completion.remote.real.conftest import CERTIFICATE, IS_TINY, PYTHON
from tests.completion.remote.real.ray_cluster import RayCluster
from tests.completion.remote.real.watched import WatchedServer

CANARY = "canary_c4ca4238"
TOKEN = "a-token-of-ada"
PROMPTS = 6
TYPISTS_OF_A_REPLICA = 2
pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def cluster(spec):
    options = [f"--dtype={'float32' if IS_TINY else 'bfloat16'}", "--enforce-eager", "--block-size=32"]
    cluster = RayCluster(PYTHON, str(prepare(spec).folder), [TOKEN], options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def connect(cluster, spec, tmp_path):
    def connected(token=TOKEN):
        file = tmp_path / "token"
        file.write_text(token)
        address = RemoteAddress(cluster.url, "vllm", token_file=str(file), ca_file=str(CERTIFICATE))
        return RemoteModel.connect(address, spec, silent, CancelToken())

    return connected


class Typist:
    """An engine that repeats some requests, each of which has the text that it had at first."""

    def __init__(self, number, model):
        self.server = WatchedServer(model.server)
        self.answered, self.changed, self.lost = 0, [], []
        self._engine = RemoteEngine(replace(model, server=self.server))
        self._number = number
        self._texts = {}

    def types(self, rounds):
        """Send the requests."""
        for key in range(rounds * PROMPTS):
            prefix = f"{CANARY}_{self._number} = {key % PROMPTS}\ndef scale(values, factor):\n"
            request = CompletionRequest(
                prefix, "\n", "python", max_tokens=64, invoked=True, filters=False, grammar=GrammarMode.OFF
            )
            try:
                *_, last = self._engine.complete(request, CancelToken())
            except RemoteServerError as error:
                self.lost.append(str(error))
                continue
            text = last.suggestions[0].text if last.suggestions else ""
            self.answered += 1
            if text != (first := self._texts.setdefault(key % PROMPTS, text)):
                self.changed.append((first, text))


def together(typists, rounds):
    """Let all type at once."""
    threads = [threading.Thread(target=one.types, args=(rounds,)) for one in typists]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def typists_of(cluster, connect):
    """Return typists by the replica that serves them, as many of each replica.

    On a busy machine the router lets another one serve if the first does not tell within 0.1 s how much it has to do.
    """
    replicas, found = cluster.replicas(), {}
    while sum(map(len, found.values())) < len(replicas) * TYPISTS_OF_A_REPLICA:
        before = [one.prompt_tokens() for one in replicas]
        typist = Typist(sum(map(len, found.values())), connect())
        typist.types(1)
        _, served = max((one.prompt_tokens() - count, one.url) for one, count in zip(replicas, before, strict=True))
        of_replica = found.setdefault(served, [])
        if len(of_replica) < TYPISTS_OF_A_REPLICA:
            of_replica.append(typist)
    return {one: found[one.url] for one in replicas}


@pytest.mark.parametrize("what", ["process", "server"])
def test_a_replica_that_is_killed_under_load_loses_no_request(cluster, connect, what):
    """Killed is Ray's process, or vLLM's: then the replica ends itself. In the end there are two again."""
    cluster.until_complete()
    by_replica = typists_of(cluster, connect)
    victim, affected = next(iter(by_replica.items()))
    of_victim = [victim.process, victim.server, *victim.server.children(recursive=True)]
    killed = threading.Event()

    def kill():
        if not killed.is_set():
            killed.set()
            getattr(victim, what).kill()

    affected[0].server.on_token = kill
    typists = [typist for each in by_replica.values() for typist in each]
    together(typists, 6)
    answered, lost = sum(one.answered for one in typists), [said for one in typists for said in one.lost]
    interrupted = sum(one.server.interrupted for one in typists)
    changed = [each for one in typists for each in one.changed]
    print(
        f"Ray Serve, one of two replicas killed ({what}): requests {answered + len(lost)}, lost {len(lost)}, "
        f"interrupted replies {interrupted}, other texts {len(changed)}"
    )
    assert killed.is_set()
    assert interrupted > 0
    assert lost == []
    _, left = psutil.wait_procs(of_victim, 60)
    assert left == []
    cluster.until_complete()
    together(typists, 1)
    assert [one.lost for one in typists] == [[]] * len(typists)


def test_a_client_that_leaves_ends_the_work_of_its_replica(cluster, connect):
    cluster.until_complete()
    before = {one.url: metrics_at(one.url)["vllm:generation_tokens_total"] for one in cluster.replicas()}
    generated = connect().server.generate(Query([1, 2, 3], 3500), CancelToken())
    next(generated)
    [busy] = [one for one in cluster.replicas() if metrics_at(one.url)["vllm:num_requests_running"]]
    generated.close()
    while metrics_at(busy.url)["vllm:num_requests_running"]:
        pass
    assert metrics_at(busy.url)["vllm:generation_tokens_total"] - before[busy.url] < 3000


def test_one_engine_is_served_by_the_replica_that_has_cached_its_prompts(cluster, connect):
    cluster.until_complete()
    for replica, typists in typists_of(cluster, connect).items():
        [other] = [one for one in cluster.replicas() if one.url != replica.url]
        before = replica.prompt_tokens(), other.prompt_tokens()
        together(typists, 2)
        own, others = replica.prompt_tokens() - before[0], other.prompt_tokens() - before[1]
        print(f"tokens of the prompts of one replica's typists: {own:.0f} there, {others:.0f} at the other one")
        assert own > 4 * others


def test_a_wrong_token_is_refused_on_every_page(cluster, connect):
    with pytest.raises(RemoteServerError, match="refuses the token"):
        connect("guessed")
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    for path in ("/version", "/tokenize"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(cluster.url + path, context=trusted)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(cluster.url + "/metrics", context=trusted)


def test_no_log_of_ray_or_vllm_holds_text_tokens_or_keys(cluster, connect):
    model = connect()
    Typist(0, model).types(1)
    tokens = model.tokenizer.encode(CANARY)
    pattern = re.compile(r"\D+".join(map(str, tokens)).encode())
    files = [path for path in cluster.logs.rglob("*") if path.is_file()]
    assert any("replica" in path.name for path in files)
    for path in files:
        data = path.read_bytes()
        assert CANARY.encode() not in data, path
        assert TOKEN.encode() not in data, path
        assert not pattern.search(data), path
