"""Token healing: a cursor inside a token is moved back to where a token can begin, and the rest is forced.

The text before the cursor ends in a *run*: a word with its leading space, blanks, or punctuation. Tokenised by itself
it would end in a token that the model never saw there in training. So the run comes off the prompt and becomes a
byte-level prefix that the output must start with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

MAX_RUN_CHARACTERS = 96
"""A longer run (a rule of dashes, a base64 word) is only healed in its last part."""

# A word takes one character before it along: tokenizers of code join "." or " " or "(" with the word that follows.
_RUN = re.compile(r"(?:[^\w\r\n]?\w+|[ \t]+|[^\w\s]+)\Z")


@dataclass(frozen=True, slots=True)
class HealedPrefix:
    """A prefix cut in two.

    Attributes:
        shown: The part that the model sees.
        run: The rest, which the output must start with.
    """

    shown: str
    run: str

    @property
    def forced(self) -> bytes:
        """The bytes that the output must start with."""
        return self.run.encode("utf-8", "replace")


def heal(prefix: str) -> HealedPrefix:
    """Take the run right before the cursor off the prompt."""
    tail = prefix[-MAX_RUN_CHARACTERS:]
    run = _RUN.search(tail)
    if run is None:
        return HealedPrefix(prefix, "")
    cut = len(prefix) - (len(tail) - run.start())
    return HealedPrefix(prefix[:cut], prefix[cut:])


class TokenBytes(Protocol):
    """What healing needs of a tokenizer."""

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of a token."""

    def tokens_with_prefix(self, prefix: bytes) -> npt.NDArray[np.int32]:
        """Tokens whose bytes start with `prefix`, or are a non-empty proper prefix of it."""


@dataclass(frozen=True, slots=True)
class ForcedBytes:
    """What is still to be written of the forced run; immutable, one for each node of a draft."""

    remaining: bytes

    def advance(self, token: bytes) -> ForcedBytes | None:
        """The state after a token, None if the token contradicts the text before the cursor."""
        if not self.remaining:
            return self
        if token.startswith(self.remaining):
            return _NOTHING_FORCED
        if token and self.remaining.startswith(token):
            return ForcedBytes(self.remaining[len(token) :])
        return None

    def candidates(self, tokenizer: TokenBytes) -> npt.NDArray[np.int32] | None:
        """Ids of the tokens that may come next, None if every token may.  # [candidates]."""
        return tokenizer.tokens_with_prefix(self.remaining) if self.remaining else None


_NOTHING_FORCED = ForcedBytes(b"")
