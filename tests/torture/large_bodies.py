"""Bodies that cost a reader more than their sender: many small items, many keys, deep nesting, and halves of bodies."""

from __future__ import annotations

import json
import random

MAX_BYTES = 4 << 20
_LISTS = {
    "/v1/complete": ("context", "messages", "unknown"),
    "/v1/prepare": ("context",),
    "/v1/next-edit": ("lines", "edits", "diagnostics", "refused"),
    "/v1/workspace": ("changed", "removed"),
    "/v1/close": ("documents", "workspaces"),
    "/infill": ("input_extra", "stop", "samplers", "response_fields"),
    "/completion": ("prompt", "stop"),
    "/v1/completions": ("prompt", "stop", "segments"),
    "/v1/chat/completions": ("messages", "tools"),
    "/v1/fim/completions": ("stop",),
    "/api/generate": ("images", "context"),
}
_NEEDED = {
    "/v1/complete": {"prefix": "x", "max_tokens": 2},
    "/v1/prepare": {"prefix": "x"},
    "/v1/next-edit": {"lines": [], "edits": []},
    "/v1/workspace": {"workspace": "w"},
    "/completion": {"prompt": "x", "n_predict": 2},
    "/v1/completions": {"prompt": "x", "max_tokens": 2},
    "/v1/fim/completions": {"prompt": "x", "max_tokens": 2},
    "/api/generate": {"prompt": "x"},
}
_ITEMS = (
    "{}",
    "[]",
    "1",
    '""',
    "null",
    '{"text":""}',
    '{"path":"a","text":""}',
    '{"role":"user","content":"x"}',
    '{"line":0,"old":[],"new":[]}',
    '{"a":1,"b":2}',
    "[[[[]]]]",
)


def large_body(chance: random.Random) -> tuple[str, bytes]:
    """Return an address and a body for it that is valid JSON, or nearly so, and large."""
    path = chance.choice(list(_LISTS))
    size = chance.choice((10_000, 300_000, MAX_BYTES - 1000, MAX_BYTES + 1))
    kind = chance.randrange(4)
    if kind == 0:
        many = ",".join(f'"k{number}":1' for number in range(size // 12))
        return path, f"{{{many}}}".encode()
    if kind == 1:
        text = chance.choice(("a", "\\n", "é", "\\u00e9", '\\"', "\\\\")) * (size // 6)
        return path, json.dumps(_NEEDED.get(path, {}) | {"suffix": "@"}).replace("@", text).encode()
    item = chance.choice(_ITEMS)
    many = ",".join([item] * (size // (len(item) + 1)))
    body = json.dumps(_NEEDED.get(path, {}) | {chance.choice(_LISTS[path]): "@"})
    return path, body.replace('"@"', f"[{many}]").encode()


def half_body(chance: random.Random) -> bytes:
    """Return the bytes of a request of which a large part arrives."""
    size = chance.choice((1000, 100_000, MAX_BYTES // 2, MAX_BYTES - 1000))
    head = f"POST {chance.choice(list(_LISTS))} HTTP/1.1\r\nHost: a\r\nContent-Length: {size + 1}\r\n\r\n"
    return head.encode() + chance.choice((b" ", b"[", b'"', b"1")) * size
