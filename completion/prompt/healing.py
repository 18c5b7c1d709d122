"""Token healing: takes the run before the cursor off the prompt and forces it as the start of the output.

The text before the cursor ends in a *run*: whitespace, or punctuation and a word, or one of the two, with the blank
before it. Tokenised at the cursor, the run would often end in a token that the model never saw there in training. After
`x = "`, a blank token and a quote token say that no usual string follows: training text has the token ` "` there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_RUN_BYTES = 96
"""Maximum length of a healed run in UTF-8, which is also that of its tokens: one step scores them all. Of a longer run
(a line of dashes, a base64 word, a sentence without blanks) the last part is healed."""

# Tokenizers of code join a blank with the punctuation or the word after it, punctuation with more of it, and one
# character (a tab, too) with a word. A byte order mark is no part of a run: no grammar's text begins with it.
_PUNCTUATION = r" ?[^\w\s\ufeff]+"
_RUN = re.compile(rf"(?:(?:{_PUNCTUATION}|[^\w\r\n\ufeff])?\w+|{_PUNCTUATION}|[ \t]+)\Z")


@dataclass(frozen=True, slots=True)
class HealedPrefix:
    """A prefix in two parts.

    Attributes:
        shown: Part that the prompt contains.
        run: Healed run, which the output must start with.
    """

    shown: str
    run: str

    @property
    def forced(self) -> bytes:
        """Bytes of the run."""
        return self.run.encode("utf-8", "replace")


def heal(prefix: str) -> HealedPrefix:
    """Split a prefix before the run at its end."""
    tail = prefix[-MAX_RUN_BYTES:].encode("utf-8", "replace")[-MAX_RUN_BYTES:].decode("utf-8", "ignore")
    run = _RUN.search(tail)
    if run is None:
        return HealedPrefix(prefix, "")
    cut = len(prefix) - (len(tail) - run.start())
    return HealedPrefix(prefix[:cut], prefix[cut:])


def missing_after(token: bytes, forced: bytes) -> bytes | None:
    """Return the forced bytes that are still missing after a token, None if the token contradicts them."""
    if token.startswith(forced):
        return b""
    return forced[len(token) :] if token and forced.startswith(token) else None
