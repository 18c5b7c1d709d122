"""Makes the drafters for a loaded model: what it learned before, and what a step costs on this machine."""

from __future__ import annotations

import logging
from pathlib import Path

from completion.decoding.step_costs import known_costs
from completion.model.loading import LoadedModel
from completion.model.tokenizer import CodeTokenizer
from completion.paths import state_dir
from drafting.learned_state import LearnedState
from drafting.session import Drafters

logger = logging.getLogger(__name__)


def make_drafters(loaded: LoadedModel, max_nodes: int) -> Drafters:
    """Drafters for a model, with trees of up to `max_nodes` nodes; they go on from what was learned before."""
    learned = LearnedState.load(_state_file(loaded.digest), loaded.digest, loaded.tokenizer.vocabulary_size)
    special = sorted(loaded.tokenizer.special.values())
    costs = known_costs(loaded, max_nodes)
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


def _state_file(digest: str) -> Path:
    return state_dir() / "drafting" / f"{digest[:16]}.npz"
