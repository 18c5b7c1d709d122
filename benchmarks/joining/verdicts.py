"""The product's verdict on a text at a cursor: whether the grammar keeps it whole, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

from benchmarks.grammar.grammars import GRAMMARS
from benchmarks.joining.triples import Kind, Triple
from completion.decoding.constraints import open_grammar
from completion.decoding.finishing import Finisher
from completion.ending.context import cursor_context
from completion.prompt.healing import HealedPrefix
from completion.request import CompletionRequest, Mode, StopReason, Suggestion

_LOG_PROBABILITY = -1.0  # of a text: too unlikely to open something in a manual request


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on one text.

    Attributes:
        triple: The text with the cursor. A start of a longer text is one that still grows.
        invoked: Whether the request is manual.
        kept: Whether the text is kept whole.
        steps: Steps of its searches for what is missing.
        ms: Processor time in milliseconds, with the parse of the document if the cursor is new.
    """

    triple: Triple
    invoked: bool
    kept: bool
    steps: int
    ms: float


def verdict(triple: Triple, *, invoked: bool) -> Verdict:
    """Return the verdict on a text, without the rules of where it ends: only the grammar decides."""
    grammar = GRAMMARS.load(triple.language)
    assert grammar is not None  # the data has languages with a grammar
    before, started = grammar.shortest.steps, process_time()
    finisher = _finisher(triple, invoked)
    if triple.kind is Kind.START:
        kept = finisher.visible_part(triple.text, "") == triple.text
    else:
        suggestion = Suggestion(triple.text, token_log_probabilities=(_LOG_PROBABILITY,))
        result = finisher.finish(suggestion, StopReason.LINE_END)
        kept = isinstance(result, Suggestion) and result.text == triple.text
    return Verdict(triple, invoked, kept, grammar.shortest.steps - before, 1000 * (process_time() - started))


def _finisher(triple: Triple, invoked: bool) -> Finisher:
    mode = Mode.BLOCK if "\n" in triple.text else Mode.LINE
    request = CompletionRequest(
        triple.prefix, triple.suffix, triple.language, mode=mode, invoked=invoked, filters=False
    )
    grammar = open_grammar(request, HealedPrefix(triple.prefix, ""), GRAMMARS)
    return Finisher(request, cursor_context(request), grammar, b"")
