"""The last word on a finished completion: the filters, then the grammar together with the text after the cursor."""

from __future__ import annotations

from dataclasses import replace

from completion.grammar.constraint import GrammarConstraint, Off
from completion.postprocess import Context, Dropped, DropReason, apply_filters
from completion.prompt.healing import heal
from completion.request import CompletionRequest, GrammarMode, StopReason, Suggestion
from completion.stopping.opening_line import closing

_CUT_SHORT = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET, StopReason.UNLIKELY})


def open_grammar(request: CompletionRequest, forced: bytes) -> GrammarConstraint | Off:
    """The grammar's constraint for a request; it begins where the prompt ends, before the healed run."""
    healed = forced.decode("utf-8", "replace")
    shown = request.prefix[: len(request.prefix) - len(healed)]
    return GrammarConstraint.open(request.language, shown, request.suffix, request.grammar, healed)


def finish(
    raw: Suggestion, reason: StopReason, request: CompletionRequest, context: Context, grammar: GrammarConstraint | Off
) -> Suggestion | Dropped:
    """What is offered of the generated text, or why nothing is."""
    left: Suggestion | Dropped = raw
    if request.filters:
        left = apply_filters(raw, replace(context, cut_short=reason in _CUT_SHORT))
    if request.grammar is GrammarMode.STRICT and isinstance(left, Suggestion):
        left = _cut_by_grammar(left, request, grammar, closing(left, reason, context))
    return left


def opening_line(
    line: Suggestion, request: CompletionRequest, context: Context, grammar: GrammarConstraint | Off
) -> Suggestion | None:
    """A whole line whose brackets are still to be closed, if it could be offered without what closes them."""
    alone = finish(line, StopReason.LINE_END, request, context, grammar)
    whole = apply_filters(line, context)
    return alone if isinstance(alone, Suggestion) and isinstance(whole, Suggestion) and alone == whole else None


def passing_part(text: str, shown: str, request: CompletionRequest, grammar: GrammarConstraint | Off) -> str:
    """The part of an unfinished text that may be shown: what stands so far leaves the document sound.

    Args:
        text: What the filters let pass.
        shown: The part of an earlier text that was shown.
        request: What was asked.
        grammar: The request's constraint.
    """
    if request.grammar is not GrammarMode.STRICT or len(text) <= len(shown):
        return text
    forced, written = _forced(request), text.encode()
    cut = grammar.growing_cut(forced + written, len(forced) + len(shown.encode()))
    return _cut_back(written, cut - len(forced))


def _cut_by_grammar(
    suggestion: Suggestion, request: CompletionRequest, grammar: GrammarConstraint | Off, closers: tuple[str, ...]
) -> Suggestion | Dropped:
    """Keep the longest beginning that leaves the document with no more syntax errors than it had.

    Args:
        suggestion: What the filters left.
        request: What was asked.
        grammar: The request's constraint.
        closers: What could close a line that may stay open; none where it must not.
    """
    forced, written = _forced(request), suggestion.text.encode()
    replaced = len(request.suffix[: suggestion.replace_after].encode())
    middle = forced + written
    kept = _cut_back(written, grammar.longest_passing_cut(middle, replaced) - len(forced))
    if kept == suggestion.text or any(grammar.sound_when_closed(middle, one.encode(), replaced) for one in closers):
        return suggestion
    return replace(suggestion, text=kept) if kept.strip() else Dropped(DropReason.SYNTAX)


def _forced(request: CompletionRequest) -> bytes:
    """The healed run, which the grammar's completion begins with and the suggestion does not have."""
    return heal(request.prefix).forced if request.healing else b""


def _cut_back(written: bytes, length: int) -> str:
    """Whole characters of the first bytes of a text."""
    return written[: max(0, length)].decode("utf-8", "ignore")
