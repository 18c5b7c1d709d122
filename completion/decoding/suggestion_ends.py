"""Where a suggestion may end, and how likely the text up to there is: `Suggestion.ends`, from an attempt's tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from completion.decoding.decoder import TopTokens
from completion.decoding.output_text import OutputText
from completion.ending.word_end import cluster_ends


def suggestion_ends(
    text: str,
    output: OutputText,
    log_probabilities: Sequence[float],
    top_tokens: Sequence[TopTokens],
    token_bytes: Callable[[int], bytes],
) -> tuple[tuple[int, float], ...]:
    """Return `Suggestion.ends` for what the filters left of an attempt's text.

    All of the likeliest tokens that start like the last one of a text count: a bracket and a line break are one token
    or two. Source of the idea: "Should you marginalize over possible tokenizations?"; here only the last token varies.
    A line that ends inside a token, as most do, has its end there, too.

    Args:
        text: What the filters left.
        output: The attempt's text.
        log_probabilities: Log-probability of each of its tokens.
        top_tokens: The likeliest tokens at the position of each token; empty if it is not known.
        token_bytes: Returns the bytes of a token.
    """
    places = _places_of(text, output.whole())
    if places is None:
        return ()
    found, before = list[tuple[int, float]](), 0.0
    whole_ends = cluster_ends(text)
    for index, (data, characters) in enumerate(output.parts(len(places) - 1)):
        taken = log_probabilities[index]
        top = top_tokens[index] if index < len(top_tokens) else None
        for start in _starts_of(data):
            beyond = len(data[len(start) :].decode("utf-8", "ignore"))
            end = places[max(0, characters - beyond)]
            if end and end in whole_ends:
                alike = _log_probabilities_of_others(top, start, token_bytes) if top is not None else ()
                found.append((end, min(0.0, before + float(np.logaddexp.reduce([taken, *alike])))))
        before += taken
    return tuple(found)


def _log_probabilities_of_others(top: TopTokens, start: bytes, token_bytes: Callable[[int], bytes]) -> list[float]:
    """Return those of the likeliest tokens at a position that start like this, besides the one that was taken."""
    known = zip(top.tokens.tolist(), top.log_probabilities.tolist(), strict=True)
    return [value for token, value in known if token != top.taken and token_bytes(token).startswith(start)]


def _places_of(text: str, whole: str) -> Sequence[int] | None:
    """Return where each offset of `whole` is in `text`, up to the text's end; None if they differ by more than blanks.

    The filters rewrite indentation. An offset within it is where the text before the indentation ends.
    """
    if whole.startswith(text):
        return range(len(text) + 1)
    code = [offset for offset, character in enumerate(text, 1) if not character.isspace()]
    places, count = [0], 0
    for character in whole:
        if character.isspace():
            places.append(places[-1])
        elif count == len(code):
            break
        elif character != text[code[count] - 1]:
            return None
        else:
            places.append(code[count])
            count += 1
    return places if count == len(code) else None


def _starts_of(token: bytes) -> tuple[bytes, ...]:
    """Return the part of a token before its first line break, if there is one, and the whole token."""
    line, line_break, _ = token.partition(b"\n")
    return (line, token) if line and line_break else (token,)
