"""What often comes after a token or a pair of tokens in public source code, where token recycling starts."""

from __future__ import annotations

from importlib import resources

import numpy as np

from drafting.sources.token_recycling import RecyclingArrays, empty_recycling, write_rows

FILE = "common_tokens.npz"
"""In drafting/data; written by scripts/write_common_tokens.py."""


def common_recycling(digest: str) -> RecyclingArrays:
    """Return a memory of frequent pairs in public code, empty for another vocabulary than the file's.

    Args:
        digest: Digest of the model's vocabulary.
    """
    memory = empty_recycling()
    with resources.files("drafting").joinpath("data", FILE).open("rb") as file, np.load(file) as arrays:
        if str(arrays["vocabulary"]) != digest:
            return memory
        before, tokens = np.ascontiguousarray(arrays["tokens"].T)
        write_rows(memory, before, tokens, arrays["after"])
    return memory
