"""Makes the drafters for a loaded model: what it learned before, and what a step costs on this machine."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import numpy as np

from completion.model.causal_model import CausalModel
from completion.model.loading import LoadedModel
from completion.model.tokenizer import CodeTokenizer
from completion.paths import state_dir
from drafting.draft_budget import StepCosts
from drafting.draft_tree import ROOT
from drafting.learned_state import LearnedState
from drafting.session import Drafters

logger = logging.getLogger(__name__)

_PAST_TOKENS = 512  # a usual prompt; what lies there makes no difference to the time
_SIZES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def make_drafters(loaded: LoadedModel, max_nodes: int) -> Drafters:
    """Drafters for a model, with trees of up to `max_nodes` nodes; they go on from what was learned before."""
    learned = LearnedState.load(_state_file(loaded.digest), loaded.digest, loaded.tokenizer.vocabulary_size)
    special = sorted(loaded.tokenizer.special.values())
    costs = measure_costs(loaded.model, max_nodes)
    drafters = Drafters(learned, costs, special=special, line_ends=line_ends(loaded.tokenizer))
    drafters.warm_up()
    return drafters


def line_ends(tokenizer: CodeTokenizer) -> list[int]:
    """Tokens that hold a line break."""
    return [token for token in range(tokenizer.vocabulary_size) if b"\n" in tokenizer.token_bytes(token)]


def save_learned(drafters: Drafters, digest: str) -> None:
    """Keep what was learned for the next process; a disk that is full loses it, and nothing else."""
    try:
        drafters.learned.save(_state_file(digest), digest)
    except OSError as error:
        logger.warning("What the drafters learned is not saved: %s", error.strerror)


def measure_costs(model: CausalModel, max_nodes: int) -> StepCosts:
    """Time steps of several sizes on top of a past of zeros."""
    cache = model.new_cache(_PAST_TOKENS + max_nodes + 1)
    model.prefill(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), cache)
    cache.length = min(_PAST_TOKENS, cache.capacity - max_nodes - 1)

    def time_step(nodes: int) -> float:
        started = time.perf_counter()
        model.score(np.zeros(nodes + 1, dtype=np.int32), np.arange(ROOT, nodes, dtype=np.int32), cache)
        return 1e3 * (time.perf_counter() - started)

    sizes = sorted({size for size in _SIZES if size <= max_nodes} | {max_nodes})
    return StepCosts.measure(time_step, sizes)


def _state_file(digest: str) -> Path:
    return state_dir() / "drafting" / f"{digest[:16]}.npz"
