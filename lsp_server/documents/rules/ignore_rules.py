"""The rules of one ignore file, matched as git matches them, in time linear in the length of the path.

Sources: git's `dir.c` (which lines are rules, what each applies to) and `wildmatch.c` (what a glob matches). git
compares bytes, so paths and rules are bytes here too. A malformed line never matches and does not affect other lines.
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
"""Bytes of each POSIX class as in git's tables: ASCII only, and "space" lacks vertical tab and form feed."""

_WILDCARD = re.compile(rb"[*?\[\\]")


class _MalformedError(ValueError):
    """A glob is malformed: git matches it with no path."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of an ignore file.

    Attributes:
        ignores: Whether a match is ignored. False for a line that begins with "!".
        only_folders: Whether only folders match: the line ends in "/".
        by_name: Whether the glob is compared with the last part of a path: the line has no other "/".
        glob: The text to compare with, or a compiled regular expression if it has wildcards.
    """

    ignores: bool
    only_folders: bool
    by_name: bool
    glob: bytes | re.Pattern[bytes]

    def matches(self, path: bytes) -> bool:
        """Return whether the glob matches a path or name."""
        return path == self.glob if isinstance(self.glob, bytes) else self.glob.match(path) is not None


_Plain = dict[tuple[bool, bytes], tuple[int, bool]]
"""Place and verdict of rules without wildcards, by whether they are of names, and the name or path."""


_PLAIN_A_GLOB = 50
"""Number of rules without wildcards that take as long to read as one with wildcards takes to compile, about 0.1 ms."""


class TooManyGlobsError(ValueError):
    """An ignore file has more rules than can be compiled in reasonable time."""


class IgnoreRules:
    """The rules of one ignore file. Paths are relative to its folder and separated by "/".

    A check takes as long as there are rules with wildcards: the others are looked up.

    Attributes:
        globs: Number of rules with a regular expression. Others count as well, by the time that they take.
    """

    def __init__(self, text: bytes, max_globs: int) -> None:
        """Compile the rules.

        Raises:
            TooManyGlobsError: They are worth more than `max_globs` rules with a regular expression.
        """
        self._globs: list[tuple[int, _Rule]] = []  # the last one first, each with its place in that order
        self._plain: tuple[_Plain, _Plain] = {}, {}  # of files, of folders: the last rule of each name and path
        plain = 0
        for order, line in enumerate(reversed(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"))):
            rule = _rule(line)
            if rule is not None:
                self._add(order, rule)
                plain += isinstance(rule.glob, bytes)
            self.globs = len(self._globs) + plain // _PLAIN_A_GLOB
            if self.globs > max_globs:
                raise TooManyGlobsError(f"Its rules take longer to read than {max_globs:,} with wildcards")

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Return whether the last rule that matches a path ignores it; None if no rule matches."""
        name, plain = path.rpartition(b"/")[2], self._plain[is_folder]
        found = min(filter(None, (plain.get((True, name)), plain.get((False, path)))), default=None)
        for order, rule in self._globs:
            if found is not None and found[0] < order:
                break
            if (is_folder or not rule.only_folders) and rule.matches(name if rule.by_name else path):
                return rule.ignores
        return found[1] if found is not None else None

    def _add(self, order: int, rule: _Rule) -> None:
        if not isinstance(rule.glob, bytes):
            self._globs.append((order, rule))
            return
        for plain in self._plain[rule.only_folders :]:
            plain.setdefault((rule.by_name, rule.glob), (order, rule.ignores))


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
    """Remove the spaces at the end of a line, except one that follows a backslash."""
    kept = line.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


def _regex(glob: bytes) -> bytes:
    """Return the regular expression of a glob. It does not backtrack from one wildcard into another.

    The part after a wildcard is matched at the first position where it fits. A later position never helps the rest,
    because "*" cannot match a "/" and "**" can match anything. Atomic groups prevent that other positions are tried.
    """
    try:
        *runs, last = _runs(glob)
    except _MalformedError:
        return rb"(?!)"
    last_span, (*stars, tail) = last
    return (
        b"".join(b"(?>" + span + _first_fit(pieces) + b")" for span, pieces in runs)
        + last_span
        + (_first_fit(stars) + b"[^/]*" if stars else b"")
        + tail
        + rb"\Z"
    )


def _first_fit(pieces: list[bytes]) -> bytes:
    return pieces[0] + b"".join(b"(?>[^/]*?" + piece + b")" for piece in pieces[1:])


def _runs(glob: bytes) -> list[tuple[bytes, list[bytes]]]:
    """Return of each part of a glob from one "**" to the next the expressions of the "**" and of what "*" divides."""
    runs = [(b"", [b""])]
    at = 0
    while at < len(glob):
        if glob[at : at + 1] == b"*":
            end = len(glob) - len(glob[at:].lstrip(b"*"))
            span, at = _span(glob, at, end)
            if span is None:
                runs[-1][1].append(b"")
            else:
                runs.append((span, [b""]))
        else:
            token, at = _token(glob, at)
            runs[-1][1][-1] += token
    return runs


def _span(glob: bytes, start: int, end: int) -> tuple[bytes | None, int]:
    """Return the regular expression of the asterisks at `start`, and where the rest of the glob begins.

    The expression is None if they match within one folder, as "*" does. git removes the text before the first wildcard
    from a glob, so a "**" there counts as the beginning of a name.
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
    """Return the regular expression of one character of a glob, and where the next character begins."""
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
    """Return the regular expression of a "[...]" whose content begins at `at`, and where the next character begins.

    A "]" at the first position and a "-" at the last are members of the set.
    """
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
    """Return the name of the "[:name:]" that begins at `at`, and where it ends; None for any other character."""
    if glob[at : at + 2] != b"[:":
        return None
    name, closed, _ = glob[at + 2 :].partition(b"]")
    if not closed or (name.endswith(b":") and name[:-1] not in _CLASSES):
        raise _MalformedError
    return (name[:-1], at + 2 + len(name) + 1) if name.endswith(b":") else None


def _member(glob: bytes, at: int) -> tuple[int, int]:
    """Return the byte at `at`, or the one after a backslash there, and where the next member begins."""
    at += glob[at : at + 1] == b"\\"
    if at >= len(glob):
        raise _MalformedError
    return glob[at], at + 1
