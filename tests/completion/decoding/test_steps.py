"""What a decoding step asks of its drafter, what it scores, and what it teaches."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from completion.alternatives.branch_tree import BranchTree
from completion.cancellation import CancelToken
from completion.decoding.constraints import Constraints
from completion.decoding.decoder import Decoder
from completion.decoding.joint_passes import JointPasses
from completion.errors import CancelledError
from completion.grammar.constraint import GrammarConstraint
from completion.grammar.grammar import Grammars
from completion.model.logits import RowSlice
from completion.request import GrammarMode
from drafting.arrays import IntArray
from drafting.draft_budget import ALONE, SharedStep
from drafting.draft_tree import DraftTree
from drafting.verifier import AcceptedPath
from tests.completion.decoding.test_decoding import decoder_at
from tests.completion.model.rows import chain, tokens
from tests.completion.tasks import DOCUMENT, task_at

CODE = "def add(first, second):\n    return "


class GivenChain:
    """A drafter that guesses given tokens once, and keeps what it is asked and told."""

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens
        self.contexts: list[list[int]] = []
        self.allowed: list[Callable[[int], bool] | None] = []
        self.shared: list[SharedStep] = []
        self.steps_ms: list[float] = []

    def propose(
        self, context: Sequence[int], allowed: Callable[[int], bool] | None = None, shared: SharedStep = ALONE
    ) -> DraftTree:
        self.contexts.append(list(context))
        self.allowed.append(allowed)
        self.shared.append(shared)
        tokens, self.tokens = self.tokens, ()
        return DraftTree.empty().after(tokens, "given") if tokens else DraftTree.empty()

    def observe(self, tree: DraftTree, best: IntArray, path: AcceptedPath, step_ms: float) -> None:
        assert len(best) == len(tree) + 1
        self.steps_ms.append(step_ms)


class WatchedLogits(RowSlice):
    """Logits that a weak reference can follow."""

    __slots__ = ("__weakref__",)


def drafted_at(loaded, shown: str, forced: bytes, *guesses: int) -> tuple[Decoder, GivenChain]:
    decoder, drafter = decoder_at(loaded, shown, forced), GivenChain(*guesses)
    decoder.drafter = drafter
    return decoder, drafter


def test_of_the_forced_bytes_all_tokens_but_the_last_are_certain_and_guesses_go_on_with_its_bytes(tiny_model):
    """The model may write a longer token in the place of the last one."""
    tokenizer = tiny_model.tokenizer
    forced = b"    return self.items"
    *certain, final = tokenizer.encode(forced.decode())
    decoder, drafter = drafted_at(tiny_model, "def f():\n", forced)
    step = next(decoder.steps(CancelToken()))
    assert drafter.contexts == [[*decoder.prompt, *certain]]
    assert step.drafted == len(certain)
    [allowed] = drafter.allowed
    assert allowed is not None
    spelled = tokenizer.token_bytes(final)
    for token in range(tokenizer.vocabulary_size):
        data = tokenizer.token_bytes(token)
        assert allowed(token) == bool(data and (data.startswith(spelled) or spelled.startswith(data)))


def test_without_forced_bytes_every_token_may_be_guessed(tiny_model):
    decoder, drafter = drafted_at(tiny_model, CODE, b"")
    next(decoder.steps(CancelToken()))
    assert drafter.allowed == [None]


def test_only_the_time_of_a_step_without_the_end_of_the_prompt_is_a_cost_of_its_tree(tiny_model):
    decoder, drafter = drafted_at(tiny_model, CODE, b"")
    steps = decoder.steps(CancelToken())
    next(steps)
    assert drafter.steps_ms == [0.0]
    next(steps)
    assert drafter.steps_ms[1] > 0


def test_a_right_guess_behind_a_stop_token_is_not_taken(tiny_model):
    [first, stop, behind] = _greedy(tiny_model, 3)
    decoder, _ = drafted_at(tiny_model, CODE, b"", first, stop, behind)
    decoder.stop_ids = frozenset({stop})
    steps = list(decoder.steps(CancelToken()))
    assert [step.tokens for step in steps] == [(first, stop)]
    assert decoder.session.tokens == [*decoder.prompt, first]


def test_a_step_that_is_cancelled_before_it_begins_drafts_nothing(tiny_model):
    decoder, drafter = drafted_at(tiny_model, CODE, b"")
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        next(decoder.steps(cancel))
    assert drafter.contexts == []


def test_a_step_between_whose_draft_and_pass_another_request_ran_teaches_no_time(tiny_model):
    passes, (decoder, drafter) = JointPasses(tiny_model.model), drafted_at(tiny_model, CODE, b"")
    decoder.model, decoder.company = passes, passes.company
    passes.start(lambda: [*zip(range(5), decoder.steps(CancelToken()), strict=False)] and None)
    passes.run()  # the first step computes the prompt as well
    passes.run()
    passes.start(passes.take_turn)  # runs, and waits for its turn, before the third step's pass
    while len(passes):
        passes.run()  # its turn is between the draft and the pass of the fourth step
    assert [step_ms > 0 for step_ms in drafter.steps_ms[:5]] == [False, True, False, False, True]


def test_the_steps_of_a_request_and_of_its_branches_know_of_the_rows_of_other_requests(tiny_model):
    task, asked = task_at(tiny_model, len(DOCUMENT)), []
    task.model.start(lambda: task.model.score(tokens(3), chain(3), task.model.new_cache(8)) and None)

    def steps():
        first = task.first_attempt()
        asked.append(first.source.company())
        drafter = GivenChain()
        tree = BranchTree(task.model, task.session, len(task.session.tokens))
        tree.add(first, 0).drafter = drafter
        tree.step(lambda _: False)
        asked.extend(drafter.shared)

    task.model.start(steps)
    while len(task.model):
        task.model.run()
    assert asked == [SharedStep(3, 1)] * 2


def _greedy(loaded, count: int) -> list[int]:
    """Return different tokens that plain decoding writes first."""
    decoder, steps = decoder_at(loaded, CODE, b""), []
    for step in decoder.steps(CancelToken()):
        steps += step.tokens
        if len(steps) == count:
            break
    assert len(np.unique(steps)) == count
    return steps


def test_a_steps_logits_are_freed_before_the_next_step_computes_its_own(tiny_model, monkeypatch):
    decoder, scored, earlier = decoder_at(tiny_model, CODE, b""), tiny_model.model.score, []

    def score(*given: Any) -> Any:
        assert [logits for logits in earlier if logits() is not None] == []
        found = WatchedLogits(scored(*given), 0, len(given[0]) - given[4])
        earlier.append(weakref.ref(found))
        return found

    monkeypatch.setattr(tiny_model.model, "score", score)
    steps = decoder.steps(CancelToken())
    for _ in range(4):
        next(steps)
    assert len(earlier) == 4


def test_the_tokens_of_the_forced_bytes_are_guesses_and_end_no_grammar(tiny_model):
    forced = b"x" * 60 + b" y"
    opened = GrammarConstraint(
        Grammars(), "c", "int a;\n/* " + "word " * 13_100, "\nint b;\n", GrammarMode.STRICT, forced.decode()
    )
    decoder, _ = drafted_at(tiny_model, "word ", forced)
    decoder.constraints = Constraints(tiny_model.tokenizer, forced, opened)
    decoder.state = decoder.constraints.start
    decoder.propose(ALONE)
    assert opened.off_reason is None
