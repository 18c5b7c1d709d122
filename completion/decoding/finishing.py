"""Turns an attempt into a suggestion: applies the filters, then checks the syntax with the text after the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from completion.closing.closing_texts import announced_texts, as_before_code, closing_texts
from completion.closing.endings import are_text, closers_after, endings, still_to_close, with_open_line
from completion.ending.context import Context
from completion.ending.decision import committed, finished
from completion.ending.resync import resync
from completion.ending.rule import Dropped, DropReason
from completion.grammar.constraint import RequestGrammar
from completion.request import CompletionRequest, GrammarMode, StopReason, Suggestion

_CUT_SHORT = frozenset({StopReason.MAX_TOKENS, StopReason.MAX_BYTES, StopReason.TIME_BUDGET, StopReason.UNLIKELY})


@dataclass(frozen=True, slots=True)
class Finisher:
    """Turns the attempts of one request into suggestions.

    Attributes:
        request: The request, with plain line feeds.
        context: The document around the cursor.
        grammar: The request's constraint, or the reason why it has none.
        forced: Bytes of the healed run, which the grammar reads before the suggestion.
    """

    request: CompletionRequest
    context: Context
    grammar: RequestGrammar
    forced: bytes

    def finish(self, raw: Suggestion, reason: StopReason, shown: str = "") -> Suggestion | Dropped:
        """Return the suggestion that a finished text becomes, or the reason why it is dropped.

        Args:
            raw: The text.
            reason: Why it ended.
            shown: Part that was shown before. Nothing cuts it, unless the text has another beginning.
        """
        result: Suggestion | Dropped = raw
        if self.request.filters:
            result = finished(raw, replace(self.context, cut_short=reason in _CUT_SHORT))
        if self.request.grammar is GrammarMode.STRICT and isinstance(result, Suggestion):
            result = self._cut_by_grammar(result, reason)
        return committed(result, raw, shown, self.context)

    def opening_line(self, line: Suggestion) -> Suggestion | None:
        """Return a complete line with open brackets, if it may be offered without the lines that close them."""
        alone = self.finish(line, StopReason.LINE_END)
        filtered = finished(line, self.context)
        return alone if isinstance(alone, Suggestion) and alone == filtered else None

    def visible_part(self, stable: str, shown: str) -> str:
        """Return the part of an unfinished text that adds no syntax error to the document.

        Unless the request is manual or code follows the cursor on its line, it may open what the text closes later: the
        first line of a block is there long before the last.

        Args:
            stable: Stable prefix of the text, which no filter can take back.
            shown: Part that was shown before; the result starts with it.
        """
        if self.request.grammar is not GrammarMode.STRICT or len(stable) <= len(shown):
            return stable
        written = stable.encode()
        whole = as_before_code(self.context)
        waits = whole.invoked and whole.scan(stable).open
        known = len(self.forced) + len(shown.encode())

        def closers() -> tuple[Sequence[str], int]:
            context = with_open_line(whole)
            left_out = self._left_out(context)
            alone = ("",) if left_out else ()  # the text may have the closers that are left out
            return () if waits else (*alone, *endings(stable, context)), left_out

        cut = self.grammar.growing_cut(self.forced + written, known, closers)
        return _cut_back(written, cut - len(self.forced))

    def _cut_by_grammar(self, suggestion: Suggestion, reason: StopReason) -> Suggestion | Dropped:
        """Cut a suggestion to its longest start that adds no syntax error to the document.

        Args:
            suggestion: The suggestion after the filters.
            reason: Why it ended.
        """
        written = suggestion.text.encode()
        replaced = len(self.request.suffix[: suggestion.replace_after].encode())
        middle = self.forced + written
        kept = _cut_back(written, self.grammar.longest_passing_cut(middle, replaced) - len(self.forced))
        if kept == suggestion.text:
            return suggestion
        if self._sound_when_closed(suggestion, reason):
            return suggestion
        line_rest = len(self.context.line_after.encode())
        if self.grammar.sound_when_closed(middle, announced_texts(suggestion, self.context), line_rest):
            return suggestion
        if not self.context.invoked and not self.grammar.adds_errors(middle, replaced):
            return suggestion  # the text after the cursor is broken without it, for example by a missing semicolon
        if not kept.strip():
            return Dropped(DropReason.SYNTAX)
        over = min(suggestion.replace_after, resync(kept, self.context).replaces)  # not a closer that was cut off
        return replace(suggestion, text=kept, replace_after=over)

    def _sound_when_closed(self, suggestion: Suggestion, reason: StopReason) -> bool:
        """Return whether a short text after a suggestion makes the document sound.

        Closers after the cursor on its line are part of that text if they close what the suggestion leaves open.
        """
        context, replaced = with_open_line(self.context), suggestion.replace_after
        rest = closers_after(self.context, replaced)
        if rest not in (still_to_close(suggestion.text, context) or "") and not are_text(rest, self.context):
            context = self.context
        texts = closing_texts(suggestion, reason, context)
        replaced_bytes = max(len(self.request.suffix[:replaced].encode()), self._left_out(context))
        return self.grammar.sound_when_closed(self.forced + suggestion.text.encode(), texts, replaced_bytes)

    def _left_out(self, context: Context) -> int:
        """Return how many bytes after the cursor are not in a context."""
        suffix = self.context.suffix
        return len(suffix[: len(suffix) - len(context.suffix)].encode())


def _cut_back(written: bytes, length: int) -> str:
    """Return the complete characters of the first `length` bytes."""
    return written[: max(0, length)].decode("utf-8", "ignore")
