"""The constraints on the next token: the forced bytes of healing, the language's grammar, and the known names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion.decoding.known_names import KnownNames, NameState
from completion.grammar.constraint import GrammarConstraint
from completion.grammar.grammar import Grammars
from completion.grammar.lr.advance import Snapshot
from completion.prompt.healing import NOTHING_FORCED, ForcedBytes, HealedPrefix, TokenBytes
from completion.request import CompletionRequest
from completion.syntax.parsing import IN_PROCESS, Parsing
from drafting.arrays import IntArray
from drafting.draft_tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """State of all constraints after some tokens; immutable, so that draft nodes share it."""

    forced: ForcedBytes
    grammar: Snapshot | None
    name: NameState | None = None

    @property
    def free(self) -> bool:
        """Whether every token may come next, at no cost."""
        return not self.forced.remaining and self.grammar is None and self.name is None


FREE = ConstraintState(NOTHING_FORCED, None)
"""State without any constraint."""


def open_grammar(
    request: CompletionRequest, healed: HealedPrefix, grammars: Grammars, parsing: Parsing = IN_PROCESS
) -> GrammarConstraint:
    """Open the grammar's constraint for a request, which starts where the prompt ends, before the healed run.

    The text before the cursor may be in another language at first. Then the request has the last part of it only.
    """
    others = len(healed.shown) + len(healed.run) - len(request.prefix)
    language, before, after = request.language, healed.shown[others:], request.suffix
    return GrammarConstraint(grammars, language, before, after, request.grammar, healed.run, parsing)


class Constraints:
    """Forced bytes, grammar and known names as one constraint.

    Args:
        tokenizer: Source of the bytes of tokens.
        forced: Bytes that the output must start with.
        grammar: The language's constraint; None for none.
        stop_ids: Stop tokens, which are allowed everywhere after the forced bytes.
        names: The known names at the cursor; None for none.
    """

    def __init__(
        self,
        tokenizer: TokenBytes,
        forced: bytes,
        grammar: GrammarConstraint | None = None,
        stop_ids: frozenset[int] = frozenset(),
        names: KnownNames | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._grammar = grammar
        self._stop_ids = stop_ids
        self._names = names
        self.start = ConstraintState(
            ForcedBytes(forced), grammar.root if grammar else None, names.start if names else None
        )

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token."""
        return self._tokenizer.token_bytes(token)

    def advance(self, state: ConstraintState, token: int, *, is_guess: bool = False) -> ConstraintState | None:
        """Return the state after a token, None if the token is not allowed, or a guess beyond the grammar's bounds."""
        if token in self._stop_ids:
            return None if state.forced.remaining else state
        data = self._tokenizer.token_bytes(token)
        forced = state.forced.advance(data)
        if forced is None:
            return None
        name = self._names.advance(state.name, data)[0] if self._names and state.name else None
        if self._grammar is None or state.grammar is None:
            return ConstraintState(forced, None, name)
        grammar = self._grammar.advance(state.grammar, data, is_guess=is_guess)
        return None if grammar is None else ConstraintState(forced, grammar, name)

    def takes(self, state: ConstraintState, token: int) -> bool:
        """Return whether a token is allowed at no cost."""
        return not self.cost(state, token) and self.advance(state, token) is not None

    def cost(self, state: ConstraintState, token: int) -> float:
        """Return what a token costs that leads to no known name, in nats; 0 for any other."""
        if self._names is None or state.name is None or token in self._stop_ids:
            return 0.0
        _, is_unknown = self._names.advance(state.name, self._tokenizer.token_bytes(token))
        return self._names.unknown_cost if is_unknown else 0.0

    def prune(self, tree: DraftTree, start: ConstraintState) -> tuple[DraftTree, list[ConstraintState]]:
        """Drop the nodes of a draft tree that are not allowed, with everything below them.

        Returns:
            The remaining tree, and the state after the anchor and after each remaining node.  # [1 + nodes]
        """
        if start.free:
            return tree, [start] * (len(tree) + 1)
        states: dict[int, ConstraintState] = {ROOT: start}
        for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
            before = states.get(int(parent))
            after = self.advance(before, int(token), is_guess=True) if before else None
            if after is not None:
                states[node] = after
        kept = [node for node in range(len(tree)) if node in states]
        return tree.subtree(kept), [start, *(states[node] for node in kept)]

    def candidates(self, state: ConstraintState) -> IntArray | None:
        """Return the ids that the forced bytes allow next, None if they allow all.  # [candidates]."""
        return state.forced.candidates(self._tokenizer)

    def candidates_along(self, tokens: Sequence[int]) -> list[IntArray | None]:
        """Return what `candidates` returns before each of the first tokens."""
        found, forced = list[IntArray | None](), self.start.forced
        for token in tokens:
            found.append(forced.candidates(self._tokenizer))
            forced = forced.advance(self._tokenizer.token_bytes(token)) or NOTHING_FORCED
        return found
