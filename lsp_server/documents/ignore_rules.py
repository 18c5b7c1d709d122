"""The rules of one ignore file, matched as git matches them, in time linear in a path's length.

Written from git's `dir.c` (which lines are rules, what each applies to) and `wildmatch.c` (what a glob matches). git
compares bytes, so paths and rules are bytes here too. A line that git cannot use never matches, and the lines around
it keep their meaning.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

_CLASSES = {
    name: frozenset(characters.encode())
    for name, characters in {
        b"alnum": string.ascii_letters + string.digits,
        b"alpha": string.ascii_letters,
        b"blank": " \t",
        b"cntrl": "".join(map(chr, [*range(32), 127])),
        b"digit": string.digits,
        b"graph": string.ascii_letters + string.digits + string.punctuation,
        b"lower": string.ascii_lowercase,
        b"print": string.ascii_letters + string.digits + string.punctuation + " ",
        b"punct": string.punctuation,
        b"space": " \t\n\r",
        b"upper": string.ascii_uppercase,
        b"xdigit": string.hexdigits,
    }.items()
}
"""Bytes of each POSIX class, as git's own tables have them: ASCII only, without vertical tab and form feed as space."""

_WILDCARD = re.compile(rb"[*?\[\\]")


class _MalformedError(ValueError):
    """A glob that git matches with nothing."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line.

    Attributes:
        ignores: False for a line that begins with "!".
        only_folders: Whether the line ends in "/".
        by_name: Whether the line has no other "/": it is compared with the last part of a path, in any folder.
        glob: What must be equal; a compiled expression if the glob has wildcards.
    """

    ignores: bool
    only_folders: bool
    by_name: bool
    glob: bytes | re.Pattern[bytes]

    def matches(self, path: bytes) -> bool:
        """Whether the glob matches a path or name."""
        return path == self.glob if isinstance(self.glob, bytes) else self.glob.match(path) is not None


class TooManyGlobsError(ValueError):
    """An ignore file has more globs than can be compiled in reasonable time."""


class IgnoreRules:
    """The rules of one ignore file; paths are relative to its folder and separated by "/".

    Attributes:
        globs: Number of rules that needed a regular expression; each takes about 0.1 ms to compile.
    """

    def __init__(self, text: bytes, most_globs: int) -> None:
        """Compile the rules.

        Raises:
            TooManyGlobsError: More than `most_globs` rules need a regular expression.
        """
        self.globs = 0
        self._last_first: list[_Rule] = []
        for line in reversed(text.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
            rule = _rule(line)
            if rule is not None:
                self._last_first.append(rule)
                self.globs += isinstance(rule.glob, re.Pattern)
            if self.globs > most_globs:
                raise TooManyGlobsError(f"More than {most_globs:,} rules with wildcards are left to compile")

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether the last rule that names this very path ignores it; None if no rule names it."""
        name = path.rpartition(b"/")[2]
        for rule in self._last_first:
            if (is_folder or not rule.only_folders) and rule.matches(name if rule.by_name else path):
                return rule.ignores
        return None


def _rule(line: bytes) -> _Rule | None:
    if line.startswith(b"#"):
        return None
    glob = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
    ignores = not glob.startswith(b"!")
    glob = glob if ignores else glob[1:]
    only_folders = glob.endswith(b"/")
    glob = glob[:-1] if only_folders else glob
    by_name = b"/" not in glob
    if not glob:
        return None
    glob = glob.removeprefix(b"/")
    return _Rule(ignores, only_folders, by_name, re.compile(_regex(glob)) if _WILDCARD.search(glob) else glob)


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at a line's end do not count, unless a backslash precedes them."""
    kept = line.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


def _regex(glob: bytes) -> bytes:
    """A regular expression that matches what a glob matches, without trying one wildcard's lengths for each of another.

    What follows a wildcard is matched at the first position where it fits: a later one never helps the rest, because
    "*" cannot pass a "/" and "**" can pass anything. The groups are atomic, so that no other position is tried.
    """
    try:
        *runs, last = _runs(glob)
    except _MalformedError:
        return rb"(?!)"
    *stars, tail = last.pieces
    return (
        b"".join(b"(?>" + run.span + _first_fit(run.pieces) + b")" for run in runs)
        + last.span
        + (_first_fit(stars) + b"[^/]*" if stars else b"")
        + tail
        + rb"\Z"
    )


def _first_fit(pieces: list[bytes]) -> bytes:
    return pieces[0] + b"".join(b"(?>[^/]*?" + piece + b")" for piece in pieces[1:])


@dataclass(frozen=True, slots=True)
class _Run:
    """A glob's part from one "**" to the next.

    Attributes:
        span: What the "**" in front may stand for.
        pieces: What stands between the "*".
    """

    span: bytes
    pieces: list[bytes]


def _runs(glob: bytes) -> list[_Run]:
    runs = [_Run(b"", [b""])]
    at = 0
    while at < len(glob):
        if glob[at : at + 1] == b"*":
            end = len(glob) - len(glob[at:].lstrip(b"*"))
            span, at = _span(glob, at, end)
            if span is None:
                runs[-1].pieces.append(b"")
            else:
                runs.append(_Run(span, [b""]))
        else:
            token, at = _token(glob, at)
            runs[-1].pieces[-1] += token
    return runs


def _span(glob: bytes, start: int, end: int) -> tuple[bytes | None, int]:
    """What the asterisks at `start` match across folders, and what is read of the glob; None if they are one "*".

    git takes what stands before the first wildcard off a glob, so that "**" there counts as the beginning of a name.
    """
    begins_name = glob[start - 1 : start] == b"/" or not _WILDCARD.search(glob, 0, start)
    if end - start < 2 or not begins_name:
        return None, end
    if glob[end : end + 1] == b"/":
        return b"(?:[^/]*/)*?", end + 1
    if end == len(glob):
        return rb"[\s\S]*", end
    return (rb"[\s\S]*?", end) if glob[end : end + 2] == rb"\/" else (None, end)


def _token(glob: bytes, at: int) -> tuple[bytes, int]:
    """The expression for one character of a glob, and where the next begins."""
    character = glob[at : at + 1]
    if character == b"[":
        return _set(glob, at + 1)
    if character == b"?":
        return b"[^/]", at + 1
    if character == b"\\":
        at += 1
        character = glob[at : at + 1]
        if not character:
            raise _MalformedError
    return re.escape(character), at + 1


def _set(glob: bytes, at: int) -> tuple[bytes, int]:
    """The expression for "[...]", and where the next begins; "]" may come first, "-" last."""
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    members = {ord("/")} if negated else set()  # a set never matches "/"
    previous: int | None = None
    is_first = True
    while is_first or glob[at : at + 1] != b"]":
        is_first = False
        if previous is not None and glob[at : at + 1] == b"-" and glob[at + 1 : at + 2] not in (b"", b"]"):
            end, at = _member(glob, at + 1)
            members.update(range(previous, end + 1))
            previous = None
        elif named := _class(glob, at):
            members.update(_CLASSES[named[0]])
            at, previous = named[1], None
        else:
            previous, at = _member(glob, at)
            members.add(previous)
    if not negated:
        members.discard(ord("/"))
    listed = b"".join(b"\\x%02x" % member for member in sorted(members))
    return b"[" + b"^" * negated + listed + b"]" if listed else rb"(?!)", at + 1


def _class(glob: bytes, at: int) -> tuple[bytes, int] | None:
    """The name of the "[:name:]" that begins at `at`, and where it ends; None for any other character."""
    if glob[at : at + 2] != b"[:":
        return None
    name, closed, _ = glob[at + 2 :].partition(b"]")
    if not closed or (name.endswith(b":") and name[:-1] not in _CLASSES):
        raise _MalformedError
    return (name[:-1], at + 2 + len(name) + 1) if name.endswith(b":") else None


def _member(glob: bytes, at: int) -> tuple[int, int]:
    """The byte that stands at `at`, after a backslash or not, and where the next begins."""
    at += glob[at : at + 1] == b"\\"
    if at >= len(glob):
        raise _MalformedError
    return glob[at], at + 1
