"""The constraints on the next token: the forced bytes of healing, the language's grammar, and the known names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from completion.grammar.constraint import GrammarConstraint
from completion.grammar.grammar import Grammars
from completion.grammar.lr.advance import Snapshot
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.healing import HealedPrefix, missing_after
from completion.request import CompletionRequest
from completion.syntax.brackets import enclosing_literal
from completion.syntax.parsing import IN_PROCESS, Parsing
from drafting.arrays import IntArray
from drafting.draft_tree import ROOT, DraftTree

NO_TOKEN = -1
"""Stands for a token where the constraints allow none; decoding ends there."""

_PART = re.compile(rb"[\w$\x80-\xff]*")
_MEMBER = re.compile(r"\.([^\W\d]\w*)")
_NEAR_CHARACTERS = 20_000  # around the cursor, where a name that the other servers lack may stand
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_TYPED = re.compile(r"(?<![\w$])[\w$]*\Z")


@dataclass(frozen=True, slots=True)
class NameState:
    """The text from the start of the output up to a token within the first name; immutable.

    Attributes:
        skipped: Number of bytes of the output that are still before the name.
        begun: Bytes of the name so far.
    """

    skipped: int
    begun: bytes = b""


class KnownNames:
    """The names that the editor's own language servers know at the cursor: tokens that lead to none of them cost more.

    They are sorted: those with a common start are a run, as in a trie. Source: "Guiding Language Models of Code with
    Global Context using Monitors", section 3, with a cost in place of a mask: a list may lack a name, because the line
    that is written defines it, or because the server misread unfinished code.

    Args:
        prefix: Text before the cursor, which may end with the start of one.
        run: Its healed run, with which the output starts.
    """

    unknown_cost: ClassVar[float] = 8.0
    """Cost of a token that leads to no known name, in nats; chosen on half 0 of `benchmarks.names`: 4 halves what is
    invented, pruning loses names that the line itself defines."""

    def __init__(self, names: Iterable[str], prefix: str, run: str) -> None:
        self._names = sorted({name.encode("utf-8", "replace") for name in names if _WORD.fullmatch(name)})
        typed = _TYPED.search(prefix)
        begun = typed[0] if typed else ""
        skipped = len(run.encode("utf-8", "replace")) - len(begun.encode("utf-8", "replace"))
        reads = bool(self._names) and skipped >= 0
        self.start: NameState | None = NameState(skipped) if reads else None

    def advance(self, state: NameState, data: bytes) -> tuple[NameState | None, bool]:
        """Return the state after a token, None once the name has ended or is unknown, and whether that is new."""
        if len(data) <= state.skipped:
            return NameState(state.skipped - len(data), state.begun), False
        part = _PART.match(data, state.skipped)
        end = part.end() if part else state.skipped
        begun = state.begun + data[state.skipped : end]
        index = bisect_left(self._names, begun)
        found = self._names[index] if index < len(self._names) else b""
        if end < len(data):
            return None, bool(begun) and found != begun
        is_known = found.startswith(begun)
        return NameState(0, begun) if is_known else None, not is_known


def known_names(request: CompletionRequest, run: str) -> KnownNames | None:
    """Return the known names of a request with its healed run: also what follows a dot elsewhere in the document.

    There are none in comments and strings, and where the text after the cursor goes on with the name.
    """
    goes_on = request.suffix[:1].isalnum() or request.suffix[:1] == "_"
    if not request.names or goes_on or enclosing_literal(request.prefix, request.language) is not None:
        return None
    before, after = _TYPED.sub("", request.prefix[-_NEAR_CHARACTERS:]), request.suffix[:_NEAR_CHARACTERS]
    return KnownNames((*request.names, *_MEMBER.findall(f"{before} {after}")), request.prefix, run)


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """State of all constraints after some tokens; immutable, so that draft nodes share it.

    Attributes:
        forced: Forced bytes that are still missing from the output.
    """

    forced: bytes
    grammar: Snapshot | None
    name: NameState | None = None

    @property
    def free(self) -> bool:
        """Whether every token may come next, at no cost."""
        return not self.forced and self.grammar is None and self.name is None


FREE = ConstraintState(b"", None)
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
        forced: Bytes that the output must start with.
        stop_ids: Stop tokens, which are allowed everywhere after the forced bytes.
    """

    def __init__(
        self,
        tokenizer: CodeTokenizer,
        forced: bytes,
        grammar: GrammarConstraint | None = None,
        stop_ids: frozenset[int] = frozenset(),
        names: KnownNames | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._grammar = grammar
        self._stop_ids = stop_ids
        self._names = names
        self.start = ConstraintState(forced, grammar.root if grammar else None, names.start if names else None)

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token."""
        return self._tokenizer.token_bytes(token)

    def advance(self, state: ConstraintState, token: int, *, is_guess: bool = False) -> ConstraintState | None:
        """Return the state after a token, None if the token is not allowed, or a guess beyond the grammar's bounds."""
        if token in self._stop_ids:
            return None if state.forced else state
        data = self._tokenizer.token_bytes(token)
        forced = missing_after(data, state.forced)
        if forced is None:
            return None
        name = self._names.advance(state.name, data)[0] if self._names and state.name else None
        if self._grammar is None or state.grammar is None:
            return ConstraintState(forced, None, name)
        grammar = self._grammar.advance(state.grammar, data, is_guess=is_guess)
        return None if grammar is None else ConstraintState(forced, grammar, name)

    def after(self, state: ConstraintState, emitted: int) -> ConstraintState:
        """Return the state after a token that was emitted, or after NO_TOKEN."""
        return (self.advance(state, emitted) if emitted != NO_TOKEN else None) or FREE

    def allow(self, state: ConstraintState, token: int) -> bool:
        """Return whether a token is allowed."""
        return state.free or self.advance(state, token) is not None

    def takes(self, state: ConstraintState, token: int) -> bool:
        """Return whether a token is allowed at no cost."""
        return not self.cost(state, token) and self.allow(state, token)

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
        return self._tokenizer.tokens_with_prefix(state.forced) if state.forced else None
