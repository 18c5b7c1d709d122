"""Makes the drafters for a loaded model: what it learned before, and what a step costs on this machine."""

from __future__ import annotations

import logging
from pathlib import Path

from completion.decoding.step_costs import known_costs
from completion.model.loading import LoadedModel
from completion.model.tokenizer import CodeTokenizer
from completion.paths import state_dir
from drafting.learned_state import delete_token_files, load_calibration, save_calibration
from drafting.session import Drafters

logger = logging.getLogger(__name__)


def make_drafters(loaded: LoadedModel, max_nodes: int) -> Drafters:
    """Drafters for a model, with trees of up to `max_nodes` nodes; they go on from the calibration learned before.

    Files of earlier versions, from which text could be read back, are deleted.
    """
    delete_token_files(calibration_folder())
    calibration = load_calibration(_calibration_file(loaded.digest), loaded.digest)
    special = sorted(loaded.tokenizer.special.values())
    costs = known_costs(loaded, max_nodes)
    ends, vocabulary_size = line_ends(loaded.tokenizer), loaded.tokenizer.vocabulary_size
    drafters = Drafters(calibration, costs, vocabulary_size, special=special, line_ends=ends)
    drafters.warm_up()
    return drafters


def line_ends(tokenizer: CodeTokenizer) -> list[int]:
    """Tokens that hold a line break."""
    return [token for token in range(tokenizer.vocabulary_size) if b"\n" in tokenizer.token_bytes(token)]


def keep_calibration(drafters: Drafters, digest: str) -> None:
    """Keep the calibration for the next process; a disk that is full loses it, and nothing else."""
    try:
        save_calibration(drafters.calibration, _calibration_file(digest), digest)
    except OSError as error:
        logger.warning("What the drafters learned is not saved: %s", error.strerror)


def calibration_folder() -> Path:
    """Where the calibration of each model is kept: all that drafters leave on disk."""
    return state_dir() / "drafting"


def _calibration_file(digest: str) -> Path:
    return calibration_folder() / f"{digest[:16]}.json"
