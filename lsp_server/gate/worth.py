"""How much of a suggested text is shown: its start, up to where its expected worth stops growing.

A line or block is mostly right at its start and wrong at its end. Text that is right saves keys, and text that is wrong
costs the time to read it. Source of the idea: "Sequential Decision-Making for Inline Text Autocomplete", which weighs
both; here wrong text has a fixed cost. `python -m benchmarks.typing` measures the effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from completion.request import Suggestion
from lsp_server.gate.acceptance_model import Strictness
from lsp_server.gate.features import is_word_character

WRONG_COST = 0.3
"""Cost of a shown character that is wrong, in right ones. Text that is right with 23 % is worth nothing.

With less, words that are wrong appear more often and hardly a character more is saved: docs/quality.md.
"""

RIGHT_FROM: dict[Strictness, float] = {
    Strictness.RIGHT_50: 0.28,
    Strictness.RIGHT_60: 0.44,
    Strictness.RIGHT_70: 0.7,
    Strictness.RIGHT_80: 0.9,
}
"""Least probability by the model of what is shown, so that its first line is right as often as the setting says.

`python -m benchmarks.worth --half 0 --calibrate` prints it; docs/quality.md says what was promised and held elsewhere.
"""

_BEGINS = re.compile(r"""[(\[{](?!\s*\n|\s*\Z)|["'`%\\$@#&*!~<-](?=\w)""")
_NOTHING_YET = re.compile(r"\s*(?:#+|/[/*]+!?|--(?:\s*[|^])?|\(\*+)?\s*")  # a line of blanks or of a comment mark


def worthwhile_end(
    suggestion: Suggestion, typed: int, *, grows: bool, wrong_cost: float = WRONG_COST, least: float = 0.0
) -> int:
    """Return up to which of its characters a suggestion is worth showing; `typed` if none of the others is.

    The worth of the next n characters is n·p − n·(1 − p)·wrong_cost, with their probability p by the model. What is
    shown ends with a word, not with what belongs to the text after it: the blanks or the comment mark that begin a
    line, a bracket (its closer comes with it when it is typed), the quote that begins a string, a mark such as `%`,
    the point of a number. If a text grows or is typed, its worthwhile end never moves back. Nobody sees blanks alone.

    Args:
        suggestion: The suggestion.
        typed: Number of its characters that the user has typed.
        grows: Whether more text may follow. Its last word is complete, but not a mark at its end.
        wrong_cost: Cost of a shown character that is wrong.
        least: Least probability of what is shown.
    """
    if not suggestion.ends:
        return len(suggestion.text)
    best, end = 0.0, typed
    for length, log_probability in _words(suggestion, typed, grows=grows):
        p = math.exp(log_probability)
        worth = (length - typed) * (p - (1 - p) * wrong_cost)
        if worth > 0 and worth >= best and p >= least:
            best, end = worth, length
    return end


def may_show_more(suggestion: Suggestion, typed: int, wrong_cost: float = WRONG_COST) -> bool:
    """Return whether more text could move the worthwhile end of a growing suggestion.

    Longer text is never more probable, and no length is worth anything below a probability of cost / (1 + cost).
    """
    *_, (_, log_probability) = [(0, 0.0), *_words(suggestion, typed, grows=True)]
    return not suggestion.ends or math.exp(log_probability) * (1 + wrong_cost) > wrong_cost


def _words(suggestion: Suggestion, typed: int, *, grows: bool) -> Iterator[tuple[int, float]]:
    """Yield the end of each word after the typed characters, and the log-probability of the text between them.

    A token whose first letter is typed counts as certain: few other tokens begin with it there.
    """
    text, known, start = suggestion.text, 0.0, 0
    for end, log_probability in suggestion.ends:
        if end <= typed or text[start:typed].strip():
            known = log_probability
        start = max(0, end)
        is_complete = not grows or text[end:].strip() or is_word_character(text[end - 1])
        if text[typed:end].strip() and is_complete and _may_end(text, end):
            yield end, log_probability - known


def _may_end(text: str, end: int) -> bool:
    line = text.rfind("\n", 0, end) + 1
    begins = _BEGINS.match(text, end - 1)
    return not (begins or _is_inside_word(text, end) or _NOTHING_YET.fullmatch(text, line, end))


def _is_inside_word(text: str, end: int) -> bool:
    before, after = text[end - 1 : end], text[end : end + 1]
    is_in_number = before == "." and after.isdigit() and (end == 1 or text[end - 2].isdigit())
    return is_in_number or (is_word_character(before) and is_word_character(after))
