"""What one typist waits for on a vLLM that serves nobody else: after a key, and while it computes others' prompts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from benchmarks.team.vllm_process import metrics_at
from benchmarks.typing.scripts import Script
from benchmarks.typing_ablation import questions
from completion.cancellation import CancelToken
from completion.remote.engine import RemoteEngine, RemoteModel
from completion.remote.model_server import Generated, ModelServer, Query, ServerFacts
from completion.request import CompletionRequest

FEW_TOKENS = 32
"""Maximum number of a prompt's tokens that a key should compute where the prompt before it is cached."""

_KEYS = 60
_KEYS_A_SCRIPT = 12
_ANSWER_TOKENS = 4  # enough for a first text; a request that runs to its end is counted in the metrics
_OTHERS = 6
_TIMES_BEHIND = 5
_TTFT, _COMPUTED = "vllm:time_to_first_token_seconds", "vllm:request_prefill_kv_computed_tokens"
_AT_WORK = ("vllm:num_requests_running", "vllm:num_requests_waiting")


class TimedServer(ModelServer):
    """A model server, with the time of the first token of the last reply.

    Args:
        server: The server.

    Attributes:
        first_s: When that token came, by `time.perf_counter`; None before.
    """

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self.first_s: float | None = None

    def facts(self, cancel: CancelToken) -> ServerFacts:
        """See `ModelServer`."""
        return self._server.facts(cancel)

    def check_tokenizer(self, special: Sequence[str], cancel: CancelToken) -> None:
        """See `ModelServer`."""
        self._server.check_tokenizer(special, cancel)

    def generate(self, query: Query, cancel: CancelToken) -> Generator[Generated]:
        """See `ModelServer`."""
        self.first_s = None
        with closing(self._server.generate(query, cancel)) as generated:
            for each in generated:
                self.first_s = self.first_s or time.perf_counter()
                yield each

    def prepare(self, prompt: Sequence[int], cancel: CancelToken) -> None:
        """See `ModelServer`."""
        self._server.prepare(prompt, cancel)


@dataclass(frozen=True, slots=True)
class Key:
    """What a key cost.

    Attributes:
        first_token_ms: Time from the request to its first token.
        vllm_ms: The part of it that vLLM counts, from the arrival of the request there.
        computed: Number of the prompt's tokens that vLLM computed; None if it was ended before it counted them.
    """

    first_token_ms: float
    vllm_ms: float
    computed: int | None


class Typist:
    """A typist's engine over a vLLM.

    Args:
        model: The server's model.
        url: Address of its metrics.
    """

    def __init__(self, model: RemoteModel, url: str) -> None:
        self._server = TimedServer(model.server)
        self._engine = RemoteEngine(replace(model, server=self._server))
        self._url = url

    def key(self, request: CompletionRequest) -> Key | None:
        """Send a request to its end; return what it cost, None if the server had nothing to do."""
        before, asked_s = metrics_at(self._url), time.perf_counter()
        for _ in self._engine.complete(request, CancelToken()):
            pass
        after = metrics_at(self._url)

        def grown(name: str) -> float:
            return after.get(name, 0.0) - before.get(name, 0.0)

        if self._server.first_s is None or not grown(f"{_TTFT}_count"):
            return None
        computed = round(grown(f"{_COMPUTED}_sum")) if grown(f"{_COMPUTED}_count") == 1 else None
        first_token_ms = 1e3 * (self._server.first_s - asked_s)
        return Key(first_token_ms, 1e3 * grown(f"{_TTFT}_sum") / grown(f"{_TTFT}_count"), computed)


def keys(script: Script) -> Iterator[tuple[CompletionRequest, bool]]:
    """Yield a request for each key of a session, and whether it appends to the text of the one before."""
    before = CompletionRequest("\0", "", "")
    for question, _ in questions(script, 1, _KEYS_A_SCRIPT):
        request = replace(question, suggestions=1, max_tokens=_ANSWER_TOKENS, invoked=True)
        yield request, request.prefix.startswith(before.prefix) and request.suffix == before.suffix
        before = request


def typist_alone(model: RemoteModel, url: str, scripts: Sequence[Script]) -> dict[str, float | None]:
    """Return the figures by name, None where there is no data.

    Args:
        model: The model at a vLLM that serves nobody else.
        url: Address of its metrics.
        scripts: What is typed.
    """
    return _figures(_warm_keys(model, url, scripts), _behind_preparations(model, url, scripts[::-1]))


def _warm_keys(model: RemoteModel, url: str, scripts: Sequence[Script]) -> list[Key]:
    """Type until there are enough keys after which the prompt before the key is cached."""
    typist, found = Typist(model, url), list[Key]()
    for script in scripts:
        for request, appends in keys(script):
            key = typist.key(request)
            if key is not None and appends:
                found.append(key)
        if len(found) >= _KEYS:
            break
    return found[:_KEYS]


def _behind_preparations(model: RemoteModel, url: str, scripts: Sequence[Script]) -> list[Key]:
    """Type keys with a cached prompt, each while the server computes long prompts of six other documents."""
    typist, found = Typist(model, url), list[Key]()
    typed = list(keys(scripts[0]))
    typist.key(typed[0][0])
    rounds = zip(typed[1:], range(1, len(scripts), _OTHERS), strict=False)
    for (request, _), first in list(rounds)[:_TIMES_BEHIND]:
        cancel, others = CancelToken(), [next(keys(each))[0] for each in scripts[first : first + _OTHERS]]
        with ThreadPoolExecutor(len(others)) as pool:
            running = [pool.submit(RemoteEngine(model).prepare, each, cancel) for each in others]
            while sum(metrics_at(url)[name] for name in _AT_WORK) < len(others) and not all(
                each.done() for each in running
            ):
                pass
            key = typist.key(request)
            cancel.cancel()
        found += [key] if key is not None else []
    return found


def _figures(warm: Sequence[Key], behind: Sequence[Key]) -> dict[str, float | None]:
    counted = [key.computed for key in warm if key.computed is not None]
    return {
        "warm_first_token_p50_ms": _median([key.first_token_ms for key in warm]),
        "added_to_vllm_ms": _median([key.first_token_ms - key.vllm_ms for key in warm]),
        "computed_tokens_a_key_p50": _median(counted),
        "keys_counted": len(counted),
        "keys_within_32_tokens": _share([each <= FEW_TOKENS for each in counted]),
        "behind_preparations_ms": _median([key.first_token_ms for key in behind]),
    }


def _median(found: Sequence[float]) -> float | None:
    return round(statistics.median(found), 1) if found else None


def _share(found: Sequence[bool]) -> float | None:
    return round(sum(found) / len(found), 3) if found else None
