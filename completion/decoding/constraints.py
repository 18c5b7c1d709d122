"""What may come next: the forced bytes of healing and the language's grammar, as one state for each draft node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion.grammar.constraint import GrammarConstraint
from completion.grammar.lr.advance import Snapshot
from completion.prompt.healing import ForcedBytes, TokenBytes
from drafting.arrays import IntArray


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """Where a text stands within all constraints; immutable and shared."""

    forced: ForcedBytes
    grammar: Snapshot | None

    @property
    def free(self) -> bool:
        """Whether any token may come next."""
        return not self.forced.remaining and self.grammar is None


FREE = ConstraintState(ForcedBytes(b""), None)
"""Nothing is required any more."""


class Constraints:
    """Forced bytes and grammar together.

    Args:
        tokenizer: Gives the bytes of tokens.
        forced: What the output must start with.
        grammar: The language's constraint; None for none.
        ends: Stop tokens: they end the text wherever it stands, once nothing is forced any more.
        grammar_binds: Whether the grammar binds the model's own choice, or only prunes guesses.
    """

    def __init__(
        self,
        tokenizer: TokenBytes,
        forced: bytes,
        grammar: GrammarConstraint | None = None,
        ends: frozenset[int] = frozenset(),
        *,
        grammar_binds: bool = True,
    ) -> None:
        self._tokenizer = tokenizer
        self._grammar = grammar
        self._grammar_binds = grammar_binds
        self._ends = ends
        self.start = ConstraintState(ForcedBytes(forced), grammar.root if grammar else None)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token."""
        return self._tokenizer.token_bytes(token)

    def after(self, tokens: Sequence[int]) -> ConstraintState:
        """The state behind tokens from the start on; free where they broke a constraint that does not bind."""
        state: ConstraintState | None = self.start
        for token in tokens:
            state = self.advance(state, token) if state else None
        return state or FREE

    def advance(self, state: ConstraintState, token: int) -> ConstraintState | None:
        """The state after a token, None if the token is not allowed."""
        if token in self._ends:
            return None if state.forced.remaining else state
        data = self._tokenizer.token_bytes(token)
        forced = state.forced.advance(data)
        if forced is None:
            return None
        if self._grammar is None or state.grammar is None:
            return ConstraintState(forced, None)
        grammar = self._grammar.advance(state.grammar, data)
        return None if grammar is None else ConstraintState(forced, grammar)

    def bind(self, state: ConstraintState) -> bool:
        """Whether the model's own choice in this state is restricted."""
        return bool(state.forced.remaining) or (self._grammar_binds and state.grammar is not None)

    def candidates(self, state: ConstraintState) -> IntArray | None:
        """Ids that the forced bytes allow next, None where all are.  # [candidates]."""
        return state.forced.candidates(self._tokenizer)
