"""What the engine holds: one `Drafters` for a model, and one `DraftingSession` for each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from drafting.calibration import NAMES, CalibrationArrays
from drafting.combined import Sources, empty_pool, expand, grow, lay_out, learn_from
from drafting.draft_budget import StepCosts, best_cut
from drafting.draft_tree import DraftTree
from drafting.ngram_index import GAP, MAX_MATCH
from drafting.prompt_lookup import PromptLookup
from drafting.token_recycling import RecyclingArrays, recycle
from drafting.verifier import AcceptedPath
from drafting.workspace_index import WorkspaceIndex

IntArray = npt.NDArray[np.int32]


class Drafters:
    """Everything that outlives a request: what was learned, and what the open workspaces hold."""

    def __init__(
        self,
        recycling: RecyclingArrays,
        calibration: CalibrationArrays,
        costs: StepCosts,
        enabled: Sequence[str] = NAMES,
        special: Sequence[int] = (),
    ) -> None:
        """Join the parts.

        Args:
            recycling: Candidates after tokens; learns from every step.
            calibration: Chances of guesses; learns from every step.
            costs: What a step with N nodes costs on this machine.
            enabled: Names of the sources that may guess.
            special: Tokens that hold a prompt together and are no text: no match crosses one, none is guessed.
        """
        self.recycling = recycling
        self.calibration = calibration
        self.costs = costs
        self.enabled = np.array([name in enabled for name in NAMES])
        self.special = np.array(special, dtype=np.int32)
        self._workspaces: dict[str, WorkspaceIndex] = {}

    def session(self, prompt: Sequence[int], workspace: str = "", tail: Sequence[int] = ()) -> DraftingSession:
        """Start a request.

        Args:
            prompt: The whole prompt, text after the cursor included.
            workspace: Whose documents may be drawn from; "" for none.
            tail: The tokens before the cursor, where the prompt does not end with them.
        """
        return DraftingSession(self, prompt, self.workspace(workspace), tail or prompt)

    def workspace(self, key: str) -> WorkspaceIndex:
        """The index of a workspace, empty at first. One workspace's text never shows up in another's drafts."""
        if key not in self._workspaces:
            self._workspaces[key] = WorkspaceIndex()
        return self._workspaces[key]

    def close_workspace(self, key: str) -> None:
        """Give a workspace's memory back."""
        self._workspaces.pop(key, None)


class DraftingSession:
    """Drafts for one request; a `Drafter`."""

    def __init__(
        self, drafters: Drafters, prompt: Sequence[int], workspace: WorkspaceIndex, tail: Sequence[int]
    ) -> None:
        """Index the prompt. `tail` ends where the next token goes."""
        self._drafters = drafters
        tokens = np.asarray(prompt, dtype=np.int32)
        self._prompt = PromptLookup(np.where(np.isin(tokens, drafters.special), GAP, tokens))
        self._workspace = workspace
        self._pool = empty_pool(drafters.costs.max_nodes)
        self._constrained = False
        self._append(tail)

    def propose(self, max_nodes: int, allowed: Callable[[int], bool] | None = None) -> DraftTree:
        """Guess what follows, as `Drafter.propose` says."""
        pool, calibration = self._pool, self._drafters.calibration
        sources = Sources(self._prompt.arrays, self._workspace.arrays, self._drafters.recycling, self._drafters.enabled)
        costs_ms = self._drafters.costs.costs_ms[: max_nodes + 1]
        pool.size[:] = 0
        expand(pool, sources, calibration, -1, 1.0)
        self._constrained = allowed is not None
        if allowed is not None:
            self._keep_allowed(allowed)
        grow(pool, sources, calibration, len(costs_ms) - 1)
        paths = pool.paths[pool.picked[: pool.size[1]]]
        return self._tree(best_cut(paths, costs_ms))

    def _keep_allowed(self, allowed: Callable[[int], bool]) -> None:
        """Drop candidates that may not come next; the others share their chance."""
        pool = self._pool
        count = int(pool.size[0])
        kept = np.array([allowed(int(token)) for token in pool.tokens[:count]], dtype=np.bool_)
        chances = np.where(kept, pool.chances[:count], 0.0)
        unknown = 1.0 - float(pool.chances[:count].sum())  # tokens nobody guessed: few of them are allowed
        pool.paths[:count] = chances / max(chances.sum() + 0.2 * unknown, 1e-6)

    def _tree(self, count: int) -> DraftTree:
        if count == 0:
            return DraftTree.empty()
        pool = self._pool
        order = lay_out(pool, count)
        row_of = np.full(count + 1, -1, dtype=np.int32)
        row_of[order] = np.arange(count, dtype=np.int32)
        picked = pool.picked[order]
        parents = row_of[pool.parents[picked]]  # parent −1 reads the last entry, which is −1
        return DraftTree(pool.tokens[picked], parents, pool.chances[picked], pool.sources[picked], NAMES)

    def observe_step(self, tree: DraftTree, path: AcceptedPath, tops: IntArray | None = None) -> None:
        """Learn from a verified step, as `Drafter.observe_step` says."""
        self._learn_chances(path.tokens)
        if tops is not None:
            tokens = np.concatenate((self._tail[-1:], tree.tokens))
            before = np.concatenate((self._tail[-2:-1], tokens[tree.parents + 1]))
            recycle(self._drafters.recycling, before, tokens, np.ascontiguousarray(tops, dtype=np.int32))
        self._prompt.observe(path.tokens)
        self._append(path.tokens)

    def _learn_chances(self, written: Sequence[int]) -> None:
        """Follow the written tokens through the candidates, guessed or not, as far as they were looked at."""
        pool, node = self._pool, -1
        for step, token in enumerate(written):
            if step > 0 or not self._constrained:
                learn_from(pool, self._drafters.calibration, node, token)
            count = int(pool.size[0])
            found = np.flatnonzero((pool.parents[:count] == node) & (pool.tokens[:count] == token))
            node = int(pool.nodes[found[0]]) if len(found) else -1
            if node < 0:
                return

    def _append(self, tokens: Sequence[int]) -> None:
        """Move the window over the context's end."""
        tail = self._pool.tails[0]
        new = np.asarray(tokens[-MAX_MATCH:], dtype=np.int32)
        self._pool.tails[0] = np.concatenate((tail[len(new) :], new))

    @property
    def _tail(self) -> IntArray:
        tail: IntArray = self._pool.tails[0]
        return tail
