"""Refuses JSON from other programs that is nested too deeply, before it is parsed.

Python's parser recurses with each level. Near the interpreter's limit, the finalizers of other objects fail as well.
"""

from __future__ import annotations

from itertools import accumulate

MAX_DEPTH = 128
"""Maximum number of arrays and objects within each other: more than any protocol has, and far from Python's limit."""

_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one level deeper, one less deep
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))


def check_nesting(text: bytes | bytearray) -> None:
    """Check the depth of a JSON text in time linear in it, up to its first syntax error, where a parser stops.

    Raises:
        ValueError: Arrays and objects are nested more than `MAX_DEPTH` levels deep.
    """
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return
    outside_strings = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    steps = b"".join(outside_strings).translate(_STEPS, _OTHERS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_DEPTH:
        raise ValueError(f"Arrays and objects are nested more than {MAX_DEPTH} levels deep.")
