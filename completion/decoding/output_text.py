"""Turns the bytes of generated tokens into complete characters after the cursor, and says where these may end."""

from __future__ import annotations

from codecs import getincrementaldecoder, utf_8_decode
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from completion.decoding.decoder import TopTokens
from completion.ending.word_end import cluster_end, cluster_ends


class OutputText:
    """The text of an attempt, collected from the bytes of its tokens.

    The forced bytes before the cursor are no part of the text. While the text grows, `growing` leaves out an incomplete
    character and a grapheme that the next token may extend (a letter and its accent, the parts of a joined emoji).
    """

    __slots__ = ("_bytes", "_drafters", "_forced_bytes", "_healed_tokens", "_token_ends")

    def __init__(self, forced_bytes: int) -> None:
        self._forced_bytes = forced_bytes
        self._bytes = bytearray()
        self._healed_tokens = 0
        self._token_ends: list[int] = []
        self._drafters: list[str] = []

    def extend(self, token: bytes, drafter: str) -> None:
        """Add the bytes of a token and the name of the drafter that guessed it."""
        is_before = len(self._bytes) < self._forced_bytes
        self._bytes += token
        self._healed_tokens += is_before and len(self._bytes) <= self._forced_bytes
        self._token_ends.append(len(self._bytes))
        self._drafters.append(drafter)

    @property
    def tokens(self) -> int:
        """Number of tokens so far."""
        return len(self._token_ends)

    @property
    def new_tokens(self) -> int:
        """Number of tokens so far without those that only repeat what is before the cursor."""
        return len(self._token_ends) - self._healed_tokens

    @property
    def size_bytes(self) -> int:
        """Number of bytes after the cursor so far."""
        return max(0, len(self._bytes) - self._forced_bytes)

    def characters(self, tokens: int) -> int:
        """Return the number of complete characters after the cursor in the first `tokens` tokens."""
        if tokens == self.tokens:
            return len(self.whole())
        end = self._token_ends[tokens - 1] if tokens else 0
        return len(self._bytes[self._forced_bytes : end].decode("utf-8", "ignore"))

    def parts(self, length: int) -> Iterator[tuple[bytes, int]]:
        """Yield the part of each token that is in the forced bytes or the first `length` characters after them.

        With it comes the number of complete characters after the cursor up to its end.
        """
        limit, start = self._end_byte(length), 0
        for end in self._token_ends:
            if start >= limit:
                return
            cut = min(end, limit)
            characters = self._bytes[self._forced_bytes : cut].decode("utf-8", "ignore")
            yield bytes(self._bytes[start:cut]), len(characters)
            start = end

    def whole(self) -> str:
        """Return the complete characters after the cursor."""
        return self._after_cursor().decode("utf-8", "ignore")

    def growing(self) -> str:
        """Return the text after the cursor that further tokens cannot change."""
        text, _ = utf_8_decode(self._after_cursor(), "ignore")
        return text if text[-1:].isascii() else text[: cluster_end(text, len(text) - 1)]

    def pieces(self, length: int) -> tuple[tuple[str, str], ...]:
        """Return the parts of the first `length` characters as (drafter, text), one for each run of one drafter.

        A character of several tokens belongs to the drafter of the last one.
        """
        start, decoder = self._forced_bytes, getincrementaldecoder("utf-8")("ignore")
        joined: list[tuple[str, str]] = []
        for end, drafter in zip(self._token_ends, self._drafters, strict=True):
            part = decoder.decode(bytes(self._bytes[start:end]))[:length]
            start, length = max(start, end), length - len(part)
            if part and joined and joined[-1][0] == drafter:
                joined[-1] = (drafter, joined[-1][1] + part)
            elif part:
                joined.append((drafter, part))
        return tuple(joined)

    def tokens_within(self, length: int) -> int:
        """Return the number of tokens of the first `length` characters; the last may extend past them."""
        limit = self._end_byte(length)
        return sum(1 for start in (0, *self._token_ends[:-1]) if start < limit) if self._token_ends else 0

    def end_token(self, length: int) -> int:
        """Return the index of the token that ends the text after `length` characters.

        It is the last token of these characters if that goes on after them, else the next one.
        """
        count = self.tokens_within(length)
        return count - 1 if count and self._token_ends[count - 1] > self._end_byte(length) else count

    def _end_byte(self, length: int) -> int:
        """Return the offset in the bytes, the forced ones included, after `length` characters."""
        return self._forced_bytes + len(self.whole()[:length].encode())

    def _after_cursor(self) -> bytes:
        return bytes(self._bytes[self._forced_bytes :])


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
