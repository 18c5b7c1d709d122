"""What the body of a request may cost: bytes, values, keys and depth, counted in its JSON before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, field

from completion.host.errors import BodyInvalidError, BodyTooLargeError, QueueFullError

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_PART_BYTES = 64
"""Memory of a part of a body besides its bytes."""
_LINES = 100_000
"""Number of values where each costs the parser 50 ns and no object of ours: the lines of a document."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum of what a body contains. The largest that it allows is parsed and validated in some milliseconds.

    Attributes:
        values: Number of values in arrays and objects; a file of context has two or three.
        keys: Number of keys of objects; each that is unknown is a fault with a message.
    """

    values: int = 4_096
    keys: int = 4_096
    depth: int = 64


_BUDGETS = {"/v1/next-edit": Budget(values=_LINES), "/api/generate": Budget(values=_LINES)}
"""The bodies that have long lists of strings or numbers; Ollama's `context` is one number a token."""


def budget_of(path: str) -> Budget:
    """Return the budget of the bodies of an address."""
    return _BUDGETS.get(path, Budget())


class JsonCount:
    """Counts the values, keys and depth of a JSON text that arrives in parts.

    It reads brackets, commas and colons outside of strings, so the counts are exact for every text up to its first
    syntax error, where a parser stops.
    """

    __slots__ = ("_budget", "_depth", "_escape", "_in_string", "_keys", "_quotes", "_values")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._values = self._keys = self._depth = self._quotes = 0
        self._in_string, self._escape = False, b""

    def add(self, part: bytes) -> None:
        """Count the next part, in time linear in it.

        Raises:
            BodyInvalidError: The text exceeds its budget.
        """
        text = (self._escape + part).replace(b"\\\\", b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        text = text.removesuffix(b"\\").replace(b'\\"', b"")
        self._quotes += text.count(b'"')
        self._check("strings", self._quotes // 2, self._budget.values + self._budget.keys + 1)
        pieces = text.split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        self._values += sum(map(outside.count, (b",", b"[", b"{")))
        self._keys += outside.count(b":")
        self._check("values", self._values, self._budget.values)
        self._check("keys", self._keys, self._budget.keys)
        self._follow(outside)

    def _follow(self, outside: bytes) -> None:
        """Follow the brackets, of which the values' budget allows only so many to open, and none to close unopened."""
        for bracket in outside.translate(None, _NO_BRACKETS):
            self._depth += 1 if bracket in b"[{" else -1
            self._check("nested arrays and objects", self._depth, self._budget.depth)
            if self._depth < 0:
                raise BodyInvalidError("The request's body is no JSON: a bracket closes that none has opened.")

    def _check(self, what: str, count: int, limit: int) -> None:
        if count > limit:
            raise BodyInvalidError(f"The request's body has more than {limit:,} {what}. Send fewer.")


@dataclass(slots=True)
class UnfinishedBodies:
    """The memory of all bodies that have begun to arrive and are not complete.

    Attributes:
        limit_bytes: Maximum of all together.
        always_bytes: What each may have nevertheless, so that bodies held open stop no usual request.
        held_bytes: What they have now.
    """

    limit_bytes: int = 64 << 20
    always_bytes: int = 64 << 10
    held_bytes: int = 0


@dataclass(slots=True)
class ArrivingBody:
    """One body while it arrives. `close` it whatever became of it."""

    limit_bytes: int
    json: JsonCount
    all: UnfinishedBodies
    size_bytes: int = 0
    _held_bytes: int = field(default=0)

    def announce(self, size_bytes: int) -> None:
        """Check the size of the body.

        Raises:
            BodyTooLargeError: It exceeds the limit.
        """
        if size_bytes > self.limit_bytes:
            raise BodyTooLargeError(f"The body exceeds the limit of {self.limit_bytes:,} bytes. Send less text.")

    def add(self, part: bytes, *, more: bool) -> None:
        """Note the next part, and whether the body goes on.

        Raises:
            BodyTooLargeError: The body exceeds the limit.
            BodyInvalidError: It contains too much.
            QueueFullError: Too much arrives at once.
        """
        self.size_bytes += len(part)
        self.announce(self.size_bytes)
        self.json.add(part)
        if not more:
            self.close()
        elif part:
            self._hold(len(part) + _PART_BYTES)

    def close(self) -> None:
        """Count the body as complete, or as gone."""
        self.all.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def _hold(self, size_bytes: int) -> None:
        self._held_bytes += size_bytes
        self.all.held_bytes += size_bytes
        if self._held_bytes > self.all.always_bytes and self.all.held_bytes > self.all.limit_bytes:
            raise QueueFullError("Too many large requests arrive at once. Try again in a second.")
