"""`python -m benchmarks.edits`: cost of an edit with full prefill, prefix reuse, and re-encoded keys (PIE).

It replays recorded editing and prints a table for each layout and kind of edit, then one JSON object. The measures are
described in "Let the Code LLM Edit Itself When You Edit the Code", section 4. All rows share one model and one run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.data import data_dir, read_records
from benchmarks.edits.sessions import EditRequest, Kind, replay_requests, snippet_requests, trace_requests
from benchmarks.edits.tally import ROWS, Outcome, Row, Tally, divergence
from benchmarks.figures import ratio, rounded
from completion.cache.kv_session import KVSession, SessionSettings
from completion.cancellation import CancelToken
from completion.decoding.constraints import Constraints
from completion.decoding.decoder import Decoder
from completion.engine import FIRST_STEP_TOKENS
from completion.model.causal_model import CausalModel
from completion.model.loading import LoadedModel, load_model
from completion.prompt.fim_format import detect_format
from completion.prompt.healing import HealedPrefix
from completion.prompt.pace import PromptBudget
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import CacheMode, Layout, Sampling
from drafting.arrays import FloatArray

COMPLETION_TOKENS = 24
"""Length of the completions that are compared."""
LAST_EDITS = range(967, 1000, 2)
"""The edits of a thousand after which errors count: over as many as a token outlives in the product."""
TYPING_SAMPLE = 4
"""Interval of the requests of plain typing that are compared with full prefill."""
CACHED_TOKENS, TYPED_TOKENS = 1000, 20
"""Numbers of tokens before the typed ones and of typed tokens, of which each is timed."""
_REPLAYS = "open_release_replay.jsonl.gz"


class Bench:
    """One model, its prompt planner, and one session for each row and document."""

    def __init__(self, loaded: LoadedModel, layout: Layout) -> None:
        self._loaded, self._layout = loaded, layout
        fim_format = detect_format(loaded.tokenizer.special, loaded.name)
        self._planner = PromptPlanner(loaded.tokenizer, fim_format)
        self._sessions: dict[tuple[str, str], KVSession] = {}

    def run(self, asked: EditRequest, row: Row, *, complete: bool) -> Outcome:
        """Update the session of one row, time it to the logits of the first token, and complete greedily."""
        prompt = self._planner.plan(replace(asked.request, layout=self._layout), PromptBudget())
        session = self._session(asked.session, row)
        if asked.rested:
            session.refresh(CancelToken())
        started = time.perf_counter()
        plan = session.prepare(prompt, row.mode, CancelToken(), FIRST_STEP_TOKENS)
        logits = _score(self._loaded.model, session, prompt.tokens)
        elapsed = 1e3 * (time.perf_counter() - started)
        tokens = self._decode(session, prompt, COMPLETION_TOKENS if complete else 1)
        forced = len(prompt.forced)
        text = self._loaded.tokenizer.decode(tokens)[forced:].decode("utf-8", "ignore").split("\n")[0]
        session.truncate(len(prompt.tokens) - 1)
        exact = not session.edits.any()
        return Outcome(plan.computed, len(prompt.tokens), elapsed, logits, tokens[0], text, exact)

    def forget(self) -> None:
        """Drop every session."""
        self._sessions.clear()

    def _session(self, document: str, row: Row) -> KVSession:
        key = (document, row.name)
        if key not in self._sessions:
            settings = SessionSettings(repair_tokens=row.repair_tokens)
            self._sessions[key] = KVSession(self._loaded.model, settings)
        return self._sessions[key]

    def _decode(self, session: KVSession, prompt: Prompt, count: int) -> list[int]:
        tokenizer = self._loaded.tokenizer
        constraints = Constraints(tokenizer, prompt.forced, stop_ids=tokenizer.stop_ids)
        decoder = Decoder(
            model=self._loaded.model,
            session=session,
            prompt=prompt.tokens,
            constraints=constraints,
            state=constraints.start,
            drafter=None,
            forced_tokens=lambda data: tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=Sampling(),
            stop_ids=tokenizer.stop_ids,
        )
        for _ in itertools.islice(decoder.steps(CancelToken()), count):
            pass
        return decoder.tokens


def measure(bench: Bench, requests: Sequence[EditRequest]) -> Tally:
    """Run every request through every row, the rows interleaved."""
    tally = Tally()
    last_session = ""
    for number, asked in enumerate(track(requests, description="requests")):
        if asked.session != last_session:
            bench.forget()
            last_session = asked.session
        edited = asked.kind not in {Kind.OPEN, Kind.TYPING}
        # Full prefill keeps no state, so it runs only on a sample of plain typing, where the cache stays exact.
        rows = ROWS if asked.kind is not Kind.TYPING or number % TYPING_SAMPLE == 0 else ROWS[1:]
        outcomes = {row.name: bench.run(asked, row, complete=edited) for row in rows}
        for row in rows:
            tally.add(asked.kind, row, outcomes[row.name], outcomes.get(ROWS[0].name), asked.typed)
    return tally


def drift_ratio(model: CausalModel, texts: Iterable[Sequence[int]], *, compresses: bool = False) -> float:
    """Return the KL to a fresh prefill after a thousand edits of one position over that after one.

    Errors must not add up. The KL after a thousand is a mean over the last edits; the texts' KLs are added.

    Args:
        model: The model.
        texts: Texts as tokens.
        compresses: Whether the cache is rounded to 8 bits after each edit, and computed anew as often as the product
            does. Otherwise what an edit moves is never computed anew.
    """
    found = [_drift(model, tokens, compresses=compresses) for tokens in texts]
    return sum(last for _, last in found) / sum(first for first, _ in found)


def _drift(model: CausalModel, tokens: Sequence[int], *, compresses: bool) -> tuple[float, float]:
    """Return the KL after one edit of a text, and after a thousand."""
    most = SessionSettings().max_edits if compresses else 10**6
    settings = SessionSettings(repair_tokens=0, max_edits=most)
    plain, edited = list(tokens), [*tokens[:8], tokens[9], *tokens[8:]]
    session, fresh = KVSession(model, settings), KVSession(model, settings)
    _ready(session, plain)
    _ready(fresh, edited)
    exact, after = _score(model, fresh, edited), list[float]()
    for edit in range(1, 1001):
        current = edited if edit % 2 else plain
        plan = session.prepare(_prompt(current), CacheMode.PIE, CancelToken())
        if compresses:
            session.compress()
        if edit in {1, *LAST_EDITS}:
            after.append(divergence(exact, _score(model, session, current)))
        assert compresses or plan.computed <= 2, plan
    return after[0], statistics.mean(after[1:])


def reencode_ms(loaded: LoadedModel, count: int = 2000) -> float:
    """Return the median time to shift `count` cached tokens by one position, in milliseconds."""
    cache = loaded.model.new_cache(count + 64)
    loaded.model.prefill(np.zeros(1, np.int32), np.zeros(1, np.int32), cache)
    cache.reserve(count + 1)
    cache.length = count
    times = []
    for turn in range(20):
        sources = np.maximum(np.arange(count, dtype=np.int32) - 1, 0) if turn % 2 else np.arange(1, count + 1)
        started = time.perf_counter()
        cache.rearrange(sources.astype(np.int32) % count)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)


def keystroke_steps(loaded: LoadedModel, tokens: Sequence[int]) -> float:
    """Return the time to the first logits after a token is typed at the end of 1,000 tokens, in plain steps."""
    session = KVSession(loaded.model, SessionSettings())
    _ready(session, tokens[:CACHED_TOKENS])
    ratios = []
    for typed in range(1, TYPED_TOKENS + 1):
        prompt = _prompt(tokens[: CACHED_TOKENS + typed])
        started = time.perf_counter()
        session.prepare(prompt, CacheMode.PIE, CancelToken(), FIRST_STEP_TOKENS)
        _score(loaded.model, session, prompt.tokens)
        typed_at = time.perf_counter()
        _ready(session, prompt.tokens, CacheMode.PIE)
        step_from = time.perf_counter()
        _score(loaded.model, session, prompt.tokens)
        ratios.append((typed_at - started) / (time.perf_counter() - step_from))
    return statistics.median(ratios)


def _prompt(tokens: Sequence[int]) -> Prompt:
    return Prompt(tuple(tokens), tuple(tokens), HealedPrefix("", ""), ())


def _ready(session: KVSession, tokens: Sequence[int], mode: CacheMode = CacheMode.OFF) -> None:
    session.prepare(_prompt(tokens), mode, CancelToken())


def _score(model: CausalModel, session: KVSession, tokens: Sequence[int]) -> FloatArray:
    """Return the logits after the last token. Tokens outside the cache go through the model as a chain."""
    pending = np.asarray(tokens[len(session.tokens) :], dtype=np.int32)
    chain = np.arange(-1, len(pending) - 1, dtype=np.int32)
    return model.score(pending, chain, session.cache).row(len(pending) - 1).copy()


def gather(data: str | None, count: int) -> list[EditRequest]:
    """Return requests of a recorded trace, of release replays, and of changed snippets, session by session."""
    trace = trace_requests(data_dir(data) / "trace_sveltecomponent.json.gz")
    replays = replay_requests(read_records(_REPLAYS, data))
    snippets = snippet_requests(read_records("open_repo_context.jsonl.gz", data))
    shares = ((trace, count // 2), (replays, 3 * count // 8), (snippets, count // 8))
    return [request for requests, most in shares for request in itertools.islice(requests, most)]


def headline(tally: Tally) -> dict[str, float | None]:
    """Return the figures of the last line, for the default layout; None where no such request was compared."""
    asked = [kind for kind in Kind if kind is not Kind.OPEN]
    edits = [kind for kind in asked if kind is not Kind.TYPING]
    full, prefix, pie, _ = ROWS
    whole, without_typing = tally.summary(pie, asked), tally.summary(pie, edits)
    typing = tally.summary(pie, [Kind.TYPING])
    return {
        "requests": whole.get("requests"),
        "tokens_computed_share": whole.get("computed_share"),
        "time_ratio_full": without_typing.get("time_ratio_full"),
        "time_ratio_prefix": ratio(without_typing.get("ms"), tally.summary(prefix, edits).get("ms")),
        "typing_tokens_per_keystroke": typing.get("computed_per_request"),
        "typing_kl": typing.get("kl"),
        "typing_kl_on_exact_cache": typing.get("kl_on_exact_cache"),
        "typing_on_exact_cache": typing.get("on_exact_cache"),
        "first_token_agreement": whole.get("first_token_agreement"),
        "first_token_agreement_edits": without_typing.get("first_token_agreement"),
        "kl_edits": without_typing.get("kl"),
        "completion_match_gap": 100 * (tally.summary(full, edits)["typed_match"] - without_typing["typed_match"])
        if without_typing
        else None,
    }


def source_tokens(loaded: LoadedModel, data: str | None) -> list[int]:
    """Return the tokens of the first release replay with a text, repeated until they are enough to type at their end.

    Raises:
        SystemExit: There is no such record.
    """
    records = read_records(_REPLAYS, data)
    text = next((record["before"] for record in records if record["before"].strip()), None)
    if text is None:
        raise SystemExit(f"{_REPLAYS} has no text. Name another folder with --data-dir.")
    tokens = loaded.tokenizer.encode(text * 3)
    return tokens * math.ceil((CACHED_TOKENS + TYPED_TOKENS) / len(tokens))


def main() -> None:
    """Print the tables, then one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edits", description=__doc__)
    parser.add_argument("--data-dir", help="folder of the data")
    parser.add_argument("--model", default="default", help="model that is measured (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=560, help="number of requests (default: %(default)s)")
    parser.add_argument(
        "--other-layout-requests", type=int, default=80, help="those in each other layout (default: %(default)s)"
    )
    options = parser.parse_args()
    loaded = load_model(options.model)
    source = source_tokens(loaded, options.data_dir)
    console = Console(width=150)
    tallies = {}
    for layout, count in (
        (Layout.SUFFIX_FIRST, options.requests),
        (Layout.PREFIX_FIRST, options.other_layout_requests),
    ):
        tallies[layout] = measure(Bench(loaded, layout), gather(options.data_dir, count))
        console.print(tallies[layout].table(layout))
    figures = headline(tallies[Layout.SUFFIX_FIRST]) | {
        "drift_ratio": drift_ratio(loaded.model, [source[:600]]),
        "reencode_ms": reencode_ms(loaded),
        "keystroke_steps": keystroke_steps(loaded, source),
    }
    print(json.dumps({name: rounded(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
