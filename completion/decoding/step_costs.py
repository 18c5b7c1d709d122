"""Costs of decoding steps on this machine, measured once for each model and saved, and what they allow."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from completion.model.causal_model import CausalModel
from completion.model.choice import Measured, measured_folder
from completion.model.int8.worker_threads import usable_threads
from completion.model.loading import LoadedModel
from completion.paths import state_dir, version
from drafting.calibration import load_calibration, save_calibration
from drafting.draft_budget import StepCosts
from drafting.draft_tree import ROOT
from drafting.session import Drafters
from drafting.sources.token_recycling import common_recycling
from drafting.state_files import StateFileError, read_state, write_state

logger = logging.getLogger(__name__)

PROCESSOR_NODES, MAX_NODES = 16, 63
"""Maximum number of nodes of a draft tree: on a processor, and of any; with the anchor it fills the largest graph."""

_FREE = 1.5
"""Cost of a full tree, in steps without one, up to which rows are nearly free."""
_LONGER = 8
"""Maximum length of a prompt over the default one where rows are nearly free; the pace decides how much is used."""
_REQUEST_ROWS = 8
"""Number of rows that a request typically adds to a pass."""
_PAST_TOKENS = 512  # length of a typical prompt
_SIZES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
_FEW_SIZES = _SIZES[::4]


def limits(costs: StepCosts, joint_requests: int) -> tuple[int, int]:
    """Return how many times as long as the default ones prompts may be, and how many requests share passes.

    A processor pays for each row of a pass. A GPU reads the weights once for dozens of rows, which are nearly free;
    only it has costs of larger trees. `joint_requests` are worth it in any case.
    """
    if costs.max_nodes <= PROCESSOR_NODES or not rows_are_free(costs):
        return 1, joint_requests
    return _LONGER, max(joint_requests, (costs.max_nodes + 1) // _REQUEST_ROWS)


def rows_are_free(costs: StepCosts) -> bool:
    """Return whether the largest tree costs little more than a step without one."""
    return bool(costs.costs_ms[-1] <= _FREE * costs.costs_ms[0])


def load_or_measure_costs(loaded: LoadedModel, max_nodes: int, *, briefly: bool = False) -> StepCosts:
    """Return the saved costs of an earlier start on this machine, or measure and save them.

    On a GPU whose rows are nearly free, trees may have `MAX_NODES` nodes, more than `max_nodes`.
    Measuring takes about a second. Saved costs suffice, because only their ratios matter and each step corrects them.
    With `briefly`, a few sizes are measured once, and it is left to another process to save costs.
    """
    path = _costs_file(loaded, max_nodes)
    found = read_state(path, lambda data: _parse(data, {max_nodes + 1, MAX_NODES + 1}))
    if found is None:
        some, rounds = (_FEW_SIZES, 1) if briefly else (_SIZES, 5)
        costs = measure_costs(loaded.model, max_nodes, some, rounds)
        if loaded.device != "cpu" and max_nodes < MAX_NODES and rows_are_free(costs):
            costs = measure_costs(loaded.model, MAX_NODES, some, rounds)
        if briefly:
            return costs
        _save(path, _measured(loaded, costs))
        return costs
    return StepCosts(dict(enumerate(found.costs_ms)), len(found.costs_ms) - 1)


def keep_quicker_costs(loaded: LoadedModel, max_nodes: int, costs: StepCosts) -> None:
    """Save costs at the speed of the last steps if they were quicker than at the start, which may have been busy.

    `max_nodes` is what `load_or_measure_costs` was asked for.
    """
    path, latest = _costs_file(loaded, max_nodes), _measured(loaded, costs)
    found = read_state(path, lambda data: _parse(data, {costs.max_nodes + 1}))
    if found is not None and latest.costs_ms[0] < found.costs_ms[0]:
        _save(path, latest)


def measure_costs(
    model: CausalModel,
    max_nodes: int,
    some: Sequence[int] = _SIZES,
    rounds: int = 5,
    clock: Callable[[], float] | None = None,
) -> StepCosts:
    """Measure steps of several sizes after `_PAST_TOKENS` slots of arbitrary content, by a clock in seconds."""
    clock = clock or time.perf_counter
    cache = model.new_cache(_PAST_TOKENS + max_nodes + 1)
    last_slot = min(_PAST_TOKENS, cache.capacity - max_nodes - 1) - 1
    model.prefill(np.zeros(1, dtype=np.int32), np.array([last_slot], dtype=np.int32), cache)

    def time_step(nodes: int) -> float:
        started = clock()
        logits = model.score(np.zeros(nodes + 1, dtype=np.int32), np.arange(ROOT, nodes, dtype=np.int32), cache)
        logits.argmax()  # a GPU returns logits before it has computed them
        return 1e3 * (clock() - started)

    sizes = sorted({size for size in some if size <= max_nodes} | {max_nodes})
    return StepCosts.measure(time_step, sizes, rounds)


def _costs_file(loaded: LoadedModel, max_nodes: int) -> Path:
    """Return the path of the costs, which depends on everything that changes their ratios."""
    machine = (platform.node(), os.cpu_count(), loaded.threads or usable_threads(), loaded.device)
    facts = (
        version(),
        loaded.digest,
        type(loaded.model).__name__,
        getattr(loaded.model, "form", ""),
        loaded.plan,
        max_nodes,
        *machine,
    )
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return measured_folder() / f"{key}.json"


def _save(path: Path, measured: Measured) -> None:
    try:
        write_state(path, measured.to_json().encode())
    except OSError as error:
        logger.warning("The step costs cannot be saved: %s", error.strerror)


def _measured(loaded: LoadedModel, costs: StepCosts) -> Measured:
    form = loaded.plan.weights if loaded.plan else getattr(loaded.model, "form", "plain")
    costs_ms = tuple(float(cost) for cost in costs.latest_ms)
    return Measured(loaded.name, form, loaded.device, loaded.threads or 0, costs_ms, platform.node())


def _parse(data: bytes, counts: Collection[int]) -> Measured:
    found = Measured.from_json(data)
    if len(found.costs_ms) not in counts:
        raise StateFileError(f"it has {len(found.costs_ms)} entries that are no costs of {sorted(counts)} sizes")
    return found


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
