"""Recognises secrets by what they look like: keys, tokens, and passwords that are assigned or part of an address.

The forms of tokens are those of `unsafe_rules.toml`, whose source is gitleaks. Other values count by their entropy, as
in detect-secrets, so that neither a placeholder nor a name does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from completion.workspace.unsafe_code import secret_forms

_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,400}?(?:[A-Za-z0-9+/]{40,}(?:\\[rn]|[\s\"',+=])*){2}"
)
_ADDRESS = re.compile(r"://[^\s:/@\"'<>{}$]{0,60}:([^\s:/@\"'<>{}$%]{6,80})@[\w.-]")
_NAMES = ("passw", "pwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "accesskey", "private_key",
          "privatekey", "account_key", "accountkey")  # fmt: skip
_VALUE = re.compile(
    r"\w{0,12}[\"']?\]?[ \t]*(?::|=|=>|:=)[ \t]*"
    r"(?:[\"']([^\s\"'<>{}$%*()\[\]]{6,200})[\"']|([^\s\"'<>{}$%*()\[\],;]{6,200})[ \t\r]*$)",
    re.MULTILINE,
)
_PAGES = ("next", "next_", "continuation", "page", "page_")  # tokens that name the next page of a list
_PLACEHOLDER = re.compile(
    r"your|change|example|placeholder|dummy|sample|secret|passw|token|x{3}|arn:|(?:\.{3}|…)\Z", re.IGNORECASE
)
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MIN_CHARACTERS, _MIN_BITS = 16, 3.5
"""Length, and entropy of a character, of a value that counts in any file; hexadecimal ones have twice the length."""
_MIN_HEX_BITS = _MIN_TOKEN_BITS = 3.0
_SLICE, _OVERLAP = 16_384, 8_192
"""Characters that are searched at once, so that other threads of the process go on, and as many as no secret has: web
servers refuse longer headers, in which the longest tokens are sent (JWT)."""


def secret_in(text: str, *, is_suspect: bool) -> str:
    """Return what a text holds that must not be read: "a private key", "an access token", "a password"; "" if nothing.

    In a suspect file, whose name lets expect secrets, short values count as well.
    """
    if any(_found(_KEY, text)):
        return "a private key"
    tokens = (found[0] for found in _found(_tokens(), text))
    if any(_bits(token) > _MIN_TOKEN_BITS and not _PLACEHOLDER.search(token) for token in tokens):
        return "an access token"
    return "a password" if any(_is_random(value, is_suspect=is_suspect) for value in _values(text)) else ""


def _values(text: str) -> Iterator[str]:
    """Yield what may be passwords: in addresses, and assigned to a name of one."""
    yield from (found[1] for found in _found(_ADDRESS, text))
    folded = text.lower()
    folded = folded if len(folded) == len(text) else text
    for name in _NAMES:
        for named in _found(re.compile(name), folded):
            assigned = _VALUE.match(text, named.end())
            if assigned is not None and not folded.endswith(_PAGES, 0, named.start()):
                yield assigned[1] or assigned[2]


def _found(form: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern in a text, which is searched slice by slice."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        found = form.search(text, start, end + _OVERLAP)
        if found is not None and found.start() < end:
            yield found
            end = max(found.end(), found.start() + 1)
        start = end


def _is_random(value: str, *, is_suspect: bool) -> bool:
    """Return whether a value is more than a placeholder, a name or a path."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if not has_both or _PLACEHOLDER.search(value) or _DOTTED_NAME.fullmatch(value):
        return False
    if is_suspect:
        return True
    if not value.strip("0123456789abcdef"):
        return len(value) >= 2 * _MIN_CHARACTERS and _bits(value) >= _MIN_HEX_BITS
    is_mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
    return is_mixed and len(value) >= _MIN_CHARACTERS and _bits(value) >= _MIN_BITS


def _bits(value: str) -> float:
    """Return the entropy of a text's characters (Shannon, "A Mathematical Theory of Communication", 1948)."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


@cache
def _tokens() -> re.Pattern[str]:
    return re.compile("|".join(secret_forms()))
