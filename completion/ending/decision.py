"""The decision where a suggestion ends: every rule once, read to stop decoding, to show what grows and to finish."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache

from completion.ending.context import Context
from completion.ending.extent import block, code_fence, line, remark
from completion.ending.loops import loops
from completion.ending.next_lines import next_lines
from completion.ending.replaced_lines import without_blanks
from completion.ending.resync import resync
from completion.ending.rule import DropReason, Ends, Rule, Stop
from completion.ending.shape import edges, indentation
from completion.ending.unsafe import unsafe
from completion.ending.word_end import cluster_end, mid_word, unfinished, whole_words
from completion.request import StopReason, Suggestion

RULES: dict[Rule, tuple[DropReason, StopReason | None]] = {
    unsafe: (DropReason.UNSAFE, None),
    loops: (DropReason.EMPTY, StopReason.REPETITION),
    unfinished: (DropReason.UNFINISHED, None),
    mid_word: (DropReason.MID_WORD, None),
    remark: (DropReason.EMPTY, StopReason.LINE_END),
    code_fence: (DropReason.EMPTY, StopReason.STOP_TOKEN),
    line: (DropReason.EMPTY, StopReason.LINE_END),
    block: (DropReason.EMPTY, StopReason.BLOCK_END),
    next_lines: (DropReason.REPEATS_FOLLOWING, StopReason.SUFFIX_OVERLAP),
    resync: (DropReason.DOUBLED_CLOSER, None),
}
"""All rules in order, each with the reason why a text is dropped of which it leaves nothing.

The second reason is that of a rule's stop, None for a rule that ends no decoding.
"""


def stop(text: str, context: Context) -> Stop | None:
    """Return where a rule ends an unfinished text however it goes on; None if none does."""
    found = None
    for rule, (_, reason) in RULES.items():
        if reason and (ends := _ends(rule, text, context)).over:
            text = text[: cluster_end(text, ends.maybe)]
            found = Stop(len(text), reason)
    return found


def finished(suggestion: Suggestion, context: Context) -> Suggestion | DropReason:
    """Return what is left of a finished suggestion, in the document's shape, or the reason why nothing is."""
    decided = _decided(suggestion.text, context)
    if isinstance(decided, DropReason):
        return decided
    text = _shaped(suggestion.text[: decided.maybe], decided.replaces, context)
    return text if isinstance(text, DropReason) else replace(suggestion, text=text, replace_after=decided.replaces)


def shown(text: str, context: Context, limit: int | None = None) -> str:
    """Return the part of an unfinished text that may be shown: it stays however the text goes on, in whole words.

    After `limit` characters, if there is one, the text itself may still change.
    """
    decided = _decided(text, context)
    if isinstance(decided, DropReason):
        return ""
    sure = min(decided.sure, len(text) if limit is None else limit)
    kept = text[: whole_words(text[: decided.maybe], sure)]
    kept = kept[: _ends(next_lines, kept, context).sure].rstrip()  # what ends the text may leave such a line last
    ends = _ends(resync, kept, context)  # it may leave a string closed that the text opens again, too
    shaped = _shaped(kept[: ends.maybe], ends.replaces, context)
    return "" if isinstance(shaped, DropReason) else shaped


def replaced_by(text: str, context: Context) -> int:
    """Return the number of characters after the cursor that a text replaces."""
    return _ends(resync, text, context).replaces


def committed(result: Suggestion | DropReason, raw: Suggestion, seen: str, context: Context) -> Suggestion | DropReason:
    """Return a result that begins with what was `seen` of the `raw` text: nothing cuts that off.

    What was seen of another text binds nothing.
    """
    keeps = isinstance(result, Suggestion) and result.text.startswith(seen)
    if not seen or keeps or not without_blanks(raw.text).startswith(without_blanks(seen)):
        return result
    return replace(raw, text=seen, replace_after=replaced_by(seen, context))


def _decided(text: str, context: Context) -> Ends | DropReason:
    """Apply the rules in order, each to what those before it leave."""
    sure, replaces = len(text), 0
    for rule, (reason, _) in RULES.items():
        ends = _ends(rule, text, context)
        if ends.maybe < len(text):
            text = text[: cluster_end(text, ends.maybe)]
            if not text.strip():
                return reason
        sure, replaces = min(sure, ends.sure), ends.replaces
    return Ends(len(text), min(sure, len(text)), replaces=replaces)


@lru_cache(maxsize=2 * len(RULES))  # the same text is asked about to stop, to show and to finish
def _ends(rule: Rule, text: str, context: Context) -> Ends:
    return rule(text, context)


def _shaped(text: str, replaces: int, context: Context) -> str | DropReason:
    indented = indentation(text, context)
    return indented if isinstance(indented, DropReason) else edges(indented, replaces, context)


def forget_texts() -> None:
    """Free what was kept of texts around cursors: the bounded caches of these packages; others are of languages."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(("completion.ending.", "completion.syntax.", "completion.next_edit.")):
            for kept in vars(module).values():
                if isinstance(kept, type(_ends)) and kept.cache_parameters()["maxsize"]:
                    kept.cache_clear()
