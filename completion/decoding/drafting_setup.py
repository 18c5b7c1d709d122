"""Makes the drafters of a loaded model from the calibration on disk and the step costs of this machine."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from completion.decoding.step_costs import load_or_measure_costs
from completion.model.loading import LoadedModel
from completion.paths import state_dir
from drafting.calibration import load_calibration, save_calibration
from drafting.session import Drafters
from drafting.sources.token_recycling import common_recycling

logger = logging.getLogger(__name__)


def make_drafters(loaded: LoadedModel, max_nodes: int, *, briefly: bool = False) -> Drafters:
    """Make drafters with trees of at most `max_nodes` nodes, with the calibration that earlier processes learned.

    `briefly`: see `load_or_measure_costs`.
    """
    calibration = load_calibration(_calibration_file(loaded.digest), loaded.digest)
    special = sorted(loaded.tokenizer.special.values())
    costs = load_or_measure_costs(loaded, max_nodes, briefly=briefly)
    ends, vocabulary_size = loaded.tokenizer.tokens_with_byte(b"\n"), loaded.tokenizer.vocabulary_size
    common = partial(common_recycling, loaded.tokenizer.digest)
    drafters = Drafters(calibration, costs, vocabulary_size, special=special, line_ends=ends, common=common)
    drafters.warm_up()
    return drafters


def keep_calibration(drafters: Drafters, digest: str) -> None:
    """Save the calibration for the next process. If it cannot be written, log a warning."""
    try:
        save_calibration(drafters.calibration, _calibration_file(digest), digest)
    except OSError as error:
        logger.warning("The drafters' calibration cannot be saved: %s", error.strerror)


def _calibration_file(digest: str) -> Path:
    """Return the path of a model's calibration; such are the only files of drafters on disk."""
    return state_dir() / "drafting" / f"{digest[:16]}.json"
