"""Texts that a model has written with and without its drafters, and what other models say to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import numpy.typing as npt

from benchmarks.drafting.records import Case
from benchmarks.quality.sets import half_of
from benchmarks.two_models.listening import ListeningDrafters, ListeningModel, chain
from benchmarks.two_models.speed import CHAIN, Drafted, Trees
from completion.cancellation import CancelToken
from completion.engine import Engine, EngineSettings, product_settings
from completion.model.causal_model import CausalModel, KVCache, Logits
from completion.model.int8.kernel_arguments import MAX_ROWS
from completion.model.loading import LoadedModel
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.healing import heal
from completion.prompt.line_endings import normalised
from completion.request import CompletionRequest, Statistics
from drafting.arrays import FloatArray, IntArray

Answers = tuple[npt.NDArray[np.bool_], FloatArray]
"""Whether each token of each chain is right, and how sure the drafter is of it; see `Drafted`."""
LARGER_PROMPT_SHARE = 0.5
"""Share of the prompt's budget that the product gives the larger model on two cores of an Intel Granite Rapids, where
it computes about 200 tokens a second."""
Read = Callable[["Written"], Answers]
"""Lets a drafter read a text."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text of the model.

    Attributes:
        suite: Suite of its case.
        half: Half of the packages that its case belongs to.
        prompt: Tokens of the prompt.
        tokens: Tokens after it: what greedy decoding wrote.
        cache: Cache of the model with the prompt and all tokens except the last.
        first: Number of first tokens that repeat what the user typed.
        trees: What the drafters proposed.
        plain_ms: Time of decoding without drafts.
        drafted_ms: Time of decoding with drafts.
    """

    suite: str
    half: int
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    cache: KVCache
    first: int
    trees: Trees
    plain_ms: float
    drafted_ms: float

    @property
    def inputs(self) -> tuple[int, ...]:
        """Token after which each of `tokens` comes."""
        return (self.prompt[-1], *self.tokens[:-1])

    def drafted(self, answers: Answers) -> Drafted:
        """Return the text with what a drafter said to it."""
        return Drafted(*answers, self.first, self.trees)


class Writer:
    """Writes the texts of cases with a model in the product's engine."""

    def __init__(self, loaded: LoadedModel, prompt_share: float = 1.0) -> None:
        self.model = ListeningModel(loaded.model)
        self._tokenizer, self._drafters = loaded.tokenizer, ListeningDrafters(loaded)
        settings = with_prompts(product_settings(), prompt_share)
        self._engine = Engine(replace(loaded, model=self.model), settings, self._drafters)

    def write(self, cases: Sequence[Case], keep: Callable[[KVCache], KVCache]) -> Iterator[Written]:
        """Yield the text of each case that has tokens of the model's own.

        Args:
            cases: The cases. A case's workspace is closed after it.
            keep: Copies the cache of a text, or returns it if nobody reads it.
        """
        for number, case in enumerate(cases):
            for _ in self._engine.update_workspace(case.workspace, CancelToken()):
                pass
            self._engine.prepare(case.request, CancelToken())
            drafted, plain = self._both(case.request, number)
            self._drafters.close_workspace(case.request.workspace)
            session, cache = self._drafters.first, self.model.cache
            assert session is not None
            assert cache is not None
            tokens = tuple(session.tokens[: cache.length + 1 - len(session.prompt)])
            first = typed_tokens(tokens, case.request, self._tokenizer)
            if first < len(tokens):
                yield Written(
                    case.suite,
                    half_of(case.request.document.partition("/")[2]),
                    session.prompt,
                    tokens,
                    keep(cache),
                    first,
                    Trees.of_steps(session.steps, drafting_share(drafted, plain)),
                    plain.decode_ms,
                    drafted.decode_ms,
                )

    def _both(self, request: CompletionRequest, seed: int) -> tuple[Statistics, Statistics]:
        """Complete a request with and without drafts, in an order by chance: the first after a prompt is slower."""
        found = {}
        for drafting in Random(seed).sample([True, False], 2):
            if drafting:
                self._drafters.listen()
            *_, last = self._engine.complete(replace(request, drafting=drafting), CancelToken())
            assert last.statistics is not None
            found[drafting] = last.statistics
        return found[True], found[False]


def drafting_share(drafted: Statistics, plain: Statistics) -> float:
    """Return the time of drafting a step over that of a step of the same text without drafts."""
    return drafted.drafting_ms / max(drafted.steps, 1) / max(plain.decode_ms / max(plain.steps, 1), 1e-9)


def with_prompts(settings: EngineSettings, share: float) -> EngineSettings:
    """Return settings with a fixed share of the prompt's budget, however slow the machine is."""
    return replace(settings, budget=settings.budget.scaled(share), full_prompt_s=math.inf)


def typed_tokens(tokens: Sequence[int], request: CompletionRequest, tokenizer: CodeTokenizer) -> int:
    """Return the number of first tokens with the run before the cursor, which the user typed (healing)."""
    missing = len(heal(normalised(request).prefix).forced) if request.healing else 0
    for count, token in enumerate(tokens):
        if missing <= 0:
            return count
        missing -= len(tokenizer.token_bytes(token))
    return len(tokens)


def read_at_once(model: CausalModel, cache: KVCache, text: Written) -> Answers:
    """Let a drafter read a text in one pass: each token after all before it.

    A chain is right as long as its tokens are those of the text, so its next token is the one that this pass gives.
    """
    cache.truncate(len(text.prompt) - 1)
    best, confidence = choices(model.score(*chain(text.inputs), cache), len(text.tokens))
    agrees = best == np.array(text.tokens, dtype=np.int32)
    padded = np.concatenate((agrees, np.zeros(CHAIN, np.bool_)))
    sure = np.concatenate((confidence, np.ones(CHAIN, np.float32)))
    at = np.arange(len(agrees))[:, None] + np.arange(CHAIN)
    return padded[at], sure[at]


def read_from_each_token(model: CausalModel, cache: KVCache, text: Written, length: int = CHAIN) -> Answers:
    """Let a drafter read a chain from each token of a text, after what the whole model has computed before it.

    Chains are branches of the text, whose keys and values the whole model has computed, so one pass reads many of them.
    """
    count, before = len(text.tokens), len(text.prompt) - 1
    cache.truncate(before + count)
    cache.reopen(before)
    agrees, confidence = np.zeros((count, length), np.bool_), np.ones((count, length), np.float32)
    for first in range(0, count, MAX_ROWS // length):
        group = range(first, min(first + MAX_ROWS // length, count))
        places = [(start, step) for start in group for step in range(min(length, count - start))]
        parents = [start - 1 if step == 0 else count + row - 1 for row, (start, step) in enumerate(places)]
        inputs = np.array([text.inputs[start + step] for start, step in places], dtype=np.int32)
        wanted = np.array([text.tokens[start + step] for start, step in places], dtype=np.int32)
        best, sure = choices(model.score(inputs, np.array(parents, dtype=np.int32), cache), len(places))
        starts, steps = np.array(places).T
        agrees[starts, steps], confidence[starts, steps] = best == wanted, sure
    return agrees, confidence


def choices(logits: Logits, rows: int) -> tuple[IntArray, FloatArray]:
    """Return the best token of each row and its probability.  # [rows] twice."""
    tokens, scores = logits.top(1)
    sums = np.array([logits.log_sum(row) for row in range(rows)])
    return tokens[:, 0], np.exp(scores[:, 0] - sums).astype(np.float32)
