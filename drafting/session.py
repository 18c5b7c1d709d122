"""State of drafting in the engine: one `Drafters` for a model, and one `DraftingSession` for each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from drafting.arrays import FloatArray, IntArray
from drafting.calibration import NAMES, CalibrationArrays, default_calibration
from drafting.candidate_pool import empty_pool, lay_out, learn_path
from drafting.draft_budget import ALONE, SharedStep, StepCosts
from drafting.draft_tree import DraftTree
from drafting.sources.ngram_index import GAP, MAX_MATCH
from drafting.sources.ngram_model import NgramModel
from drafting.sources.prompt_lookup import PromptLookup
from drafting.sources.token_recycling import RecyclingArrays, empty_recycling, recycle
from drafting.sources.workspace_index import WorkspaceIndex
from drafting.tree_growth import Sources, expand, grow
from drafting.verifier import AcceptedPath

UNGUESSED_SHARE = 0.2
"""Factor on the probability that no candidate comes next, where a constraint allows few tokens."""


class Drafters:
    """State that outlives a request: the calibration, the step costs, and the open workspaces.

    Attributes:
        calibration: Evidence of how often guesses are right; learned at every step, shared by all workspaces.
        costs: Cost of a step with N nodes on this machine; learned at every step.
    """

    def __init__(
        self,
        calibration: CalibrationArrays,
        costs: StepCosts,
        vocabulary_size: int,
        enabled: Sequence[str] = NAMES,
        special: Sequence[int] = (),
        line_ends: Sequence[int] = (),
        common: Callable[[], RecyclingArrays] = empty_recycling,
    ) -> None:
        """Make drafters without workspaces.

        Args:
            calibration: What earlier processes learned, or the default one.
            costs: Timings of steps.
            vocabulary_size: Number of the model's tokens.
            enabled: Names of the sources that may guess.
            special: Tokens that structure a prompt: no match crosses one, and none is guessed.
            line_ends: Tokens with a line break: nothing is guessed after them in a single-line request.
            common: Returns where recycling starts in a workspace, for example `common_recycling`.
        """
        self.calibration = calibration
        self.costs = costs
        self.enabled = np.array([name in enabled for name in NAMES])
        self.special = np.array(sorted(special), dtype=np.int32)
        self.line_ends = np.zeros(vocabulary_size, dtype=np.bool_)
        self.line_ends[list(line_ends)] = True
        self._common = common
        self._workspaces: dict[str, WorkspaceIndex] = {}
        self._recycling: dict[str, RecyclingArrays] = {}
        self._no_documents = WorkspaceIndex(budget_tokens=0)

    def session(
        self, prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = (), *, single_line: bool = False
    ) -> DraftingSession:
        """Start a request.

        Args:
            prompt: The whole prompt, suffix included.
            workspace: Workspace whose documents and recycled candidates may be used; "" for no documents.
            tail: Tokens before the cursor, if the prompt does not end with them.
            single_line: Whether the completion ends with its first line.
        """
        final = self.line_ends if single_line else self.line_ends[:0]
        index = self._workspaces.get(workspace, self._no_documents)
        return DraftingSession(self, prompt, index, self.recycling(workspace), tail or prompt, final)

    def ngrams(self, prompt: Sequence[int], workspace: str = "") -> NgramModel:
        """Return n-gram counts of a prompt and a workspace; no n-gram crosses a special token."""
        lookup = PromptLookup(_without(self.special, prompt))
        return NgramModel([lookup.arrays, self._workspaces.get(workspace, self._no_documents).arrays])

    def workspace(self, key: str) -> WorkspaceIndex:
        """Return the index of a workspace, empty at first. A workspace's tokens never appear in another's drafts."""
        if key not in self._workspaces:
            self._workspaces[key] = WorkspaceIndex()
        return self._workspaces[key]

    def recycling(self, key: str) -> RecyclingArrays:
        """Return the model's best tokens in a workspace, at first the common ones; "" is no workspace.

        They could reveal what was written there, so they stay in memory and are dropped with the workspace.
        """
        if key not in self._recycling:
            self._recycling[key] = self._common()
        return self._recycling[key]

    def arrays(self) -> list[npt.NDArray[Any]]:
        """Return the arrays with what was learned and indexed. May be called on any thread."""
        indexes = [self._no_documents, *list(self._workspaces.values())]
        groups = [self.calibration, *list(self._recycling.values()), *(each.arrays for each in indexes)]
        return [self.line_ends, *(array for group in groups for array in group)]

    def size_bytes(self, key: str) -> int:
        """Return the memory of a workspace."""
        index, recycling = self._workspaces.get(key), self._recycling.get(key, ())
        return (index.size_bytes if index else 0) + sum(array.nbytes for array in recycling)

    def close_workspace(self, key: str) -> None:
        """Free a workspace's memory."""
        self._workspaces.pop(key, None)
        self._recycling.pop(key, None)

    @staticmethod
    def warm_up() -> None:
        """Compile all kernels before the first request: seconds at a machine's first run, then read from a cache."""
        scratch = Drafters(default_calibration(), StepCosts({0: 1.0, 4: 1.0}, 4), vocabulary_size=8)
        scratch.workspace("").update("path", [1, 2, 3, 4])
        scratch.workspace("").update("path", [1, 2, 4])
        session = scratch.session([1, 2, 3, 1, 2])
        tree = session.propose([1, 2, 3, 1, 2])
        best = np.ones((1 + len(tree), 1), dtype=np.int32)
        session.observe(tree, best, AcceptedPath((0,), (3,), ("model",)), 1.0)


class DraftingSession:
    """Guesses continuations of one request's tokens. A wrong guess costs time, never correctness."""

    def __init__(
        self,
        drafters: Drafters,
        prompt: Sequence[int],
        workspace: WorkspaceIndex,
        recycling: RecyclingArrays,
        tail: Sequence[int],
        final: npt.NDArray[np.bool_],
    ) -> None:
        """Index the prompt. `tail` ends where the next token goes; nothing is guessed after `final` tokens."""
        self._drafters = drafters
        self._prompt = PromptLookup(_without(drafters.special, prompt))
        self._length = len(prompt)
        self._tail = _window(np.full(MAX_MATCH, GAP, dtype=np.int32), tail)
        self._workspace = workspace
        self._recycling = recycling
        self._final = final
        self._pool = empty_pool(drafters.costs.max_nodes)
        self._certain: Sequence[int] = ()
        self._constrained = False

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        """Guess what follows the context, as a tree whose likeliest path comes first.

        Args:
            context: The prompt, the tokens of all paths observed so far, and further tokens that are certain to follow.
            allowed: Returns whether a token may come next (healing); None if every token may.
            shared: What else the step scores.
        """
        pool, calibration = self._pool, self._drafters.calibration
        sources = Sources(
            self._prompt.arrays, self._workspace.arrays, self._recycling, self._drafters.enabled, self._final
        )
        self._certain, self._constrained = tuple(context[self._length :]), allowed is not None
        pool.size[:] = 0
        pool.tails[0] = _window(self._tail, self._certain)
        costs_ms = self._costs_ms(len(self._certain) + shared.rows, shared.attempts)
        if len(costs_ms) == 0:
            return DraftTree.empty()
        expand(pool, sources, calibration, -1, 1.0)
        if allowed is not None:
            self._keep_allowed(allowed)
        count = grow(pool, sources, calibration, costs_ms)
        return DraftTree(*lay_out(pool, count), NAMES) if count else DraftTree.empty()

    def _costs_ms(self, rows: int, attempts: int) -> FloatArray:
        """Return what guesses cost after `rows` other rows.

        The cost of a step without guesses is shared with the other attempts.
        """
        costs_ms = self._drafters.costs.costs_ms[rows:]
        alone = attempts == 0 or not len(costs_ms)
        return costs_ms if alone else costs_ms - costs_ms[0] * np.float32(attempts / (attempts + 1))

    def observe_text(self, before: Sequence[int], tokens: Sequence[int]) -> None:
        """Guess from another text as well: an attempt, which its branches often repeat, or a turn without changes."""
        self._prompt.observe((GAP, *before[-MAX_MATCH:], *tokens))

    def branch(self, written: Sequence[int]) -> DraftingSession:
        """Return a session with the same sources for a branch, which starts with the `written` tokens."""
        other = copy(self)
        other.start_branch(written)
        return other

    def start_branch(self, written: Sequence[int]) -> None:
        """Copy what changes, and move past the tokens that the branch starts with."""
        self._pool = empty_pool(self._drafters.costs.max_nodes)
        self._tail = _window(self._tail, written)
        self._prompt = self._prompt.copy()
        self._prompt.observe((GAP, *self._tail))
        self._length += len(written)

    def _keep_allowed(self, allowed: Callable[[int], bool]) -> None:
        """Drop candidates that may not come next; the others get their probability."""
        pool, count = self._pool, int(self._pool.size[0])
        kept = np.array([allowed(int(token)) for token in pool.tokens[:count]], dtype=np.bool_)
        unguessed = UNGUESSED_SHARE * (1.0 - float(pool.chances[:count].sum()))
        chances = np.where(kept, pool.chances[:count], np.float32(0.0))
        pool.chances[:count] = chances / max(float(chances.sum()) + unguessed, 1e-6)
        pool.paths[:count] = pool.chances[:count]

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        """Learn from a verified step. The path's tokens are now the end of the context.

        Args:
            tree: The scored tree: certain tokens, then the proposal's nodes that the constraints allow.
            best: The model's best successors of the anchor and of each node, best first.  # [1 + nodes, ≥ 1]
            path: The accepted path.
            step_ms: Duration of the step; 0 if it scored anything besides the tree.
        """
        self._drafters.costs.observe(len(tree), step_ms)
        if path.tokens[: len(self._certain)] == self._certain:
            written = np.asarray(path.tokens[len(self._certain) :], dtype=np.int32)
            learn_path(self._pool, self._drafters.calibration, written, int(self._constrained))
        tokens = np.concatenate((self._tail[-1:], tree.tokens))
        before = np.concatenate((self._tail[-2:-1], tokens[tree.parents + 1]))
        recycle(self._recycling, before, tokens, np.ascontiguousarray(_without(self._drafters.special, best)))
        self._prompt.observe(path.tokens)
        self._tail = _window(self._tail, path.tokens)
        self._length += len(path.tokens)


def _window(tail: IntArray, tokens: Sequence[int]) -> IntArray:
    """Return the last MAX_MATCH tokens of a tail with more tokens after it.  # [MAX_MATCH]."""
    new = np.asarray(tokens[-MAX_MATCH:], dtype=np.int32)
    return np.concatenate((tail[len(new) :], new))


def _without(special: IntArray, tokens: npt.ArrayLike) -> IntArray:
    """Return tokens with gaps in place of special ones, in the same shape."""
    array = np.asarray(tokens, dtype=np.int32)
    return np.where(np.isin(array, special), np.int32(GAP), array)
