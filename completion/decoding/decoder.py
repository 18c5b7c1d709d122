"""The decoding loop: propose, prune, forward, accept, compact; one step at a time, cancellable between steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from completion.cache.kv_session import KVSession
from completion.cancellation import CancelToken
from completion.decoding.constraints import FREE, Constraints, ConstraintState
from completion.model.causal_model import CausalModel, Logits
from completion.model.sampling import draw
from completion.request import Sampling
from drafting.arrays import FloatArray, IntArray
from drafting.draft_tree import ROOT, DraftTree
from drafting.drafter import ALONE, Drafter, SharedStep
from drafting.verifier import ANCHOR_ROW, AcceptedPath, accept_path

NO_TOKEN = -1
"""Drawn where the constraints leave no token: decoding ends there."""

RECYCLED_TOKENS = 8
"""So many best successors of each scored row are shown to the drafters."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """What the model held likely at one place of a text, the token that it took included.

    Attributes:
        taken: That token.
        tokens: The best few, best first.  # [RECYCLED_TOKENS]
        log_probabilities: Of each under the model, before constraints.  # [RECYCLED_TOKENS]
        state: Where the text stood within the constraints.
    """

    taken: int
    tokens: IntArray
    log_probabilities: FloatArray
    state: ConstraintState


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of decoding added.

    Attributes:
        tokens: Emitted tokens; the last may be a stop token or NO_TOKEN.
        drafters: Who wrote each token.
        log_probabilities: Of each token under the model, given the forced bytes, before the grammar.
        drafted: Nodes that were scored.
        drafting_ms: Time spent on guesses.
        rivals: Of each token.
        rows: Scored rows of the text, from the anchor's on: all but the last token's, which is the next anchor.
    """

    tokens: tuple[int, ...]
    drafters: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    drafted: int
    drafting_ms: float
    rivals: tuple[Rivals, ...] = ()
    rows: tuple[int, ...] = (ANCHOR_ROW,)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a step scores for one text: its last token, the anchor, and guesses behind it.

    Attributes:
        tree: The guesses that the constraints allow.
        states: The constraints' state behind the anchor and behind each guess.  # [1 + nodes]
        drafting_ms: Time spent on guesses.
        ready: When they were ready, by `time.perf_counter`.
    """

    tree: DraftTree
    states: Sequence[ConstraintState]
    drafting_ms: float
    ready: float


@dataclass(slots=True)
class Decoder:
    """Decodes one request on top of a prepared session.

    Attributes:
        model: Scores draft trees.
        session: Holds the prompt but for its last few tokens, the last one in any case.
        prompt: The prompt's tokens.
        constraints: What may come next.
        drafter: Who guesses; None for plain decoding.
        forced_tokens: Tokenises the forced bytes, whose tokens are guessed first.
        sampling: How a token is drawn.
        ends: Stop tokens.
        state: Where the text stands within the constraints.
        tokens: What was emitted so far.
    """

    model: CausalModel
    session: KVSession
    prompt: Sequence[int]
    constraints: Constraints
    drafter: Drafter | None
    forced_tokens: Callable[[bytes], Sequence[int]]
    sampling: Sampling
    ends: frozenset[int]
    state: ConstraintState
    tokens: list[int] = field(default_factory=list)

    def steps(self, cancel: CancelToken) -> Iterator[Step]:
        """Decode until a stop token, or until the caller stops asking.

        Raises:
            CancelledError: Between two steps.
        """
        while True:
            cancel.raise_if_cancelled()
            proposal = self.propose()
            pending = self._pending()
            logits = self._forward(pending, proposal.tree)
            step = self.accept(proposal, logits, is_usual=len(pending) == 1)
            before = len(pending) - 1
            rows = (*range(before), *(before + row for row in step.rows))
            self.session.commit(rows, [*pending, *step.tokens[:-1]])
            yield step
            if step.tokens[-1] in self.ends or step.tokens[-1] == NO_TOKEN:
                return

    def propose(self, shared: SharedStep = ALONE) -> Proposal:
        """Guess what follows, for a step that may score other texts as well."""
        started = time.perf_counter()
        guesses = self._guess(self.state, shared)
        proposed = time.perf_counter()
        tree, states = prune(guesses, self.constraints, self.state)
        return Proposal(tree, states, 1e3 * (proposed - started), time.perf_counter())

    def accept(self, proposal: Proposal, logits: Logits, *, is_usual: bool) -> Step:
        """Add what the model would have written anyway to the text.

        Args:
            proposal: What was scored.
            logits: Of the anchor and of each guess.  # [1 + nodes]
            is_usual: Whether nothing else was scored: the time since then is what such a step costs.
        """
        tree, states = proposal.tree, proposal.states
        path = accept_path(tree, self._chooser(logits, tree, states), self.ends | {NO_TOKEN})
        verified = time.perf_counter()
        if self.drafter is not None:
            step_ms = 1e3 * (verified - proposal.ready) if is_usual else 0.0
            self.drafter.observe(tree, logits.top(RECYCLED_TOKENS)[0], path, step_ms)
        drafting_ms = proposal.drafting_ms + 1e3 * (time.perf_counter() - verified)
        log_probabilities = self._log_probabilities(logits, path, states)
        rivals = _rivals(logits, path, states, log_probabilities)
        self.state = self._after(path, states)
        self.tokens += path.tokens
        return Step(path.tokens, path.drafters, log_probabilities, len(tree), drafting_ms, rivals, path.rows)

    def _log_probabilities(
        self, logits: Logits, path: AcceptedPath, states: Sequence[ConstraintState]
    ) -> tuple[float, ...]:
        """Of each emitted token, given that it agrees with what stands before the cursor."""
        return tuple(
            log_probability(logits.row(row), token, self.constraints.candidates(states[row]))
            for row, token in zip(path.rows, path.tokens, strict=True)
        )

    def _guess(self, state: ConstraintState, shared: SharedStep) -> DraftTree:
        """Guesses: first the tokens that the forced bytes will most likely become, then what the drafters say."""
        if self.drafter is None:
            return DraftTree.empty()
        certain = self.forced_tokens(state.forced.remaining)[:-1] if state.forced.remaining else ()
        behind: ConstraintState | None = state
        for token in certain:
            behind = self.constraints.advance(behind, token) if behind else None
        if behind is None:
            certain, behind = (), state
        forced = behind.forced
        allowed = (
            (lambda token: forced.advance(self.constraints.token_bytes(token)) is not None)
            if forced.remaining
            else None
        )
        guesses = self.drafter.propose([*self.prompt, *self.tokens, *certain], allowed, shared)
        return guesses.after(certain, "healing") if certain else guesses

    def _pending(self) -> list[int]:
        """The end of the text that is not in the cache: the anchor, whose logits are needed, and few before it."""
        return [*self.prompt, *self.tokens][len(self.session.tokens) :]

    def _forward(self, pending: Sequence[int], tree: DraftTree) -> Logits:
        """Score the pending tokens as a chain and the tree below it; logits from the anchor on.  # [1 + nodes]."""
        chain = np.arange(ROOT, len(pending) - 1, dtype=np.int32)
        tokens = np.concatenate((np.asarray(pending, dtype=np.int32), tree.tokens))
        parents = np.concatenate((chain, tree.parents + len(pending)))
        logits = self.model.score(tokens, parents, self.session.cache)
        return logits if len(pending) == 1 else RowsOf(logits, len(pending) - 1, 1 + len(tree))

    def _chooser(self, logits: Logits, tree: DraftTree, states: Sequence[ConstraintState]) -> Callable[[int], int]:
        greedy = logits.argmax() if self.sampling.temperature <= 0 else None
        length = len(self.prompt) + len(self.tokens)

        def choose(row: int) -> int:
            state = states[row]
            unbound = not self.constraints.bind(state)
            if greedy is not None and (unbound or self.constraints.advance(state, int(greedy[row])) is not None):
                return int(greedy[row])
            depth = 0 if row == ANCHOR_ROW else int(tree.depths[row - 1])
            allowed = None if unbound or state.grammar is None else _allowed_by(self.constraints, state)
            candidates = self.constraints.candidates(state)
            drawn = draw(logits.row(row), self.sampling, length + depth, candidates, allowed)
            return NO_TOKEN if drawn is None else drawn

        return choose

    def _after(self, path: AcceptedPath, states: Sequence[ConstraintState]) -> ConstraintState:
        """The constraints' state behind an accepted path."""
        last = states[path.rows[-1]]
        following = self.constraints.advance(last, path.tokens[-1]) if path.tokens[-1] != NO_TOKEN else None
        return following or FREE


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Some neighbouring rows of logits."""

    logits: Logits
    first: int
    count: int

    def argmax(self) -> IntArray:
        """See `Logits`."""
        return self.logits.argmax()[self.first : self.first + self.count]

    def top(self, count: int) -> tuple[IntArray, FloatArray]:
        """See `Logits`."""
        ids, scores = self.logits.top(count)
        return ids[self.first : self.first + self.count], scores[self.first : self.first + self.count]

    def row(self, index: int) -> FloatArray:
        """See `Logits`."""
        return self.logits.row(self.first + index)


def prune(tree: DraftTree, constraints: Constraints, start: ConstraintState) -> tuple[DraftTree, list[ConstraintState]]:
    """Drop guesses that the constraints reject, with everything below them.

    Returns:
        The remaining tree, and the constraints' state behind the anchor and behind each remaining node.  # [rows]
    """
    if start.free:
        return tree, [start] * (len(tree) + 1)
    states: dict[int, ConstraintState] = {ROOT: start}
    for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
        before = states.get(int(parent))
        after = constraints.advance(before, int(token)) if before else None
        if after is not None:
            states[node] = after
    kept = [node for node in range(len(tree)) if node in states]
    return tree.subtree(kept), [start, *(states[node] for node in kept)]


def _allowed_by(constraints: Constraints, state: ConstraintState) -> Callable[[int], bool]:
    return lambda token: constraints.advance(state, token) is not None


def _rivals(
    logits: Logits, path: AcceptedPath, states: Sequence[ConstraintState], log_probabilities: Sequence[float]
) -> tuple[Rivals, ...]:
    """The best few tokens at each place of a path, but where decoding ended."""
    ids, scores = logits.top(RECYCLED_TOKENS)
    return tuple(
        Rivals(token, ids[row], scores[row] - (logits.row(row)[token] - log_probability), states[row])
        for row, token, log_probability in zip(path.rows, path.tokens, log_probabilities, strict=True)
        if token != NO_TOKEN
    )


def log_probability(row: FloatArray, token: int, candidates: IntArray | None = None) -> float:
    """Logarithm of p of a token among candidates (None: all tokens); minus infinity for NO_TOKEN.

    Args:
        row: Logits.  # [vocabulary]
        token: One of the candidates.
        candidates: What the text before the cursor allows: that the model would not have written it says nothing of
            what follows.  # [candidates]
    """
    if token == NO_TOKEN:
        return -np.inf
    allowed = row if candidates is None else row[candidates]
    best = allowed.max()
    return float(row[token] - best - np.log(np.exp(allowed - best).sum()))
